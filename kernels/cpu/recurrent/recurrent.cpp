// SPDX-License-Identifier: GPL-3.0-or-later
// Shares recurrent attention out: heads and slices of their value columns forwards, heads and blocks of their rows for
// the implicit matrix. What a column or a row adds up to does not depend on its neighbours.
#include "kernels/cpu/recurrent/recurrent.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/backend.h"
#include "kernels/check_recurrent.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/views.h"
#include "kernels/cpu/attention/workspace.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/parallel.h"

namespace headscope::kernels::cpu {
namespace {

template <class Body>
void share_out(const RecurrentInput& input, std::int64_t count, std::int64_t floats, const Body& body) {
    Scratch scratch(floats);
    parallel_for(count, [&](std::int64_t index, int worker) {
        check_cancelled(input.cancel);
        const FlushDenormals guard;
        body(index, scratch.of(worker));
    });
    check_cancelled(input.cancel);
    note_target();
}

RecurrentHead head_of(const RecurrentInput& input, std::int64_t b, std::int64_t h) {
    const RecurrentRule& rule = *input.rule;
    RecurrentHead head;
    head.query = matrix_of(input.query, b);
    head.key = matrix_of(input.key, b);
    if (input.write.data != nullptr) head.write = matrix_of(input.write, b);
    if (rule.decay != Decay::none) head.log_decay = matrix_of(input.log_decay, b);
    head.head = h;
    head.key_head = h / (input.value.heads / input.key.heads);
    head.length = input.key.length;
    head.real = recurrent_tokens(rule, b, head.length);
    head.key_size = input.key.size;
    head.scale = static_cast<float>(rule.scale);
    if (input.direct != nullptr) head.direct = input.direct[h];
    head.delta = rule.delta;
    head.channels = rule.decay == Decay::channel;
    head.chunk_size = rule.chunk_size;
    head.chunk_begin = rule.chunk_begin;
    if (rule.chunk_size > 0) head.kept = rule.kept.data() + (b * input.value.heads + h) * rule.chunks;
    head.decays_dropped = rule.decays_dropped;
    head.reads_own_chunk = rule.reads_own_chunk;
    head.cancel = input.cancel;
    return head;
}

/// Value columns of a task. Many, because each slice reads all queries and keys; fewer where there are few heads. A
/// column's bits are the same in any slice.
std::int64_t slice_columns(std::int64_t heads, std::int64_t columns) {
    constexpr std::int64_t most = 256, least = 64;
    std::int64_t width = most;
    while (width > least && heads * ((columns + width - 1) / width) < 2 * threads()) width /= 2;
    return width;
}

/// Rows of one task that begin at `first`: they share their chunk.
std::int64_t rows_end(const RecurrentRule& rule, std::int64_t first, std::int64_t end) {
    return std::min(recurrent_chunk_end(rule, first, end), first + kImplicitRows);
}

}  // namespace

void recurrent_forward_cpu(const RecurrentInput& input, const MutableView& output, const RecurrentState& state,
                           float* pieces) {
    const RecurrentRule& rule = *input.rule;
    const std::int64_t heads = input.value.heads, columns = input.value.size, keys = input.key.size;
    const std::int64_t width = slice_columns(input.key.batch * heads, columns), slices = (columns + width - 1) / width;
    const std::int64_t decays = rule.decay == Decay::channel ? keys : 1, held = keys * columns;
    const std::int64_t of_pieces = recurrent_pieces(rule, input.key.length) * held;
    // Every slice reads what the first one will write.
    std::vector<float> decay;
    if (state.decay != nullptr) decay.assign(state.decay, state.decay + input.key.batch * heads * decays);
    share_out(input, input.key.batch * heads * slices, recurrent_scratch(keys, width),
              [&](std::int64_t n, float* scratch) {
                  const std::int64_t slice = n % slices, index = n / slices;
                  RecurrentTask task;
                  task.head = head_of(input, index / heads, index % heads);
                  task.value = matrix_of(input.value, index / heads);
                  task.output = target_of(output, index / heads);
                  task.value_size = columns;
                  task.first_column = slice * width;
                  task.columns = std::min(width, columns - task.first_column);
                  if (state.now != nullptr) task.now = state.now + index * held;
                  if (state.start != nullptr) task.start = state.start + index * held;
                  if (state.decay != nullptr) {
                      task.decay = decay.data() + index * decays;
                      if (slice == 0) task.decay_after = state.decay + index * decays;
                  }
                  if (pieces != nullptr) task.pieces = pieces + index * of_pieces;
                  task.scratch = scratch;
                  recurrent_forward_task(task);
              });
}

void implicit_weights_cpu(const RecurrentInput& input, std::int64_t b, std::int64_t h, std::int64_t q_begin,
                          std::int64_t q_end, std::int64_t k_begin, std::int64_t k_end, float* out) {
    const FlushDenormals guard;
    const AlignedFloats scratch(implicit_scratch(input.key.size));
    ImplicitTask task;
    task.head = head_of(input, b, h);
    task.key_begin = k_begin;
    task.key_end = k_end;
    task.out_stride = k_end - k_begin;
    task.scratch = scratch.data();
    for (task.first = q_begin; task.first < q_end; task.first += task.rows) {
        check_cancelled(input.cancel);
        task.rows = rows_end(*input.rule, task.first, q_end) - task.first;
        task.out = out + (task.first - q_begin) * task.out_stride;
        implicit_task(task);
    }
    check_cancelled(input.cancel);
}

void implicit_statistics_cpu(const RecurrentInput& input, ImplicitStatistics* statistics, float* dense) {
    const std::int64_t heads = input.value.heads, length = input.key.length;
    std::vector<std::int64_t> first{0};
    while (first.back() < length) first.push_back(rows_end(*input.rule, first.back(), length));
    const auto blocks = static_cast<std::int64_t>(first.size()) - 1, all = input.key.batch * heads;
    std::vector<ImplicitRow> rows(static_cast<std::size_t>(all * length));
    // Late rows are long: they begin first.
    share_out(input, all * blocks, implicit_scratch(input.key.size), [&](std::int64_t n, float* scratch) {
        const std::int64_t index = n % all;
        const auto block = static_cast<std::size_t>(blocks - 1 - n / all);
        ImplicitTask task;
        task.head = head_of(input, index / heads, index % heads);
        task.first = first[block];
        task.rows = first[block + 1] - task.first;
        task.key_end = length;
        task.out_stride = length;
        if (dense != nullptr) task.out = dense + (index * length + task.first) * length;
        task.statistics = rows.data() + index * length + task.first;
        task.scratch = scratch;
        implicit_task(task);
    });
    *statistics = {};
    for (std::int64_t index = 0; index < all; ++index) {
        double entropy = 0.0, squares = 0.0, counted = 0.0;
        for (std::int64_t i = 0; i < length; ++i) {
            const ImplicitRow& row = rows[static_cast<std::size_t>(index * length + i)];
            if (row.sum == 0.0) continue;
            counted += 1.0;
            entropy += std::log(row.sum) - row.logarithms / row.sum;
            squares += row.squares / (row.sum * row.sum);
        }
        statistics->entropy.push_back(entropy);
        statistics->entropy_row_mean.push_back(counted == 0.0 ? 0.0 : entropy / counted);
        statistics->concentration.push_back(std::sqrt(squares));
    }
}

}  // namespace headscope::kernels::cpu
