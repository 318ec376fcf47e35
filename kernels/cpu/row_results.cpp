// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/row_results.h"

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

RowResult finish_sparsemax(float maximum, double threshold, const double* sink, std::int64_t pairs) {
    RowResult result;
    if (pairs == 0) {
        result.factor = std::numeric_limits<float>::max();
        result.constant = std::numeric_limits<float>::infinity();
        return result;
    }
    result.shift = maximum;
    result.factor = static_cast<float>(threshold);
    result.constant = static_cast<float>(kLn2 * (double{maximum} + threshold));
    if (sink != nullptr) result.sink_share = kLn2 * std::max(*sink - threshold, 0.0);
    return result;
}

}  // namespace headscope::kernels::cpu
