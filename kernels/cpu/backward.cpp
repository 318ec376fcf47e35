// SPDX-License-Identifier: GPL-3.0-or-later
// The two passes of training: what is packed, who does what, and where few heads share their keys out.
#include "kernels/cpu/backward.h"

#include <algorithm>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/cpu/tasks.h"
#include "kernels/cpu/workspace.h"
#include "kernels/parallel.h"

namespace headscope::kernels::cpu {
namespace {

constexpr std::int64_t kForwardRows = 48;  // queries of a task; shapes alone decide, so thread counts change nothing
// Key heads of all sequences that keep a few threads busy; with fewer, keys are shared out in parts of this length.
constexpr std::int64_t kEnoughTasks = 8, kKeysOfPart = 768;

std::vector<SequencePlan> plans_of(const AttentionInput& input) {
    std::vector<SequencePlan> plans;
    plans.reserve(static_cast<std::size_t>(input.query.batch));
    for (std::int64_t b = 0; b < input.query.batch; ++b) plans.emplace_back(input, b);
    return plans;
}

void check_cancelled(const AttentionInput& input) {
    if (input.cancel != nullptr && input.cancel->load(std::memory_order_relaxed)) throw Cancelled();
}

/// Aligned memory for each worker, made when it is first asked for.
class Scratch {
public:
    explicit Scratch(std::int64_t floats) : floats_(floats), parts_(static_cast<std::size_t>(threads())) {}
    float* of(int worker) {
        AlignedFloats& part = parts_[static_cast<std::size_t>(worker)];
        if (part.data() == nullptr) part = AlignedFloats(floats_);
        return part.data();
    }

private:
    std::int64_t floats_;
    std::vector<AlignedFloats> parts_;
};

HeadMatrix matrix_of(const TensorView& view, std::int64_t b) {
    const std::int64_t bytes = view.type == ElementType::float32 ? 4 : 2;
    return {static_cast<const char*>(view.data) + b * view.batch_stride * bytes, view.type, view.head_stride,
            view.row_stride};
}

HeadTarget target_of(const MutableView& view, std::int64_t b) {
    if (view.data == nullptr) return {};
    const std::int64_t bytes = view.type == ElementType::float32 ? 4 : 2;
    return {static_cast<char*>(view.data) + b * view.batch_stride * bytes, view.type, view.head_stride,
            view.row_stride};
}

/// Parts of the keys of each head, by shapes alone; 1 when there are heads enough.
std::int64_t parts_of(const AttentionInput& input) {
    const std::int64_t heads = input.key.batch * input.key.heads;
    const std::int64_t wanted = (kEnoughTasks + heads - 1) / heads;
    return std::clamp<std::int64_t>((input.key.length + kKeysOfPart - 1) / kKeysOfPart, 1, wanted);
}

class Backward {
public:
    Backward(const AttentionInput& input, const TensorView& output, const TensorView& output_gradient,
             const SoftmaxRows& rows, const AttentionGradients& gradients)
        : input_(input), output_(output), output_gradient_(output_gradient), rows_(rows), gradients_(gradients) {
        parts_ = parts_of(input);
        const std::int64_t tiles = (input.key.length + kBackwardKeys - 1) / kBackwardKeys;
        keys_of_part_ = (tiles + parts_ - 1) / parts_ * kBackwardKeys;
        const TensorView& q = input.query;
        part_size_ = q.batch * q.heads * q.length * q.size;
        if (parts_ > 1 && gradients.query.data != nullptr) shares_ = AlignedFloats(parts_ * part_size_);
    }

