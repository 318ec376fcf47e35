// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Results at a row's end, in float64: the same arithmetic for the cpu backend and for GPU kernels. SIMD code calls them
// through cpu/attention/row_results.h, which is compiled for the baseline processor: inlined into a SIMD target, their
// bits would depend on it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/summary/row_types.h"

namespace headscope::kernels::summary {

/// Moves a row's sums to a new maximum; returns the factor by which weights shrink. T first, since it needs the old Z.
HEADSCOPE_BOTH float raise_maximum(OnlineRow& row, float maximum) {
    const double gap = double{row.maximum} - double{maximum};
    const double a = std::exp2(gap);
    row.t = a > 0.0 ? a * (row.t + gap * row.z) : 0.0;
    row.z *= a;
    row.f *= a * a;
    row.maximum = maximum;
    return static_cast<float>(a);
}

/// `sink_logit`: null, or the row's logit without a value (base 2). A row without pairs gives weights of 0.
HEADSCOPE_BOTH RowResult finish_softmax(const OnlineRow& row, const float* sink_logit) {
    RowResult result;
    if (row.pairs == 0) {
        result.constant = std::numeric_limits<float>::infinity();
        return result;
    }
    OnlineRow end = row;
    double sink = 0.0;
    if (sink_logit != nullptr) {
        if (*sink_logit > end.maximum) raise_maximum(end, *sink_logit);
        sink = std::exp2(double{*sink_logit} - double{end.maximum});
    }
    const double total = end.z + sink, log_total = std::log2(total);
    result.shift = end.maximum;
    result.factor = static_cast<float>(1.0 / total);
    result.constant = static_cast<float>(kLn2 * (double{end.maximum} + log_total));
    result.mass = end.z / total;
    result.entropy = kLn2 * (log_total * result.mass - end.t / total);
    result.squares = end.f / (total * total);
    result.sink_share = sink / total;
    return result;
}

/// Factor of the sum of 2^(t - row.maximum) v.
HEADSCOPE_BOTH float output_factor(const OnlineRow& row, const float* sink_logit) {
    const RowResult result = finish_softmax(row, sink_logit);
    return static_cast<float>(std::exp2(double{row.maximum} - double{result.shift}) * double{result.factor});
}

/// From the scores that lie above the threshold: with v = t - maximum, `sum` of v over `count` of them. Returns the
/// next, larger threshold relative to the maximum (Newton's step, which is Michelot's), until nothing changes.
HEADSCOPE_BOTH double sparsemax_step(double sum, std::int64_t count, double threshold, const double* sink) {
    if (sink != nullptr && *sink > threshold) {
        sum += *sink;
        ++count;
    }
    if (std::isnan(sum)) return sum;  // ends the search: such a row has no threshold
    // Thresholds rise towards the root of a convex function; rounding may not turn the last step back.
    return count > 0 ? std::max(threshold, (sum - kLog2E) / static_cast<double>(count)) : threshold;
}

/// `per_order`: shift one over the sum of s, factor one over that of the second order.
HEADSCOPE_BOTH RowResult finish_taylor(const OnlineRow& row, bool per_order) {
    RowResult result;
    if (row.pairs == 0) {
        result.constant = std::numeric_limits<float>::infinity();
        return result;
    }
    const double denominator = per_order ? row.t : row.z;
    result.constant = static_cast<float>(denominator);
    result.factor = static_cast<float>(1.0 / denominator);
    if (per_order) result.shift = static_cast<float>(1.0 / row.z);
    return result;
}

/// Shift 0 and factor 1, or 0 for a row that sees no key.
HEADSCOPE_BOTH RowResult finish_sigmoid(const OnlineRow& row) {
    RowResult result;
    result.factor = row.pairs > 0 ? 1.0F : 0.0F;
    result.constant = row.pairs > 0 ? 0.0F : std::numeric_limits<float>::infinity();
    return result;
}

HEADSCOPE_BOTH EntmaxStep entmax_step(const EntmaxSums& sums, double sink) {
    // In base e and halves: x = ln 2 / 2 (t - threshold), of which the squares must sum to 1.
    constexpr double half = 0.5 * kLn2;
    double count = static_cast<double>(sums.count), first = half * sums.sum, second = half * half * sums.squares;
    double least = half * double{sums.least};
    if (sink > 0.0) {
        const double x = half * sink;
        count += 1.0;
        first += x;
        second += x * x;
        least = std::min(least, x);
    }
    if (std::isnan(first)) return {first, true};  // such a row has no threshold
    if (count == 0.0) return {0.0, true};
    // The threshold of just these scores: count d^2 - 2 first d + second - 1 = 0, in the form that does not cancel.
    const double inside = first * first - count * (second - 1.0);
    if (inside >= 0.0) {
        const double step = (second - 1.0) / (first + std::sqrt(inside));
        if (step < least) return {step / half, true};
    }
    // Newton's step for the norm of the x, which is convex in the threshold: never beyond the root.
    const double norm = std::sqrt(second);
    return {norm * (norm - 1.0) / first / half, false};
}

/// The row's constants from its threshold relative to the maximum.
HEADSCOPE_BOTH RowResult finish_threshold(float maximum, double threshold, double sink_share, std::int64_t pairs) {
    RowResult result;
    if (pairs == 0) {
        result.factor = std::numeric_limits<float>::max();
        result.constant = std::numeric_limits<float>::infinity();
        return result;
    }
    result.shift = maximum;
    result.factor = static_cast<float>(threshold);
    result.constant = static_cast<float>(kLn2 * (double{maximum} + threshold));
    result.sink_share = sink_share;
    return result;
}

}  // namespace headscope::kernels::summary
