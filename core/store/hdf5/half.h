// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <bit>
#include <cstdint>

namespace headscope::store {

/// IEEE 754 binary16 bits of a float32, rounded to nearest even; beyond 65504 infinite.
inline std::uint16_t half_from_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);   // NaN
    if (magnitude >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // rounds past 65504
    if (magnitude < 0x38800000U) {
        // Subnormal halves are multiples of 2^-24: adding 0.5 puts that at the end of the float's mantissa, rounded.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
    }
    const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13U) & 1U);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13U));
}

inline float float_from_half(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000U) << 16U;
    const std::uint32_t exponent = (half >> 10U) & 0x1FU;
    const std::uint32_t mantissa = half & 0x3FFU;
    if (exponent == 0) {
        const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
        return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
    }
    const std::uint32_t wide = exponent == 0x1F ? 0xFFU : exponent + 112U;
    return std::bit_cast<float>(sign | (wide << 23U) | (mantissa << 13U));
}

}  // namespace headscope::store
