// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Rows' states between tiles, in float64, and what a row ends with.

#include <cstdint>

#include "kernels/summary/both.h"

namespace headscope::kernels {

/// Sums over the scores of one row in one tile.
struct TileSums {
    float z = 0.0F, t = 0.0F, f = 0.0F, squared_deviations = 0.0F;
};

/// A softmax row so far: maximum m, Z = sum 2^(t-m), T = sum (t-m) 2^(t-m), F = sum 4^(t-m). A Taylor row: Z the sum of
/// its terms, or of s with T that of the second order.
struct OnlineRow {
    float maximum = 0.0F;
    double z = 0.0, t = 0.0, f = 0.0;
    std::int64_t pairs = 0;
};

/// Results of a row, from its constants.
struct RowResult {
    float shift = 0.0F, factor = 0.0F;
    float constant = 0.0F;  ///< as Statistics::row_constant
    double entropy = 0.0, squares = 0.0, mass = 0.0, sink_share = 0.0;
};

/// Sums over a row's weights, for normalizers whose first pass does not provide them.
struct RowSums {
    double mass = 0.0, squares = 0.0, entropy = 0.0, distance = 0.0;
};

/// Sums of the distances of scores above a threshold, in base 2.
struct EntmaxSums {
    double sum = 0.0, squares = 0.0;
    float least = 0.0F;
    std::int64_t count = 0;
};

/// How far the threshold rises. `last`: it is the exact one of these scores, all of which stay above it. `sink`: how
/// far the sink logit lies above the threshold so far; -inf without one.
struct EntmaxStep {
    double rise = 0.0;
    bool last = false;
};

}  // namespace headscope::kernels
