// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/packed/reference/product.h"

#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "kernels/backend.h"
#include "kernels/packed/grids.h"

namespace headscope::kernels {
namespace reference {
namespace {

using Block = const std::uint8_t*;

constexpr std::array<int, 16> kUnevenLevels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};
constexpr std::array<int, 16> kTwiceE2m1 = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

unsigned bits(Block block, std::int64_t at, std::int64_t shift, unsigned mask) {
    return (unsigned{block[at]} >> shift) & mask;
}

/// Nibble i of 2 `half` nibbles: low ones of all bytes, then high ones.
int nibble(Block from, std::int64_t i, std::int64_t half) {
    return static_cast<int>(bits(from, i % half, 4 * (i / half), 15U));
}

unsigned word16(Block at) {
    return unsigned{at[0]} | unsigned{at[1]} << 8U;
}

double half_of(unsigned word) {
    const int exponent = static_cast<int>((word >> 10U) & 31U), mantissa = static_cast<int>(word & 0x3FFU);
    double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31) magnitude = mantissa == 0 ? double{INFINITY} : std::nan("");
    return (word & 0x8000U) != 0 ? -magnitude : magnitude;
}

double half(Block at) {
    return half_of(word16(at));
}

/// Field of 2 bits of weight i of Q2_K, Q3_K and TQ2_0.
int field2(Block from, std::int64_t i) {
    return static_cast<int>(bits(from, i / 128 * 32 + i % 32, i % 128 / 32 * 2, 3U));
}

PackedWeight q2_k(Block b, std::int64_t i) {
    const unsigned scales = b[i / 16];
    return {half(b + 80) * (scales & 15U) * field2(b + 16, i), half(b + 82) * (scales >> 4U)};
}

PackedWeight q3_k(Block b, std::int64_t i) {
    const std::int64_t part = i / 16;
    const unsigned low = bits(b, 96 + part % 8, part / 8 * 4, 15U), high = bits(b, 104 + part % 4, part / 4 * 2, 3U);
    const int q = field2(b + 32, i) - (bits(b, i % 32, i / 32, 1U) != 0 ? 0 : 4);
    return {half(b + 108) * (static_cast<int>(low | high << 4U) - 32) * q, 0.0};
}

/// Scale (from 4) or minimum (from 8) of part s of Q4_K and Q5_K.
unsigned six_bits(Block b, std::int64_t s, bool is_minimum) {
    const Block scales = b + 4, own = scales + (is_minimum ? 4 : 0);
    if (s < 4) return own[s] & 63U;
    return bits(scales, s + 4, is_minimum ? 4 : 0, 15U) | bits(own, s - 4, 6, 3U) << 4U;
}

PackedWeight with_minimum(Block b, std::int64_t s, int q) {
    return {half(b) * six_bits(b, s, false) * q, half(b + 2) * six_bits(b, s, true)};
}

PackedWeight q4_k(Block b, std::int64_t i) {
    return with_minimum(b, i / 32, nibble(b + 16 + i / 64 * 32, i % 64, 32));
}

PackedWeight q5_k(Block b, std::int64_t i) {
    const int top = static_cast<int>(bits(b, 16 + i % 32, i / 32, 1U)) * 16;
    return with_minimum(b, i / 32, nibble(b + 48 + i / 64 * 32, i % 64, 32) + top);
}

PackedWeight q6_k(Block b, std::int64_t i) {
    const std::int64_t part = i / 128, field = i % 128 / 32;
    const int low = nibble(b + 64 * part, i % 128, 64);
    const int high = static_cast<int>(bits(b, 128 + 32 * part + i % 32, 2 * field, 3U));
    return {half(b + 208) * static_cast<std::int8_t>(b[192 + i / 16]) * (low + 16 * high - 32), 0.0};
}

PackedWeight iq4_xs(Block b, std::int64_t i) {
    const std::int64_t part = i / 32;
    const unsigned scale = bits(b, 4 + part / 2, part % 2 * 4, 15U) | ((word16(b + 2) >> (2 * part)) & 3U) << 4U;
    const int level = kUnevenLevels[static_cast<std::size_t>(nibble(b + 8 + 16 * part, i % 32, 16))];
    return {half(b) * (static_cast<int>(scale) - 32) * level, 0.0};
}

PackedWeight tq1_0(Block b, std::int64_t i) {
    constexpr std::array<unsigned, 5> kPowers = {1, 3, 9, 27, 81};
    const std::int64_t begin = i < 160 ? 0 : i < 240 ? 160 : 240, bytes = i < 160 ? 32 : i < 240 ? 16 : 4;
    const std::int64_t first = i < 160 ? 0 : i < 240 ? 32 : 48, n = i - begin;
    const unsigned shifted = b[first + n % bytes] * kPowers[static_cast<std::size_t>(n / bytes)] % 256;
    return {half(b + 52) * (static_cast<int>(shifted * 3 / 256) - 1), 0.0};
}

double half_of_e4m3(unsigned byte) {
    const int exponent = static_cast<int>((byte >> 3U) & 15U), mantissa = static_cast<int>(byte & 7U);
    if (byte == 0x7F) return 0.0;
    return exponent == 0 ? std::ldexp(mantissa, -10) : std::ldexp(8 + mantissa, exponent - 11);
}

PackedWeight nvfp4(Block b, std::int64_t i) {
    const int level = kTwiceE2m1[static_cast<std::size_t>(nibble(b + 4 + i / 16 * 8, i % 16, 8))];
    return {half_of_e4m3(b[i / 16]) * level, 0.0};
}

/// Integer i % kSize of an entry, negative where bit i % 8 of `signs` is set.
template <std::size_t kSize, std::size_t kEntries>
double grid_value(const grids::Grid<kSize, kEntries>& grid, unsigned index, unsigned signs, std::int64_t i) {
    const double value = grid.at(index)[static_cast<std::size_t>(i) % kSize];
    return ((signs >> static_cast<unsigned>(i % 8)) & 1U) != 0 ? -value : value;
}

/// The signs that a code of 7 bits stands for.
unsigned signs_of(unsigned code) {
    return grids::kSigns.at(code & 127U);
}

/// Scale and four codes of signs of 32 values.
std::uint32_t scale_and_signs(Block at) {
    return word16(at) | std::uint32_t{word16(at + 2)} << 16U;
}

PackedWeight iq2_xxs(Block b, std::int64_t i) {
    const Block part = b + 2 + i / 32 * 8;
    const std::int64_t entry = i % 32 / 8;
    const std::uint32_t word = scale_and_signs(part + 4);
    const unsigned signs = signs_of(word >> static_cast<unsigned>(7 * entry));
    return {half(b) * (0.5 + (word >> 28U)) * 0.25 * grid_value(grids::kIq2Xxs, part[entry], signs, i), 0.0};
}

PackedWeight iq2_xs(Block b, std::int64_t i) {
    const unsigned word = word16(b + 2 + i / 8 * 2), scale = bits(b, 66 + i / 32, i % 32 / 16 * 4, 15U);
    return {half(b) * (0.5 + scale) * 0.25 * grid_value(grids::kIq2Xs, word & 511U, signs_of(word >> 9U), i), 0.0};
}

PackedWeight iq2_s(Block b, std::int64_t i) {
    const unsigned index = b[2 + i / 8] | bits(b, 66 + i / 32, i % 32 / 8 * 2, 3U) << 8U;
    const unsigned scale = bits(b, 74 + i / 32, i % 32 / 16 * 4, 15U);
    return {half(b) * (0.5 + scale) * 0.25 * grid_value(grids::kIq2S, index, b[34 + i / 8], i), 0.0};
}

PackedWeight iq3_xxs(Block b, std::int64_t i) {
    const std::uint32_t word = scale_and_signs(b + 66 + i / 32 * 4);
    const unsigned signs = signs_of(word >> static_cast<unsigned>(i % 32 / 8 * 7));
    return {half(b) * (0.5 + (word >> 28U)) * 0.5 * grid_value(grids::kIq3Xxs, b[2 + i / 4], signs, i), 0.0};
}

PackedWeight iq3_s(Block b, std::int64_t i) {
    const unsigned index = b[2 + i / 4] | bits(b, 66 + i / 32, i % 32 / 4, 1U) << 8U;
    const unsigned scale = bits(b, 106 + i / 64, i % 64 / 32 * 4, 15U);
    return {half(b) * (1 + 2 * scale) * grid_value(grids::kIq3S, index, b[74 + i / 8], i), 0.0};
}

/// Integer i % 8 of an entry of IQ1, plus or minus an eighth.
double shifted_value(unsigned index, bool is_minus, std::int64_t i) {
    return grid_value(grids::kIq1, index, 0, i) + (is_minus ? -0.125 : 0.125);
}

PackedWeight iq1_s(Block b, std::int64_t i) {
    const unsigned word = word16(b + 34 + i / 32 * 2);
    const unsigned index = b[2 + i / 8] | ((word >> static_cast<unsigned>(i % 32 / 8 * 3)) & 7U) << 8U;
    return {half(b) * (1 + 2 * ((word >> 12U) & 7U)) * shifted_value(index, word >> 15U != 0, i), 0.0};
}

PackedWeight iq1_m(Block b, std::int64_t i) {
    const Block scales = b + 48;
    unsigned scale_bits = 0;
    for (unsigned word = 0; word < 4; ++word) scale_bits |= word16(scales + 2 * word) >> 12U << (4 * word);
    const unsigned scale = (word16(scales + i / 64 * 2) >> static_cast<unsigned>(i % 64 / 16 * 3)) & 7U;
    const unsigned high = bits(b, 32 + i / 16, i % 16 / 8 * 4, 15U), index = b[i / 8] | (high & 7U) << 8U;
    return {half_of(scale_bits) * (1 + 2 * scale) * shifted_value(index, high >= 8, i), 0.0};
}

/// Fifth bit of weight i of Q5_0 and Q5_1.
int fifth(Block word, std::int64_t i) {
    return static_cast<int>(bits(word, i / 8, i % 8, 1U)) * 16;
}

}  // namespace

