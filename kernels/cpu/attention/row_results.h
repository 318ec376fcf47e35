// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Rows' states between tiles, in float64, and what becomes of them at a row's end. Compiled for the baseline processor
// only; called once per row and tile.

#include <cstdint>

#include "kernels/cpu/attention/sequence.h"
#include "kernels/normaliser.h"

namespace headscope::kernels::cpu {

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
/// Moves a row's sums to a new maximum; returns the factor by which weights shrink. T first, since it needs the old Z.
float raise_maximum(OnlineRow& row, float maximum);

/// Results of a row, from its constants.
struct RowResult {
    float shift = 0.0F, factor = 0.0F;
    float constant = 0.0F;  ///< as Statistics::row_constant
    double entropy = 0.0, squares = 0.0, mass = 0.0, sink_share = 0.0;
};
/// `sink_logit`: null, or the row's logit without a value (base 2). A row without pairs gives weights of 0.
RowResult finish_softmax(const OnlineRow& row, const float* sink_logit);

/// Factor of the sum of 2^(t - row.maximum) v.
float output_factor(const OnlineRow& row, const float* sink_logit);

/// Sums over a row's weights, for normalizers whose first pass does not provide them.
struct RowSums {
    double mass = 0.0, squares = 0.0, entropy = 0.0, distance = 0.0;
};

/// From the scores that lie above the threshold: with v = t - maximum, `sum` of v over `count` of them. Returns the
/// next, larger threshold relative to the maximum (Newton's step, which is Michelot's), until nothing changes.
double sparsemax_step(double sum, std::int64_t count, double threshold, const double* sink);
/// `per_order`: shift one over the sum of s, factor one over that of the second order.
RowResult finish_taylor(const OnlineRow& row, bool per_order);

/// Shift 0 and factor 1, or 0 for a row that sees no key.
RowResult finish_sigmoid(const OnlineRow& row);

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
EntmaxStep entmax_step(const EntmaxSums& sums, double sink);

/// The row's constants from its threshold relative to the maximum.
RowResult finish_threshold(float maximum, double threshold, double sink_share, std::int64_t pairs);

}  // namespace headscope::kernels::cpu