    void run() {
        const std::vector<SequencePlan> plans = plans_of(input_);
        const std::int64_t groups = input_.key.heads;
        Scratch scratch(backward_scratch(plans.front().sequence(), keys_of_part_));
        parallel_for(input_.key.batch * groups * parts_, [&](std::int64_t index, int worker) {
            check_cancelled(input_);
            const FlushDenormals guard;
            const std::int64_t part = index % parts_, b = index / parts_ / groups;
            piece(plans[static_cast<std::size_t>(b)].sequence(), b, index / parts_ % groups, part, scratch.of(worker));
        });
        check_cancelled(input_);
        if (shares_.data() != nullptr) add_shares();
    }

private:
    void piece(const Sequence& sequence, std::int64_t b, std::int64_t key_head, std::int64_t part, float* scratch) {
        const TensorView& q = input_.query;
        BackwardTask task;
        task.sequence = &sequence;
        task.key_head = key_head;
        task.key_first = std::min(part * keys_of_part_, input_.key.length);
        task.key_last = std::min(task.key_first + keys_of_part_, input_.key.length);
        task.output = matrix_of(output_, b);
        task.output_gradient = matrix_of(output_gradient_, b);
        task.shift = rows_.shift + b * q.heads * q.length;
        task.factor = rows_.factor + b * q.heads * q.length;
        task.scale = static_cast<float>(input_.rule->scale);
        task.key = target_of(gradients_.key, b);
        task.value = target_of(gradients_.value, b);
        task.query = target_of(gradients_.query, b);
        if (shares_.data() != nullptr) {
            task.query = {shares_.data() + part * part_size_ + b * q.heads * q.length * q.size, ElementType::float32,
                          q.length * q.size, q.size};
        }
        task.scratch = scratch;
        if (input_.rule->normaliser == Normaliser::taylor)
            taylor_backward(task);
        else
            softmax_backward(task);
    }

    void add_shares() {
        const TensorView& q = input_.query;
        parallel_for(q.batch * q.heads, [&](std::int64_t index, int) {
            const FlushDenormals guard;
            HeadTarget target = target_of(gradients_.query, index / q.heads);
            const std::int64_t bytes = target.type == ElementType::float32 ? 4 : 2;
            target.data = static_cast<char*>(target.data) + index % q.heads * target.head_stride * bytes;
            add_parts({shares_.data() + index * q.length * q.size, parts_, part_size_, q.length, q.size, target});
        });
    }

    const AttentionInput& input_;
    const TensorView &output_, &output_gradient_;
    const SoftmaxRows& rows_;
    const AttentionGradients& gradients_;
    std::int64_t parts_ = 1, keys_of_part_ = 0, part_size_ = 0;
    AlignedFloats shares_;
};

}  // namespace

void attention_forward_cpu(const AttentionInput& input, const MutableView& output, const SoftmaxRows& rows) {
    std::vector<SequencePlan> plans = plans_of(input);
    const std::int64_t heads = input.query.heads, groups = input.key.heads, queries = input.query.length;
    const std::int64_t panel = 2 * target_info().lanes;
    const std::int64_t stride = (input.key.length + panel - 1) / panel * panel * input.key.size;
    const AlignedFloats packed(input.key.batch * groups * stride);
    for (std::size_t b = 0; b < plans.size(); ++b)
        plans[b].set_packed_keys(packed.data() + static_cast<std::int64_t>(b) * groups * stride, stride);
    parallel_for(input.key.batch * groups, [&](std::int64_t index, int) {
        const std::int64_t b = index / groups;
        pack_keys({&plans[static_cast<std::size_t>(b)].sequence(), index % groups, 0, input.key.length,
                   packed.data() + b * groups * stride});
    });
    const std::int64_t blocks = (queries + kForwardRows - 1) / kForwardRows;
    Scratch scratch(plain_scratch(plans.front().sequence(), kForwardRows));
    // Last blocks first: under a causal mask they are the longest.
    parallel_for(input.query.batch * heads * blocks, [&](std::int64_t index, int worker) {
        check_cancelled(input);
        const FlushDenormals guard;
        const std::int64_t h = index % heads, b = index / heads % input.query.batch;
        const HeadTarget target = target_of(output, b);
        PlainTask task;
        task.sequence = &plans[static_cast<std::size_t>(b)].sequence();
        task.normaliser = input.rule->normaliser;
        task.head = h;
        task.first_row = (blocks - 1 - index / heads / input.query.batch) * kForwardRows;
        task.rows = static_cast<int>(std::min(kForwardRows, queries - task.first_row));
        if (target.type == ElementType::float32)
            task.output = static_cast<float*>(target.data) + h * target.head_stride;
        else
            task.rounded = static_cast<std::uint16_t*>(target.data) + h * target.head_stride;
        task.output_stride = target.row_stride;
        task.shift = rows.shift + (b * heads + h) * queries;
        task.factor = rows.factor + (b * heads + h) * queries;
        task.scratch = scratch.of(worker);
        plain_attention(task);
    });
    check_cancelled(input);
    note_target();
}

void attention_backward_cpu(const AttentionInput& input, const TensorView& output, const TensorView& output_gradient,
                            const SoftmaxRows& rows, const AttentionGradients& gradients) {
    Backward(input, output, output_gradient, rows, gradients).run();
    note_target();
}

}  // namespace headscope::kernels::cpu