PackedWeight packed_weight(PackedType type, const std::uint8_t* b, std::int64_t i) {
    const auto level = [i](const std::array<int, 16>& levels, Block from) {
        return levels[static_cast<std::size_t>(nibble(from, i, 16))];
    };
    switch (type) {
        case PackedType::f16:
            return {half(b), 0.0};
        case PackedType::bf16:
            return {double{std::bit_cast<float>(word16(b) << 16U)}, 0.0};
        case PackedType::q4_0:
            return {half(b) * (nibble(b + 2, i, 16) - 8), 0.0};
        case PackedType::q4_1:
            return {half(b) * nibble(b + 4, i, 16), -half(b + 2)};
        case PackedType::q5_0:
            return {half(b) * (nibble(b + 6, i, 16) + fifth(b + 2, i) - 16), 0.0};
        case PackedType::q5_1:
            return {half(b) * (nibble(b + 8, i, 16) + fifth(b + 4, i)), -half(b + 2)};
        case PackedType::q8_0:
            return {half(b) * static_cast<std::int8_t>(b[2 + i]), 0.0};
        case PackedType::q2_k:
            return q2_k(b, i);
        case PackedType::q3_k:
            return q3_k(b, i);
        case PackedType::q4_k:
            return q4_k(b, i);
        case PackedType::q5_k:
            return q5_k(b, i);
        case PackedType::q6_k:
            return q6_k(b, i);
        case PackedType::iq1_s:
            return iq1_s(b, i);
        case PackedType::iq1_m:
            return iq1_m(b, i);
        case PackedType::iq2_xxs:
            return iq2_xxs(b, i);
        case PackedType::iq2_xs:
            return iq2_xs(b, i);
        case PackedType::iq2_s:
            return iq2_s(b, i);
        case PackedType::iq3_xxs:
            return iq3_xxs(b, i);
        case PackedType::iq3_s:
            return iq3_s(b, i);
        case PackedType::iq4_nl:
            return {half(b) * level(kUnevenLevels, b + 2), 0.0};
        case PackedType::iq4_xs:
            return iq4_xs(b, i);
        case PackedType::tq1_0:
            return tq1_0(b, i);
        case PackedType::tq2_0:
            return {half(b + 64) * (field2(b, i) - 1), 0.0};
        case PackedType::mxfp4:
            return {std::ldexp(level(kTwiceE2m1, b + 1), b[0] - 128), 0.0};
        case PackedType::nvfp4:
            return nvfp4(b, i);
    }
    throw Error("packed weight", "a listed type", "number " + std::to_string(static_cast<std::uint32_t>(type)));
}

}  // namespace reference

void packed_product_reference(const PackedProduct& product) {
    const PackedLayout& layout = *packed_layout(product.type);
    const std::int64_t row_bytes = product.columns / layout.values * layout.bytes;
    for (std::int64_t row = 0; row < product.rows; ++row) {
        const auto* blocks = static_cast<const std::uint8_t*>(product.blocks) + row * row_bytes;
        for (std::int64_t token = 0; token < product.tokens; ++token) {
            double sum = product.bias != nullptr ? double{product.bias[row]} : 0.0;
            for (std::int64_t i = 0; i < product.columns; ++i) {
                const auto weight = reference::packed_weight(product.type, blocks + i / layout.values * layout.bytes,
                                                             i % layout.values);
                sum += (weight.scaled - weight.offset) * double{product.x[token * product.x_stride + i]};
            }
            product.y[token * product.y_stride + row] = static_cast<float>(sum);
        }
    }
}

}  // namespace headscope::kernels
