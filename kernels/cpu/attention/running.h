// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/running.h for processors, checked before: the pieces of work, one head (backwards: one key head) each.

#include <atomic>
#include <cstdint>

#include "kernels/cpu/attention/backward.h"
#include "kernels/cpu/attention/sequence.h"
#include "kernels/running.h"

namespace headscope::kernels::cpu {

void running_forward_cpu(const RunningInput& input, const MutableView& output, const RunningRows& rows,
                         const RunningState& state);
void running_backward_cpu(const RunningInput& input, const RunningRows& rows, const TensorView& output,
                          const TensorView& output_gradient, const AttentionGradients& gradients);

inline constexpr std::int64_t kRunningChunk = 64;  ///< tokens that are read together

struct RunningTask {
    HeadMatrix query, key, value;  ///< of one sequence
    std::int64_t head = 0;         ///< backwards: the first of `group` heads
    std::int64_t key_head = 0, group = 1;
    std::int64_t length = 0, real = 0;  ///< tokens, and those that are no padding
    std::int64_t key_size = 0, value_size = 0;
    float scale = 1.0F;
    RunningRows rows;  ///< at this head; backwards the others of the group follow
    const std::atomic<bool>* cancel = nullptr;
    float* scratch = nullptr;
    // Forwards:
    HeadTarget output;
    RunningState state;  ///< of this head
    // Backwards:
    HeadMatrix forward_output, output_gradient;
    HeadTarget query_gradient, key_gradient, value_gradient;
};

std::int64_t running_scratch(std::int64_t key_size, std::int64_t value_size, std::int64_t group);
void running_forward_task(const RunningTask& task);
void running_backward_task(const RunningTask& task);

/// The sum, over the pairs j <= i of queries [query, query + rows), of the standard deviation across heads (divisor
/// heads - 1) of exp(s_j - maximum_i) factor_i. All three [heads, stride], running maxima and one over denominators.
struct SpreadTask {
    const float *score = nullptr, *maximum = nullptr, *factor = nullptr;
    std::int64_t heads = 0, stride = 0;
    std::int64_t query = 0, rows = 0;
    const std::atomic<bool>* cancel = nullptr;
    float* scratch = nullptr;
};
inline constexpr std::int64_t kSpreadRows = 64;
std::int64_t spread_scratch(std::int64_t heads);
double running_spread(const SpreadTask& task);

}  // namespace headscope::kernels::cpu
