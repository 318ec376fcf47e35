// SPDX-License-Identifier: GPL-3.0-or-later
// Shares out the backward pass: a task is a value head, or some of its value columns where there are few heads. What
// several tasks add to (queries and keys of a group of heads, and numbers of a head whose columns are shared) each
// keeps apart, and is added up afterwards in their order. Shapes alone decide, so thread counts change no bit.
#include "kernels/cpu/recurrent/recurrent_backward.h"

#include <algorithm>
#include <type_traits>

#include "kernels/backend.h"
#include "kernels/check_recurrent.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/views.h"
#include "kernels/cpu/attention/workspace.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/parallel.h"

namespace headscope::kernels::cpu {
namespace {

constexpr std::int64_t kEnoughTasks = 8, kFewestColumns = 64;

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

template <class Matrix>
Matrix moved(Matrix matrix, std::int64_t elements) {
    if (matrix.data == nullptr) return matrix;
    const std::int64_t bytes = elements * (matrix.type == ElementType::float32 ? 4 : 2);
    if constexpr (std::is_same_v<Matrix, HeadMatrix>)
        matrix.data = static_cast<const char*>(matrix.data) + bytes;
    else
        matrix.data = static_cast<char*>(matrix.data) + bytes;
    return matrix;
}

/// The shares of `parts` tasks that follow each other in memory in one result, or no room where one task writes there.
class Shares {
public:
    Shares(bool wanted, std::int64_t tasks, std::int64_t parts, std::int64_t floats) : parts_(parts), floats_(floats) {
        if (wanted && parts > 1) memory_ = AlignedFloats(tasks * floats);
    }
    bool used() const { return memory_.data() != nullptr; }
    float* of(std::int64_t task) const { return memory_.data() + task * floats_; }
    void add(std::int64_t result, std::int64_t rows, std::int64_t size, const HeadTarget& target) const {
        add_parts({of(result * parts_), parts_, floats_, rows, size, target});
    }

private:
    std::int64_t parts_, floats_;
    AlignedFloats memory_;
};

class Backward {
public:
    Backward(const RecurrentInput& input, const TensorView& output_gradient, const float* pieces,
             const RecurrentGradients& gradients)
        : in_(input),
          rule_(*input.rule),
          outer_(output_gradient),
          pieces_(pieces),
          gradients_(gradients),
          batch_(input.key.batch),
          heads_(input.value.heads),
          groups_(input.key.heads),
          length_(input.key.length),
          piece_count_(recurrent_pieces(rule_, length_)),
          columns_(columns_of(batch_ * heads_, input.value.size)),
          slices_(divide_up(input.value.size, columns_)),
          tasks_(batch_ * heads_ * slices_),
          query_(gradients.query.data != nullptr, tasks_, heads_ / groups_ * slices_, length_ * input.key.size),
          key_(gradients.key.data != nullptr, tasks_, heads_ / groups_ * slices_, length_ * input.key.size),
          write_(gradients.write != nullptr, tasks_, slices_, length_),
          decay_(gradients.log_decay != nullptr, tasks_, slices_, length_),
          kept_(gradients.kept != nullptr, tasks_, slices_, rule_.chunks) {}

    void run() {
        Scratch scratch(recurrent_backward_scratch(in_.key.size, columns_, rule_.chunk_size > 0));
        parallel_for(tasks_, [&](std::int64_t index, int worker) {
            check_cancelled(in_.cancel);
            const FlushDenormals guard;
            RecurrentBackwardTask task = task_of(index);
            task.scratch = scratch.of(worker);
            recurrent_backward_task(task);
        });
        check_cancelled(in_.cancel);
        parallel_for(batch_ * groups_, [&](std::int64_t index, int) {
            const std::int64_t b = index / groups_, g = index % groups_;
            if (query_.used()) query_.add(index, length_, in_.key.size, head_of(gradients_.query, b, g));
            if (key_.used()) key_.add(index, length_, in_.key.size, head_of(gradients_.key, b, g));
        });
        const auto numbers = [](const Shares& shares, std::int64_t site, std::int64_t count, float* to) {
            if (shares.used()) shares.add(site, 1, count, {to + site * count, ElementType::float32, 0, 0});
        };
        for (std::int64_t site = 0; site < batch_ * heads_; ++site) {
            numbers(write_, site, length_, gradients_.write);
            numbers(decay_, site, length_, gradients_.log_decay);
            numbers(kept_, site, rule_.chunks, gradients_.kept);
        }
        note_target();
    }

private:
    static std::int64_t columns_of(std::int64_t heads, std::int64_t columns) {
        const std::int64_t slices = std::min(kEnoughTasks / heads, columns / kFewestColumns);
        return pad_to_line(divide_up(columns, std::max<std::int64_t>(slices, 1)));
    }

