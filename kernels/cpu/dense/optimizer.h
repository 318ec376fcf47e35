// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/optimizer.h for one piece of the flat vectors; checked before.

#include <cstdint>

#include "kernels/optimizer.h"

namespace headscope::kernels::cpu {

/// The constants of one update, as float32.
struct AdamWFactors {
    float gradient_scale, keep_first, add_first, keep_second, add_second;
    float step;          ///< rate / (1 - beta1^t)
    float second_scale;  ///< 1 / sqrt(1 - beta2^t)
    float epsilon;
    float shrink;  ///< 1 - rate * decay
    bool clear;
};

struct AdamWPiece {
    const FlatParameters* parameters = nullptr;
    AdamWFactors factors{};
    std::int64_t begin = 0, end = 0;
};
void adamw_piece(const AdamWPiece& piece);

struct NormPiece {
    const void* values = nullptr;
    ElementType type = ElementType::float32;
    std::int64_t begin = 0, end = 0;
    double* sum = nullptr;
};
void squared_norm_piece(const NormPiece& piece);

}  // namespace headscope::kernels::cpu
