// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/summary/row_results.h"

#include "kernels/cpu/attention/row_results.h"

namespace headscope::kernels::cpu {

float raise_maximum(OnlineRow& row, float maximum) {
    return summary::raise_maximum(row, maximum);
}

RowResult finish_softmax(const OnlineRow& row, const float* sink_logit) {
    return summary::finish_softmax(row, sink_logit);
}

float output_factor(const OnlineRow& row, const float* sink_logit) {
    return summary::output_factor(row, sink_logit);
}

RowResult finish_taylor(const OnlineRow& row, bool per_order) {
    return summary::finish_taylor(row, per_order);
}

RowResult finish_sigmoid(const OnlineRow& row) {
    return summary::finish_sigmoid(row);
}

double sparsemax_step(double sum, std::int64_t count, double threshold, const double* sink) {
    return summary::sparsemax_step(sum, count, threshold, sink);
}

EntmaxStep entmax_step(const EntmaxSums& sums, double sink) {
    return summary::entmax_step(sums, sink);
}

RowResult finish_threshold(float maximum, double threshold, double sink_share, std::int64_t pairs) {
    return summary::finish_threshold(maximum, threshold, sink_share, pairs);
}

}  // namespace headscope::kernels::cpu
