// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Single numbers of views in float64, for references that are written as plain loops.

#include <bit>
#include <cstdint>

#include "kernels/attention_backward.h"

namespace headscope::kernels::reference {

inline double read(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
    const std::int64_t at = b * view.batch_stride + h * view.head_stride + i * view.row_stride + c;
    if (view.type == ElementType::float32) return static_cast<const float*>(view.data)[at];
    return std::bit_cast<float>(std::uint32_t{static_cast<const std::uint16_t*>(view.data)[at]} << 16U);
}

/// Rounded to the view's type; nothing where the view is not wanted.
inline void write(const MutableView& view, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c,
                  double value) {
    if (view.data == nullptr) return;
    const std::int64_t at = b * view.batch_stride + h * view.head_stride + i * view.row_stride + c;
    const auto single = static_cast<float>(value);
    if (view.type == ElementType::float32) {
        static_cast<float*>(view.data)[at] = single;
        return;
    }
    const auto bits = std::bit_cast<std::uint32_t>(single);
    static_cast<std::uint16_t*>(view.data)[at] =
        static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

}  // namespace headscope::kernels::reference