    static HeadTarget head_of(const MutableView& view, std::int64_t b, std::int64_t head) {
        return moved(target_of(view, b), head * view.head_stride);
    }

    /// Target of a task: its own share, or the result itself.
    HeadTarget share_of(const Shares& shares, std::int64_t task, const MutableView& view, std::int64_t b,
                        std::int64_t head) const {
        if (!shares.used()) return head_of(view, b, head);
        return {shares.of(task), ElementType::float32, 0, in_.key.size};
    }
    static float* share_of(const Shares& shares, std::int64_t task, float* all, std::int64_t at) {
        if (shares.used()) return shares.of(task);
        return all != nullptr ? all + at : nullptr;
    }

    RecurrentBackwardTask task_of(std::int64_t index) const {
        const std::int64_t site = index / slices_, b = site / heads_, h = site % heads_;
        const std::int64_t key_head = h / (heads_ / groups_), first = index % slices_ * columns_;
        RecurrentBackwardTask task;
        task.query = matrix_of(in_.query, b);
        task.key = matrix_of(in_.key, b);
        if (in_.write.data != nullptr) task.write = matrix_of(in_.write, b);
        if (rule_.decay != Decay::none) task.log_decay = matrix_of(in_.log_decay, b);
        task.value = moved(matrix_of(in_.value, b), first);
        task.output_gradient = moved(matrix_of(outer_, b), first);
        task.head = h;
        task.key_head = key_head;
        task.length = length_;
        task.real = recurrent_tokens(rule_, b, length_);
        task.key_size = in_.key.size;
        task.value_size = in_.value.size;
        task.columns = std::min(columns_, in_.value.size - first);
        task.scale = static_cast<float>(rule_.scale);
        task.delta = rule_.delta;
        task.chunk_size = rule_.chunk_size;
        if (rule_.chunk_size > 0) task.kept = rule_.kept.data() + site * rule_.chunks;
        task.decays_dropped = rule_.decays_dropped;
        task.reads_own_chunk = rule_.reads_own_chunk;
        task.dropped_too = gradients_.dropped_too;
        task.pieces = pieces_ + site * piece_count_ * in_.key.size * in_.value.size + first;
        task.cancel = in_.cancel;
        task.query_gradient = share_of(query_, index, gradients_.query, b, key_head);
        task.key_gradient = share_of(key_, index, gradients_.key, b, key_head);
        task.value_gradient = moved(target_of(gradients_.value, b), first);
        task.write_gradient = share_of(write_, index, gradients_.write, site * length_);
        task.decay_gradient = share_of(decay_, index, gradients_.log_decay, site * length_);
        task.kept_gradient = share_of(kept_, index, gradients_.kept, site * rule_.chunks);
        return task;
    }

    const RecurrentInput& in_;
    const RecurrentRule& rule_;
    const TensorView& outer_;
    const float* pieces_;
    const RecurrentGradients& gradients_;
    std::int64_t batch_, heads_, groups_, length_, piece_count_, columns_, slices_, tasks_;
    Shares query_, key_, write_, decay_, kept_;
};

}  // namespace

void recurrent_backward_cpu(const RecurrentInput& input, const TensorView& output_gradient, const float* pieces,
                            const RecurrentGradients& gradients) {
    if (input.rule->decay == Decay::channel)
        throw Error("recurrent backward", "one log decay a token and head, or none",
                    "one for each number of the key, whose gradients the reference backend alone has");
    Backward(input, output_gradient, pieces, gradients).run();
}

}  // namespace headscope::kernels::cpu
