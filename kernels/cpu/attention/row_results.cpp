// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/attention/row_results.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headscope::kernels::cpu {

float raise_maximum(OnlineRow& row, float maximum) {
    const double gap = double{row.maximum} - double{maximum};
    const double a = std::exp2(gap);
    row.t = a > 0.0 ? a * (row.t + gap * row.z) : 0.0;
    row.z *= a;
    row.f *= a * a;
    row.maximum = maximum;
    return static_cast<float>(a);
}

RowResult finish_softmax(const OnlineRow& row, const float* sink_logit) {
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

float output_factor(const OnlineRow& row, const float* sink_logit) {
    const RowResult result = finish_softmax(row, sink_logit);
    return static_cast<float>(std::exp2(double{row.maximum} - double{result.shift}) * double{result.factor});
}

RowResult finish_taylor(const OnlineRow& row, bool per_order) {
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

RowResult finish_sigmoid(const OnlineRow& row) {
    RowResult result;
    result.factor = row.pairs > 0 ? 1.0F : 0.0F;
    result.constant = row.pairs > 0 ? 0.0F : std::numeric_limits<float>::infinity();
    return result;
}

double sparsemax_step(double sum, std::int64_t count, double threshold, const double* sink) {
    if (sink != nullptr && *sink > threshold) {
        sum += *sink;
        ++count;
    }
    if (std::isnan(sum)) return sum;  // ends the search: such a row has no threshold
    // Thresholds rise towards the root of a convex function; rounding may not turn the last step back.
    return count > 0 ? std::max(threshold, (sum - kLog2E) / static_cast<double>(count)) : threshold;
}

EntmaxStep entmax_step(const EntmaxSums& sums, double sink) {
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

RowResult finish_threshold(float maximum, double threshold, double sink_share, std::int64_t pairs) {
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

}  // namespace headscope::kernels::cpu
