// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/numbers.h"

#include <bit>
#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace headscope::checkpoint {
namespace {

std::array<float, 256> make_e4m3() {
    std::array<float, 256> values{};
    for (unsigned code = 0; code < 256; ++code) {
        const int exponent = static_cast<int>(code >> 3U & 15U), mantissa = static_cast<int>(code & 7U);
        float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                    : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
        if ((code & 127U) == 127U) value = std::numeric_limits<float>::quiet_NaN();
        values[code] = (code & 128U) != 0 ? -value : value;
    }
    return values;
}

std::array<float, 256> make_e8m0() {
    std::array<float, 256> values{};
    for (int e = 0; e < 255; ++e) values[static_cast<std::size_t>(e)] = std::ldexp(1.0F, e - 127);
    values[255] = std::numeric_limits<float>::quiet_NaN();
    return values;
}

template <class T>
T element(const std::byte* bytes, std::size_t i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    return value;
}

std::size_t number_bytes(DataType type) {
    switch (type) {
        case DataType::f32:
            return 4;
        case DataType::f16:
        case DataType::bf16:
            return 2;
        case DataType::f8_e4m3:
        case DataType::f8_e8m0:
            return 1;
        default:
            throw Error(ErrorCode::internal, "packed weights", "expected a type of scales", "found another");
    }
}

}  // namespace

const std::array<float, 256> e4m3_values = make_e4m3();
const std::array<float, 256> e8m0_values = make_e8m0();

float float16_value(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000U) << 16U, rest = bits & 0x7FFFU;
    if (rest >= 0x7C00U) return std::bit_cast<float>(sign | 0x7F800000U | (rest & 0x3FFU) << 13U);
    if (rest >= 0x400U) return std::bit_cast<float>(sign | ((rest << 13U) + (112U << 23U)));
    const float small = static_cast<float>(rest) * 0x1p-24F;
    return sign != 0 ? -small : small;
}

Numbers::Numbers(std::span<const std::byte> bytes, DataType type)
    : bytes_(bytes.data()), type_(type), size_(bytes.size() / number_bytes(type)) {}

float Numbers::operator[](std::size_t i) const {
    switch (type_) {
        case DataType::f32:
            return element<float>(bytes_, i);
        case DataType::f16:
            return float16_value(element<std::uint16_t>(bytes_, i));
        case DataType::bf16:
            return std::bit_cast<float>(std::uint32_t{element<std::uint16_t>(bytes_, i)} << 16U);
        case DataType::f8_e4m3:
            return e4m3_values[element<std::uint8_t>(bytes_, i)];
        default:
            return e8m0_values[element<std::uint8_t>(bytes_, i)];
    }
}

std::size_t Numbers::first_not_finite() const {
    std::size_t i = 0;
    while (i < size_ && std::isfinite((*this)[i])) ++i;
    return i;
}

void unpack_codes(const std::byte* bytes, unsigned bits, std::size_t count, std::uint8_t* into) {
    if (count == 0) return;
    if (bits == 8) {
        std::memcpy(into, bytes, count);
        return;
    }
    if (bits == 4) {
        for (std::size_t i = 0; i + 1 < count; i += 2) {
            const auto byte = std::to_integer<unsigned>(bytes[i / 2]);
            into[i] = static_cast<std::uint8_t>(byte & 15U);
            into[i + 1] = static_cast<std::uint8_t>(byte >> 4U);
        }
        if (count % 2 != 0) into[count - 1] = std::to_integer<std::uint8_t>(bytes[count / 2]) & 15U;
        return;
    }
    // 32 values fill `bits` words.
    const std::uint64_t mask = (1U << bits) - 1;
    std::uint64_t held = 0;
    unsigned have = 0;
    for (std::size_t i = 0, word = 0; i < count; ++i) {
        if (have < bits) {
            held |= std::uint64_t{word_at(bytes, word++)} << have;
            have += 32;
        }
        into[i] = static_cast<std::uint8_t>(held & mask);
        held >>= bits;
        have -= bits;
    }
}

}  // namespace headscope::checkpoint
