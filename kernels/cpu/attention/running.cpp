// SPDX-License-Identifier: GPL-3.0-or-later
// Running attention on the processor: a head for each task, forward; a key head, backward.
#include "kernels/cpu/attention/running.h"

#include "kernels/backend.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/views.h"
#include "kernels/cpu/attention/workspace.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/parallel.h"

namespace headscope::kernels::cpu {
namespace {

/// Shares out `count` tasks, each with memory of its worker's own.
template <class Body>
void share_out(const RunningInput& input, std::int64_t count, std::int64_t floats, const Body& body) {
    Scratch scratch(floats);
    parallel_for(count, [&](std::int64_t index, int worker) {
        check_cancelled(input.cancel);
        const FlushDenormals guard;
        body(index, scratch.of(worker));
    });
    check_cancelled(input.cancel);
    note_target();
}

RunningTask task_of(const RunningInput& input, std::int64_t b, std::int64_t head, std::int64_t group) {
    RunningTask task;
    task.query = matrix_of(input.query, b);
    task.key = matrix_of(input.key, b);
    task.value = matrix_of(input.value, b);
    task.head = head;
    task.group = group;
    task.key_head = head / (input.query.heads / input.key.heads);
    task.length = input.query.length;
    task.real = input.lengths.empty() ? task.length : input.lengths[static_cast<std::size_t>(b)];
    task.key_size = input.query.size;
    task.value_size = input.value.size;
    task.scale = static_cast<float>(input.scale);
    task.cancel = input.cancel;
    return task;
}

RunningRows rows_at(const RunningRows& rows, std::int64_t offset) {
    if (rows.score == nullptr) return {};
    return {rows.score + offset, rows.maximum + offset, rows.denominator + offset};
}

}  // namespace

void running_forward_cpu(const RunningInput& input, const MutableView& output, const RunningRows& rows,
                         const RunningState& state) {
    const std::int64_t heads = input.query.heads, size = input.value.size;
    share_out(input, input.query.batch * heads, running_scratch(input.query.size, size, 1),
              [&](std::int64_t index, float* scratch) {
                  const std::int64_t b = index / heads, h = index % heads;
                  RunningTask task = task_of(input, b, h, 1);
                  task.rows = rows_at(rows, index * input.query.length);
                  task.output = target_of(output, b);
                  if (state.numerator != nullptr)
                      task.state = {state.numerator + index * size, state.denominator + index, state.maximum + index};
                  task.scratch = scratch;
                  running_forward_task(task);
              });
}

void running_backward_cpu(const RunningInput& input, const RunningRows& rows, const TensorView& output,
                          const TensorView& output_gradient, const AttentionGradients& gradients) {
    const std::int64_t heads = input.query.heads, groups = input.key.heads, group = heads / groups;
    share_out(input, input.query.batch * groups, running_scratch(input.query.size, input.value.size, group),
              [&](std::int64_t index, float* scratch) {
                  const std::int64_t b = index / groups, h = index % groups * group;
                  RunningTask task = task_of(input, b, h, group);
                  task.rows = rows_at(rows, (b * heads + h) * input.query.length);
                  task.forward_output = matrix_of(output, b);
                  task.output_gradient = matrix_of(output_gradient, b);
                  task.query_gradient = target_of(gradients.query, b);
                  task.key_gradient = target_of(gradients.key, b);
                  task.value_gradient = target_of(gradients.value, b);
                  task.scratch = scratch;
                  running_backward_task(task);
              });
}

}  // namespace headscope::kernels::cpu
