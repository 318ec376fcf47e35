// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/checkpoint/gguf/blocks/stored_numbers.h"
#include "core/checkpoint/gguf/blocks/unpack.h"
#include "kernels/packed/grids.h"

namespace headscope::checkpoint::gguf {
namespace {

namespace grids = kernels::grids;

/// An entry times a scale, negative where its bit of `signs` is set.
template <std::size_t kSize>
void put(const std::array<std::int8_t, kSize>& entry, float scale, unsigned signs, float* into) {
    for (std::size_t i = 0; i < kSize; ++i) {
        const int value = ((signs >> i) & 1U) != 0 ? -entry[i] : entry[i];
        into[i] = scale * static_cast<float>(value);
    }
}

void put_shifted(const std::array<std::int8_t, 8>& entry, float scale, float delta, float* into) {
    for (std::size_t i = 0; i < 8; ++i) into[i] = scale * (static_cast<float>(entry[i]) + delta);
}

unsigned nibble(const std::uint8_t* bytes, int number) {
    return (bytes[number / 2] >> (4 * (number % 2))) & 15U;
}

constexpr float kDelta = 0.125F;

}  // namespace

void unpack_iq2_xxs(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 66) {
        const float d = half_at(blocks);
        for (int part = 0; part < 8; ++part) {
            const std::uint8_t* indices = blocks + 2 + 8 * part;
            const std::uint32_t word = word32(indices + 4);
            const float scale = d * (0.5F + static_cast<float>(word >> 28U)) * 0.25F;
            for (unsigned i = 0; i < 4; ++i, into += 8)
                put(grids::kIq2Xxs[indices[i]], scale, grids::kSigns[(word >> (7 * i)) & 127U], into);
        }
    }
}

void unpack_iq2_xs(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 74) {
        const float d = half_at(blocks);
        for (int i = 0; i < 32; ++i, into += 8) {
            const unsigned word = word16(blocks + 2 + 2 * i);
            const float scale = d * (0.5F + static_cast<float>(nibble(blocks + 66, i / 2))) * 0.25F;
            put(grids::kIq2Xs[word & 511U], scale, grids::kSigns[word >> 9U], into);
        }
    }
}

void unpack_iq2_s(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 82) {
        const float d = half_at(blocks);
        const std::uint8_t *low = blocks + 2, *signs = blocks + 34, *high = blocks + 66, *scales = blocks + 74;
        for (int i = 0; i < 32; ++i, into += 8) {
            const unsigned index = low[i] | ((high[i / 4] >> (2 * (i % 4))) & 3U) << 8U;
            const float scale = d * (0.5F + static_cast<float>(nibble(scales, i / 2))) * 0.25F;
            put(grids::kIq2S[index], scale, signs[i], into);
        }
    }
}

void unpack_iq3_xxs(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 98) {
        const float d = half_at(blocks);
        const std::uint8_t* indices = blocks + 2;
        for (int part = 0; part < 8; ++part) {
            const std::uint32_t word = word32(blocks + 66 + 4 * part);
            const float scale = d * (0.5F + static_cast<float>(word >> 28U)) * 0.5F;
            for (unsigned i = 0; i < 4; ++i, indices += 2, into += 8) {
                const unsigned signs = grids::kSigns[(word >> (7 * i)) & 127U];
                put(grids::kIq3Xxs[indices[0]], scale, signs, into);
                put(grids::kIq3Xxs[indices[1]], scale, signs >> 4U, into + 4);
            }
        }
    }
}

void unpack_iq3_s(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 110) {
        const float d = half_at(blocks);
        const std::uint8_t *low = blocks + 2, *high = blocks + 66, *signs = blocks + 74, *scales = blocks + 106;
        for (int i = 0; i < 64; ++i, into += 4) {
            const unsigned index = low[i] | ((high[i / 8] >> (i % 8)) & 1U) << 8U;
            const float scale = d * static_cast<float>(1 + 2 * nibble(scales, i / 8));
            put(grids::kIq3S[index], scale, signs[i / 2] >> (4U * (i % 2)), into);
        }
    }
}

void unpack_iq1_s(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 50) {
        const float d = half_at(blocks);
        for (int part = 0; part < 8; ++part) {
            const unsigned word = word16(blocks + 34 + 2 * part);
            const float scale = d * static_cast<float>(2 * ((word >> 12U) & 7U) + 1);
            const float delta = (word & 0x8000U) != 0 ? -kDelta : kDelta;
            for (unsigned i = 0; i < 4; ++i, into += 8) {
                const unsigned index = blocks[2 + 4 * part + static_cast<int>(i)] | ((word >> (3 * i)) & 7U) << 8U;
                put_shifted(grids::kIq1[index], scale, delta, into);
            }
        }
    }
}

void unpack_iq1_m(const std::uint8_t* __restrict blocks, std::int64_t count, float* __restrict into) {
    for (; count > 0; --count, blocks += 56) {
        const std::uint8_t* scales = blocks + 48;
        unsigned half = 0;
        for (unsigned i = 0; i < 4; ++i) half |= (word16(scales + 2 * i) >> 12U) << (4 * i);
        const float d = half_value(static_cast<std::uint16_t>(half));
        for (int i = 0; i < 32; ++i, into += 8) {
            const unsigned high = nibble(blocks + 32, i);
            const int part = i / 2;  // of 16 numbers
            const unsigned small = (word16(scales + 2 * (part / 4)) >> (3 * (part % 4))) & 7U;
            const float scale = d * static_cast<float>(2 * small + 1);
            put_shifted(grids::kIq1[blocks[i] | (high & 7U) << 8U], scale, (high & 8U) != 0 ? -kDelta : kDelta, into);
        }
    }
}

}  // namespace headscope::checkpoint::gguf
