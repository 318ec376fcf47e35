// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstring>

#include "core/checkpoint/gguf/blocks/stored_numbers.h"
#include "core/checkpoint/gguf/blocks/unpack.h"

namespace headscope::checkpoint::gguf {

void unpack_f32(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    if (count != 0) std::memcpy(into, blocks, static_cast<std::size_t>(count) * sizeof(float));
}

void unpack_f16(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (std::int64_t i = 0; i < count; ++i) into[i] = half_at(blocks + 2 * i);
}

void unpack_bf16(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (std::int64_t i = 0; i < count; ++i)
        into[i] = std::bit_cast<float>(static_cast<std::uint32_t>(word16(blocks + 2 * i)) << 16U);
}

void unpack_q4_0(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 18, into += 32) {
        const float d = half_at(blocks);
        const std::uint8_t* q = blocks + 2;
        for (int i = 0; i < 16; ++i) into[i] = d * static_cast<float>((q[i] & 15) - 8);
        for (int i = 0; i < 16; ++i) into[16 + i] = d * static_cast<float>((q[i] >> 4) - 8);
    }
}

void unpack_q4_1(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 20, into += 32) {
        const float d = half_at(blocks), m = half_at(blocks + 2);
        const std::uint8_t* q = blocks + 4;
        for (int i = 0; i < 16; ++i) into[i] = d * static_cast<float>(q[i] & 15) + m;
        for (int i = 0; i < 16; ++i) into[16 + i] = d * static_cast<float>(q[i] >> 4) + m;
    }
}

void unpack_q5_0(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 22, into += 32) {
        const float d = half_at(blocks);
        const std::uint32_t high = word32(blocks + 2);
        const std::uint8_t* q = blocks + 6;
        for (unsigned i = 0; i < 16; ++i)
            into[i] = d * static_cast<float>(static_cast<int>((q[i] & 15U) | ((high >> i) & 1U) << 4U) - 16);
        for (unsigned i = 0; i < 16; ++i)
            into[16 + i] =
                d * static_cast<float>(static_cast<int>((q[i] >> 4U) | ((high >> (16 + i)) & 1U) << 4U) - 16);
    }
}

void unpack_q5_1(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 24, into += 32) {
        const float d = half_at(blocks), m = half_at(blocks + 2);
        const std::uint32_t high = word32(blocks + 4);
        const std::uint8_t* q = blocks + 8;
        for (unsigned i = 0; i < 16; ++i)
            into[i] = d * static_cast<float>(static_cast<int>((q[i] & 15U) | ((high >> i) & 1U) << 4U)) + m;
        for (unsigned i = 0; i < 16; ++i)
            into[16 + i] = d * static_cast<float>(static_cast<int>((q[i] >> 4U) | ((high >> (16 + i)) & 1U) << 4U)) + m;
    }
}

void unpack_q8_0(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 34, into += 32) {
        const float d = half_at(blocks);
        for (int i = 0; i < 32; ++i) into[i] = static_cast<float>(static_cast<std::int8_t>(blocks[2 + i])) * d;
    }
}

}  // namespace headscope::checkpoint::gguf
