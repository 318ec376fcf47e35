// SPDX-License-Identifier: GPL-3.0-or-later
// Checks, then the operators' rows of kernels/operators.h.
#include "kernels/running.h"

#include <algorithm>
#include <limits>
#include <string>

#include "kernels/backend.h"
#include "kernels/operators.h"
#include "kernels/score_pairs.h"

namespace headscope::kernels {
namespace {

void expect(bool condition, const char* where, const char* expected, const char* found) {
    if (!condition) throw Error(where, expected, found);
}

bool same_shape(const TensorView& view, const TensorView& query, std::int64_t size) {
    return view.data != nullptr && view.batch == query.batch && view.heads == query.heads &&
           view.length == query.length && view.size == size;
}

void check(const RunningInput& input) {
    ScoreRule rule;
    rule.scale = input.scale;
    check_attention({input.query, input.key, input.value, &rule, nullptr});
    expect(input.key.length == input.query.length, "key", "as many as queries", "another number");
    const auto batch = static_cast<std::size_t>(input.query.batch);
    expect(input.lengths.empty() || input.lengths.size() == batch, "lengths", "one a sequence, or none",
           "another number");
    for (const std::int64_t length : input.lengths)
        expect(length >= 0 && length <= input.query.length, "lengths", "from 0 to the length", "another");
}

}  // namespace

void clear_running_state(const RunningState& state, std::int64_t heads, std::int64_t value_size) {
    std::fill_n(state.numerator, heads * value_size, 0.0F);
    std::fill_n(state.denominator, heads, 0.0F);
    std::fill_n(state.maximum, heads, -std::numeric_limits<float>::infinity());
}

void running_forward(const RunningInput& input, const MutableView& output, const RunningRows& rows,
                     const RunningState& state) {
    check(input);
    const bool whole = (rows.maximum != nullptr) == (rows.score != nullptr) &&
                       (rows.denominator != nullptr) == (rows.score != nullptr);
    expect(whole, "rows", "three vectors or none", "some");
    expect((state.denominator != nullptr) == (state.numerator != nullptr) &&
               (state.maximum != nullptr) == (state.numerator != nullptr),
           "state", "three vectors or none", "some");
    kRunningForward(input.query.device, input, output, rows, state);
}

void running_backward(const RunningInput& input, const RunningRows& rows, const TensorView& output,
                      const TensorView& output_gradient, const AttentionGradients& gradients) {
    check(input);
    expect(rows.score != nullptr && rows.maximum != nullptr && rows.denominator != nullptr, "rows", "three vectors",
           "a null pointer");
    expect(same_shape(output, input.query, input.value.size), "output", "[batch, heads, length, value size]",
           "another shape, or no data");
    expect(same_shape(output_gradient, input.query, input.value.size), "output gradient",
           "[batch, heads, length, value size]", "another shape, or no data");
    kRunningBackward(input.query.device, input, rows, output, output_gradient, gradients);
}

}  // namespace headscope::kernels
