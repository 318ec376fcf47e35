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

void unpack_q2_k(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 84, into += 256) {
        const float d = half_at(blocks + 80), dmin = half_at(blocks + 82);
        for (int part = 0; part < 4; ++part) {  // of 16 bytes, with four fields of 2 bits
            const std::uint8_t* q = blocks + 16 + 16 * part;
            const std::uint8_t* scales = blocks + 8 * (part / 2) + part % 2;
            float* to = into + 128 * (part / 2) + 16 * (part % 2);
            float scale[4], minimum[4];
            for (int field = 0; field < 4; ++field) {
                scale[field] = d * static_cast<float>(scales[2 * field] & 15);
                minimum[field] = dmin * static_cast<float>(scales[2 * field] >> 4);
            }
            for (int i = 0; i < 16; ++i) {
                to[i] = scale[0] * static_cast<float>(q[i] & 3) - minimum[0];
                to[32 + i] = scale[1] * static_cast<float>((q[i] >> 2) & 3) - minimum[1];
                to[64 + i] = scale[2] * static_cast<float>((q[i] >> 4) & 3) - minimum[2];
                to[96 + i] = scale[3] * static_cast<float>(q[i] >> 6) - minimum[3];
            }
        }
    }
}

void unpack_q3_k(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 110, into += 256) {
        const float d = half_at(blocks + 108);
        float scales[16];
        for (unsigned i = 0; i < 16; ++i) {
            const unsigned low = (blocks[96 + i % 8] >> (4 * (i / 8))) & 15U;
            const unsigned high = (blocks[104 + i % 4] >> (2 * (i / 4))) & 3U;
            scales[i] = d * static_cast<float>(static_cast<int>(low | high << 4U) - 32);
        }
        for (int part = 0; part < 4; ++part) {  // of 16 bytes, with four fields of 2 bits
            const std::uint8_t* q = blocks + 32 + 16 * part;
            const std::uint8_t* high = blocks + 16 * (part % 2);
            const int bit = 4 * (part / 2);
            const float* scale = scales + 8 * (part / 2) + part % 2;
            float* to = into + 128 * (part / 2) + 16 * (part % 2);
            for (int i = 0; i < 16; ++i) {
                const int bits = high[i] >> bit;  // a bit that is not set takes 4 off
                to[i] = scale[0] * static_cast<float>((q[i] & 3) + (bits & 1) * 4 - 4);
                to[32 + i] = scale[2] * static_cast<float>(((q[i] >> 2) & 3) + (bits & 2) * 2 - 4);
                to[64 + i] = scale[4] * static_cast<float>(((q[i] >> 4) & 3) + (bits & 4) - 4);
                to[96 + i] = scale[6] * static_cast<float>((q[i] >> 6) + ((bits & 8) >> 1) - 4);
            }
        }
    }
}

void unpack_q4_k(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
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

void unpack_q5_k(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
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

void unpack_q6_k(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 210, into += 256) {
        const float d = half_at(blocks + 208);
        for (int half = 0; half < 2; ++half) {
            const std::uint8_t* scales = blocks + 192 + 8 * half;
            const std::uint8_t* low = blocks + 64 * half;
            const std::uint8_t* high = blocks + 128 + 32 * half;
            float* to = into + 128 * half;
            for (int part = 0; part < 2; ++part, low += 16, high += 16, to += 16) {
                float scale[4];
                for (int field = 0; field < 4; ++field)
                    scale[field] = d * static_cast<float>(static_cast<std::int8_t>(scales[2 * field + part]));
                for (int i = 0; i < 16; ++i) {
                    const int first = low[i], second = low[32 + i], top = high[i];
                    to[i] = scale[0] * static_cast<float>(((first & 15) | (top & 3) << 4) - 32);
                    to[32 + i] = scale[1] * static_cast<float>(((second & 15) | (top & 12) << 2) - 32);
                    to[64 + i] = scale[2] * static_cast<float>((first >> 4 | (top & 48)) - 32);
                    to[96 + i] = scale[3] * static_cast<float>((second >> 4 | (top & 192) >> 2) - 32);
                }
            }
        }
    }
}

}  // namespace headscope::checkpoint::gguf
