// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Small floating-point types as float32, exactly, and streams of codes of a few bits. Inline: unpacking spends its time
// here.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// OCP's E2M1, by code.
inline constexpr std::array<float, 16> e2m1_values{0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                                   -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};
/// OCP's E4M3, by byte: bias 7, no infinity, NaN at 0x7F and 0xFF.
extern const std::array<float, 256> e4m3_values;
/// Powers of two, by byte: 2^(e - 127); 255 is NaN.
extern const std::array<float, 256> e8m0_values;

float float16_value(std::uint16_t bits);

/// The numbers of one stored tensor as float32. `type` is F32, F16, BF16, F8_E4M3 or F8_E8M0. Does not own the bytes.
class Numbers {
public:
    Numbers(std::span<const std::byte> bytes, DataType type);

    std::size_t size() const noexcept { return size_; }
    float operator[](std::size_t i) const;
    /// Index of the first number that is NaN or infinite; size() if all are finite.
    std::size_t first_not_finite() const;

private:
    const std::byte* bytes_;
    DataType type_;
    std::size_t size_;
};

/// Word `i` of 32 bits.
inline std::uint32_t word_at(const std::byte* bytes, std::size_t i) {
    std::uint32_t word;
    std::memcpy(&word, bytes + 4 * i, 4);
    return word;
}

/// Value `i` of a stream of `bits`-bit codes in words that lie `stride` words apart.
inline std::uint32_t code_at(const std::byte* bytes, std::size_t stride, unsigned bits, std::size_t i) {
    const std::size_t bit = i * bits, word = bit / 32;
    const unsigned offset = bit % 32;
    std::uint32_t code = word_at(bytes, word * stride) >> offset;
    if (offset + bits > 32) code |= word_at(bytes, (word + 1) * stride) << (32 - offset);
    return code & ((1U << bits) - 1);
}

/// The first `count` codes of a stream of 1 to 8 bits. Reads whole words: `bytes` holds ceil(count bits / 32) of them.
void unpack_codes(const std::byte* bytes, unsigned bits, std::size_t count, std::uint8_t* into);

}  // namespace headscope::checkpoint
