// SPDX-License-Identifier: GPL-3.0-or-later
// Checks, then the operator's row of kernels/operators.h.
#include "kernels/attention.h"

#include <string>

#include "kernels/backend.h"
#include "kernels/operators.h"
#include "kernels/score_pairs.h"

namespace headscope::kernels {
namespace {

void check_output(const AttentionInput& input, OutputView output) {
    const bool overlaps = output.data != nullptr && (output.data == input.query.data || output.data == input.key.data ||
                                                     output.data == input.value.data);
    if (overlaps) throw Error("output", "memory of its own", "an input's");
}

}  // namespace

void attention(const AttentionInput& input, OutputView output, const StatisticsRequest* request,
               Statistics* statistics) {
    check_attention(input);
    check_output(input, output);
    if (input.rule->dropout.share > 0.0)
        throw Error("attention dropout", "none outside of training", std::to_string(input.rule->dropout.share));
    if ((request == nullptr) != (statistics == nullptr)) {
        throw Error("statistics", "a request and a place for its statistics, or neither",
                    request == nullptr ? "no request" : "no place");
    }
    if (request != nullptr) check_statistics(input, *request);
    kAttention(input.query.device, input, output, request, statistics);
}

}  // namespace headscope::kernels
