// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Numbers inside blocks, at any address, little-endian.

#include <bit>
#include <cstdint>
#include <cstring>

namespace headscope::checkpoint::gguf {

inline std::uint16_t word16(const std::uint8_t* at) {
    std::uint16_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
}

inline std::uint32_t word32(const std::uint8_t* at) {
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
}

/// float16, exactly. Without branches, for loops over many; subnormals are scaled as integers, so that flushing them
/// (denormals are zero) changes nothing.
inline float half_value(std::uint16_t half) {
    const std::int32_t magnitude = half & 0x7FFF;
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16U;
    const std::int32_t is_small = (magnitude - 0x400) >> 31, is_infinite = (0x7BFF - magnitude) >> 31;  // 0 or -1
    const std::int32_t normal = (magnitude << 13) + 0x38000000 + (is_infinite & 0x38000000);
    const auto small = std::bit_cast<std::int32_t>(static_cast<float>(magnitude) * 0x1p-24F);
    const std::int32_t bits = (normal & ~is_small) | (small & is_small);
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) | sign);
}

inline float half_at(const std::uint8_t* at) {
    return half_value(word16(at));
}

}  // namespace headscope::checkpoint::gguf
