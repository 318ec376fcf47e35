// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Inside of kernels/tiles.h: one rectangle of one head, with vector instructions chosen at run time. Nothing is checked
// here. Any thread; memory: one packed copy of the rectangle's keys.

#include <cstdint>

#include "kernels/attention.h"

namespace headscope::kernels {

struct TileJob {
    const AttentionInput* input = nullptr;
    std::int64_t b = 0, h = 0;
    std::int64_t q_begin = 0, q_end = 0, k_begin = 0, k_end = 0;
    const float* row_constant = nullptr;  ///< [Lq] of this head; null: scores are wanted, not weights
    float* out = nullptr;                 ///< [q_end - q_begin, k_end - k_begin]
};

/// Weights (0 where not allowed) or scores (-inf where not allowed) of the rectangle.
void compute_tile(const TileJob& job);

/// sum[n] += row[n]; maximum[n] = max(maximum[n], row[n]) for n < size.
void add_and_raise(const float* row, std::int64_t size, float* sum, float* maximum);

}  // namespace headscope::kernels
