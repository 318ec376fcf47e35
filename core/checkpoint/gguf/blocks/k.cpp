// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf/blocks/stored_numbers.h"
#include "core/checkpoint/gguf/blocks/unpack.h"

namespace headscope::checkpoint::gguf {
namespace {

/// Scales and minima of the eight sub-blocks of Q4_K and Q5_K, 6 bits each.
struct ScalesAndMinima {
    std::uint8_t scale[8];
    std::uint8_t minimum[8];
};

ScalesAndMinima scales_and_minima(const std::uint8_t* bytes) {
    ScalesAndMinima all{};
    for (int i = 0; i < 4; ++i) {
        all.scale[i] = bytes[i] & 63U;
        all.minimum[i] = bytes[i + 4] & 63U;
        all.scale[i + 4] = static_cast<std::uint8_t>((bytes[i + 8] & 15U) | ((bytes[i] >> 2U) & 0x30U));
        all.minimum[i + 4] = static_cast<std::uint8_t>((bytes[i + 8] >> 4U) | ((bytes[i + 4] >> 2U) & 0x30U));
    }
    return all;
}

}  // namespace

void unpack_q2_k(const std::uint8_t* blocks, std::int64_t count, float* into) {
    for (; count > 0; --count, blocks += 84) {
        const std::uint8_t* scale = blocks;
        const float d = half_at(blocks + 80), dmin = half_at(blocks + 82);
        for (const std::uint8_t* q : {blocks + 16, blocks + 48}) {
            for (unsigned shift = 0; shift < 8; shift += 2) {
                for (int part = 0; part < 32; part += 16, ++scale, into += 16) {
                    const float ds = d * static_cast<float>(*scale & 15), m = dmin * static_cast<float>(*scale >> 4);
                    for (int i = 0; i < 16; ++i) into[i] = ds * static_cast<float>((q[part + i] >> shift) & 3) - m;
                }
            }
        }
    }
}

void unpack_q3_k(const std::uint8_t* blocks, std::int64_t count, float* into) {
    for (; count > 0; --count, blocks += 110) {
        const std::uint8_t* high = blocks;
        const std::uint8_t* packed = blocks + 96;
        const float d = half_at(blocks + 108);
        unsigned bit = 0;
        unsigned part_of = 0;
        for (const std::uint8_t* q : {blocks + 32, blocks + 64}) {
            for (unsigned shift = 0; shift < 8; shift += 2, ++bit) {
                for (int part = 0; part < 32; part += 16, ++part_of, into += 16) {
                    const unsigned low = (packed[part_of % 8] >> (4 * (part_of / 8))) & 15U;
                    const unsigned top = (packed[8 + part_of % 4] >> (2 * (part_of / 4))) & 3U;
                    const float ds = d * static_cast<float>(static_cast<int>(low | top << 4U) - 32);
                    for (int i = 0; i < 16; ++i) {
                        const int four = ((high[part + i] >> bit) & 1) == 0 ? 4 : 0;
                        into[i] = ds * static_cast<float>(((q[part + i] >> shift) & 3) - four);
                    }
                }
            }
        }
    }
}

void unpack_q4_k(const std::uint8_t* blocks, std::int64_t count, float* into) {
    for (; count > 0; --count, blocks += 144) {
        const float d = half_at(blocks), dmin = half_at(blocks + 2);
        const ScalesAndMinima all = scales_and_minima(blocks + 4);
        const std::uint8_t* q = blocks + 16;
        for (int pair = 0; pair < 8; pair += 2, q += 32, into += 64) {
            const float low = d * static_cast<float>(all.scale[pair]),
                        high = d * static_cast<float>(all.scale[pair + 1]);
            const float low_min = dmin * static_cast<float>(all.minimum[pair]);
            const float high_min = dmin * static_cast<float>(all.minimum[pair + 1]);
            for (int i = 0; i < 32; ++i) into[i] = low * static_cast<float>(q[i] & 15) - low_min;
            for (int i = 0; i < 32; ++i) into[32 + i] = high * static_cast<float>(q[i] >> 4) - high_min;
        }
    }
}

void unpack_q5_k(const std::uint8_t* blocks, std::int64_t count, float* into) {
    for (; count > 0; --count, blocks += 176) {
        const float d = half_at(blocks), dmin = half_at(blocks + 2);
        const ScalesAndMinima all = scales_and_minima(blocks + 4);
        const std::uint8_t* bits = blocks + 16;
        const std::uint8_t* q = blocks + 48;
        for (int pair = 0; pair < 8; pair += 2, q += 32, into += 64) {
            const float low = d * static_cast<float>(all.scale[pair]),
                        high = d * static_cast<float>(all.scale[pair + 1]);
            const float low_min = dmin * static_cast<float>(all.minimum[pair]);
            const float high_min = dmin * static_cast<float>(all.minimum[pair + 1]);
            for (int i = 0; i < 32; ++i)
                into[i] = low * static_cast<float>((q[i] & 15) | ((bits[i] >> pair) & 1) << 4) - low_min;
            for (int i = 0; i < 32; ++i)
                into[32 + i] = high * static_cast<float>((q[i] >> 4) | ((bits[i] >> (pair + 1)) & 1) << 4) - high_min;
        }
    }
}

void unpack_q6_k(const std::uint8_t* blocks, std::int64_t count, float* into) {
    for (; count > 0; --count, blocks += 210) {
        const float d = half_at(blocks + 208);
        const std::uint8_t* scale = blocks + 192;
        for (int half = 0; half < 2; ++half) {
            const std::uint8_t* low = blocks + 64 * half;
            const std::uint8_t* high = blocks + 128 + 32 * half;
            for (int field = 0; field < 4; ++field) {
                const std::uint8_t* nibbles = low + 32 * (field & 1);
                const int low_shift = 4 * (field >> 1), high_shift = 2 * field;
                for (int part = 0; part < 32; part += 16, ++scale, into += 16) {
                    const float ds = d * static_cast<float>(static_cast<std::int8_t>(*scale));
                    for (int i = 0; i < 16; ++i) {
                        const int value = ((nibbles[part + i] >> low_shift) & 15) | ((high[part + i] >> high_shift) & 3)
                                                                                        << 4;
                        into[i] = ds * static_cast<float>(value - 32);
                    }
                }
            }
        }
    }
}

}  // namespace headscope::checkpoint::gguf
