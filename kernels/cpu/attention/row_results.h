// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/summary/row_results.h, compiled for the baseline processor only; called once per row and tile.

#include <cstdint>

#include "kernels/cpu/attention/sequence.h"
#include "kernels/normaliser.h"
#include "kernels/summary/row_types.h"

namespace headscope::kernels::cpu {

/// Moves a row's sums to a new maximum; returns the factor by which weights shrink. T first, since it needs the old Z.
float raise_maximum(OnlineRow& row, float maximum);

/// `sink_logit`: null, or the row's logit without a value (base 2). A row without pairs gives weights of 0.
RowResult finish_softmax(const OnlineRow& row, const float* sink_logit);

/// Factor of the sum of 2^(t - row.maximum) v.
float output_factor(const OnlineRow& row, const float* sink_logit);

/// From the scores that lie above the threshold: with v = t - maximum, `sum` of v over `count` of them. Returns the
/// next, larger threshold relative to the maximum (Newton's step, which is Michelot's), until nothing changes.
double sparsemax_step(double sum, std::int64_t count, double threshold, const double* sink);
/// `per_order`: shift one over the sum of s, factor one over that of the second order.
RowResult finish_taylor(const OnlineRow& row, bool per_order);

/// Shift 0 and factor 1, or 0 for a row that sees no key.
RowResult finish_sigmoid(const OnlineRow& row);

EntmaxStep entmax_step(const EntmaxSums& sums, double sink);

/// The row's constants from its threshold relative to the maximum.
RowResult finish_threshold(float maximum, double threshold, double sink_share, std::int64_t pairs);

}  // namespace headscope::kernels::cpu
