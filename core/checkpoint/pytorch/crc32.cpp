// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch/crc32.h"

#include <array>
#include <bit>
#include <cstring>

namespace headscope::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::size_t step = 16;

/// tables[k][b]: what byte b does to the remainder when k more bytes follow.
constexpr auto tables = [] {
    std::array<std::array<std::uint32_t, 256>, step> all{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0xEDB88320U : 0U);
        all[0][byte] = value;
    }
    for (std::size_t k = 1; k < step; ++k) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t value = all[k - 1][byte];
            all[k][byte] = (value >> 8U) ^ all[0][value & 0xFFU];
        }
    }
    return all;
}();

}  // namespace

std::uint32_t crc32(std::uint32_t before, const void* bytes, std::size_t size) noexcept {
    const auto* next = static_cast<const unsigned char*>(bytes);
    std::uint32_t value = ~before;
    for (; size >= step; size -= step, next += step) {
        std::array<unsigned char, step> block{};
        std::memcpy(block.data(), next, step);
        for (std::size_t i = 0; i < 4; ++i) block[i] ^= static_cast<unsigned char>(value >> (8 * i));
        value = 0;
        for (std::size_t i = 0; i < step; ++i) value ^= tables[step - 1 - i][block[i]];
    }
    for (; size > 0; --size, ++next) value = (value >> 8U) ^ tables[0][(value ^ *next) & 0xFFU];
    return ~value;
}

}  // namespace headscope::checkpoint
