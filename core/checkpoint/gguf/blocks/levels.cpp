// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/checkpoint/gguf/blocks/stored_numbers.h"
#include "core/checkpoint/gguf/blocks/unpack.h"

namespace headscope::checkpoint::gguf {
namespace {

constexpr std::array<float, 16> kUnevenLevels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                 1,    13,   25,  38,  53,  69,  89,  113};
/// Twice e2m1, whose negative zero is zero here.
constexpr std::array<float, 16> kTwiceE2m1 = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Low nibbles of `size` bytes, then the high ones.
template <int kSize>
void put_levels(const std::array<float, 16>& levels, float scale, const std::uint8_t* bytes, float* into) {
    for (int i = 0; i < kSize; ++i) into[i] = scale * levels[bytes[i] & 15U];
    for (int i = 0; i < kSize; ++i) into[kSize + i] = scale * levels[bytes[i] >> 4U];
}

/// 2^(e - 128).
float half_of_e8m0(std::uint8_t e) {
    return std::bit_cast<float>(e < 2 ? 0x00200000U << e : (e - 1U) << 23U);
}

/// Half of an unsigned e4m3, whose NaN is 0.
float half_of_e4m3(std::uint8_t byte) {
    if (byte == 0x7F) return 0;
    const unsigned exponent = (byte >> 3U) & 15U, mantissa = byte & 7U;
    if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10F;
    return static_cast<float>(8 + mantissa) * std::bit_cast<float>((exponent + 127 - 7 - 3 - 1) << 23U);
}

}  // namespace

void unpack_iq4_nl(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 18, into += 32)
        put_levels<16>(kUnevenLevels, half_at(blocks), blocks + 2, into);
}

void unpack_iq4_xs(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 136) {
        const float d = half_at(blocks);
        const unsigned high = word16(blocks + 2);
        for (unsigned part = 0; part < 8; ++part, into += 32) {
            const unsigned low = (blocks[4 + part / 2] >> (4 * (part % 2))) & 15U;
            const int scale = static_cast<int>(low | ((high >> (2 * part)) & 3U) << 4U) - 32;
            put_levels<16>(kUnevenLevels, d * static_cast<float>(scale), blocks + 8 + 16 * part, into);
        }
    }
}

void unpack_tq1_0(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    constexpr std::array<unsigned, 5> kPowers = {1, 3, 9, 27, 81};
    struct Part {
        int begin, bytes, trits;
    };
    constexpr std::array<Part, 3> kParts = {{{0, 32, 5}, {32, 16, 5}, {48, 4, 4}}};
    for (; count > 0; --count, blocks += 54) {
        const float d = half_at(blocks + 52);
        for (const Part& part : kParts) {
            for (int trit = 0; trit < part.trits; ++trit, into += part.bytes) {
                for (int i = 0; i < part.bytes; ++i) {
                    const unsigned shifted = blocks[part.begin + i] * kPowers[static_cast<unsigned>(trit)] & 255U;
                    into[i] = d * static_cast<float>(static_cast<int>(shifted * 3 >> 8U) - 1);
                }
            }
        }
    }
}

void unpack_tq2_0(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 66) {
        const float d = half_at(blocks + 64);
        for (const std::uint8_t* q : {blocks, blocks + 32}) {
            for (unsigned shift = 0; shift < 8; shift += 2, into += 32)
                for (int i = 0; i < 32; ++i) into[i] = d * static_cast<float>(((q[i] >> shift) & 3) - 1);
        }
    }
}

void unpack_mxfp4(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 17, into += 32)
        put_levels<16>(kTwiceE2m1, half_of_e8m0(blocks[0]), blocks + 1, into);
}

void unpack_nvfp4(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 36) {
        for (int part = 0; part < 4; ++part, into += 16)
            put_levels<8>(kTwiceE2m1, half_of_e4m3(blocks[part]), blocks + 4 + 8 * part, into);
    }
}

}  // namespace headscope::checkpoint::gguf
