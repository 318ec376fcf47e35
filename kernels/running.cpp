// SPDX-License-Identifier: GPL-3.0-or-later
// Checks, then the backend that kernels/backend.h has chosen, a head for each task.
#include "kernels/running.h"

#include <algorithm>
#include <limits>
#include <string>

#include "kernels/backend.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/cpu/running.h"
#include "kernels/cpu/views.h"
#include "kernels/cpu/workspace.h"
#include "kernels/dispatch.h"
#include "kernels/parallel.h"
#include "kernels/reference/running.h"
#include "kernels/score_rule.h"

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

void check_cancelled(const RunningInput& input) {
    if (input.cancel != nullptr && input.cancel->load(std::memory_order_relaxed)) throw Cancelled();
}

/// Shares out `count` tasks, each with memory of its worker's own.
template <class Body>
void share_out(const RunningInput& input, std::int64_t count, std::int64_t floats, const Body& body) {
    std::vector<cpu::AlignedFloats> scratch(static_cast<std::size_t>(threads()));
    parallel_for(count, [&](std::int64_t index, int worker) {
        check_cancelled(input);
        const cpu::FlushDenormals guard;
        cpu::AlignedFloats& own = scratch[static_cast<std::size_t>(worker)];
        if (own.data() == nullptr) own = cpu::AlignedFloats(floats);
        body(index, own.data());
    });
    check_cancelled(input);
    cpu::note_target();
}

cpu::RunningTask task_of(const RunningInput& input, std::int64_t b, std::int64_t head, std::int64_t group) {
    cpu::RunningTask task;
    task.query = cpu::matrix_of(input.query, b);
    task.key = cpu::matrix_of(input.key, b);
    task.value = cpu::matrix_of(input.value, b);
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
    if (chosen_backend() == Backend::reference) {
        running_forward_reference(input, output, rows, state);
        note_backend("reference");
        return;
    }
    const std::int64_t heads = input.query.heads, size = input.value.size;
    share_out(input, input.query.batch * heads, cpu::running_scratch(input.query.size, size, 1),
              [&](std::int64_t index, float* scratch) {
                  const std::int64_t b = index / heads, h = index % heads;
                  cpu::RunningTask task = task_of(input, b, h, 1);
                  task.rows = rows_at(rows, index * input.query.length);
                  task.output = cpu::target_of(output, b);
                  if (state.numerator != nullptr)
                      task.state = {state.numerator + index * size, state.denominator + index, state.maximum + index};
                  task.scratch = scratch;
                  cpu::running_forward_task(task);
              });
    note_backend(cpu::last_target());
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
    if (chosen_backend() == Backend::reference) {
        running_backward_reference(input, output_gradient, gradients);
        note_backend("reference");
        return;
    }
    const std::int64_t heads = input.query.heads, groups = input.key.heads, group = heads / groups;
    share_out(input, input.query.batch * groups, cpu::running_scratch(input.query.size, input.value.size, group),
              [&](std::int64_t index, float* scratch) {
                  const std::int64_t b = index / groups, h = index % groups * group;
                  cpu::RunningTask task = task_of(input, b, h, group);
                  task.rows = rows_at(rows, (b * heads + h) * input.query.length);
                  task.forward_output = cpu::matrix_of(output, b);
                  task.output_gradient = cpu::matrix_of(output_gradient, b);
                  task.query_gradient = cpu::target_of(gradients.query, b);
                  task.key_gradient = cpu::target_of(gradients.key, b);
                  task.value_gradient = cpu::target_of(gradients.value, b);
                  task.scratch = scratch;
                  cpu::running_backward_task(task);
              });
    note_backend(cpu::last_target());
}

}  // namespace headscope::kernels
