// SPDX-License-Identifier: GPL-3.0-or-later
// The two passes of training: what is packed, who does what, and where few heads share their keys out.
#include "kernels/cpu/attention/backward.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/tasks.h"
#include "kernels/cpu/attention/views.h"
#include "kernels/cpu/attention/workspace.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/normaliser.h"
#include "kernels/parallel.h"
#include "kernels/score_pairs.h"

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

/// Parts of the keys of each head, by shapes alone; 1 when there are heads enough.
std::int64_t parts_of(const AttentionInput& input) {
    const std::int64_t heads = input.key.batch * input.key.heads;
    const std::int64_t wanted = (kEnoughTasks + heads - 1) / heads;
    return std::clamp<std::int64_t>((input.key.length + kKeysOfPart - 1) / kKeysOfPart, 1, wanted);
}

template <std::size_t... kIndex>
void run_backward(Normaliser normaliser, const BackwardTask& task, std::index_sequence<kIndex...>) {
    const auto runs = [&]<std::size_t kOne>() {
        if constexpr (kNormalisers[kOne].trains()) {
            if (normaliser != kNormalisers[kOne].normaliser) return false;
            backward_pass<kNormalisers[kOne].normaliser>(task);
            return true;
        }
        return false;
    };
    if (!(runs.template operator()<kIndex>() || ...))
        throw Error("attention backward", normaliser_list(true), normaliser_name(normaliser));
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
        const auto for_pieces = [&] {
            parallel_for(input_.key.batch * groups * parts_, [&](std::int64_t index, int worker) {
                check_cancelled(input_.cancel);
                const FlushDenormals guard;
                const std::int64_t part = index % parts_, b = index / parts_ / groups;
                piece(plans[static_cast<std::size_t>(b)].sequence(), b, index / parts_ % groups, part,
                      scratch.of(worker));
            });
            check_cancelled(input_.cancel);
        };
        if (traits_of(input_.rule->normaliser).two_runs()) {
            sums_.resize(static_cast<std::size_t>(parts_ * rows()));
            for_pieces();
            take_means();
        }
        if (gradients_.sinks != nullptr)
            sinks_.assign(static_cast<std::size_t>(input_.query.batch * input_.query.heads), 0.0);
        const Sequence& any = plans.front().sequence();
        if (gradients_.distance_bias != nullptr)
            relative_.assign(static_cast<std::size_t>(parts_ * input_.query.batch * any.heads * any.relative_length),
                             0.0);
        if (gradients_.blocks != nullptr)
            blocks_.assign(static_cast<std::size_t>(parts_ * input_.query.batch * any.heads * any.blocks), 0.0);
        for_pieces();
        if (shares_.data() != nullptr) add_shares();
        if (gradients_.blocks != nullptr) add_blocks();
        if (gradients_.sinks != nullptr) add_sinks();
        if (gradients_.distance_bias != nullptr) add_distances(any);
    }

private:
    std::int64_t rows() const { return input_.query.batch * input_.query.heads * input_.query.length; }

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
        const std::int64_t first_row = b * q.heads * q.length;
        if (!sums_.empty()) task.sums = sums_.data() + part * rows() + first_row;
        if (!means_.empty()) task.means = means_.data() + first_row;
        if (!sinks_.empty()) task.sinks = sinks_.data() + b * q.heads;
        if (!relative_.empty()) {
            task.relative = relative_.data() + (part * q.batch + b) * sequence.heads * sequence.relative_length;
        }
        if (!blocks_.empty()) {
            task.blocks = blocks_.data() + (part * q.batch + b) * sequence.heads * sequence.blocks;
            task.hidden_blocks = gradients_.hidden_blocks;
        }
        task.scratch = scratch;
        run_backward(input_.rule->normaliser, task, std::make_index_sequence<kNormalisers.size()>());
    }

    /// From the sums of all parts, added up in their order.
    void take_means() {
        const bool kept = traits_of(input_.rule->normaliser).row_mean == RowMean::kept;
        means_.resize(static_cast<std::size_t>(rows()));
        std::vector<double> by_row(kept ? means_.size() : 0);
        for (std::size_t row = 0; row < means_.size(); ++row) {
            SlopeSums all;
            for (std::int64_t part = 0; part < parts_; ++part) {
                const SlopeSums& one = sums_[row + static_cast<std::size_t>(part * rows())];
                all.products += one.products;
                all.others += one.others;
            }
            if (kept) {
                means_[row] = static_cast<float>(all.products);
                by_row[row] = all.others;
            } else {
                means_[row] = all.others > 0.0 ? static_cast<float>(all.products / all.others) : 0.0F;
            }
        }
        if (gradients_.offsets != nullptr) add_offsets(by_row);
        sums_ = {};
    }

    /// by_row [batch, heads, queries]: d loss / d what is added to a row's weights.
    void add_offsets(const std::vector<double>& by_row) const {
        const TensorView& q = input_.query;
        std::vector<double> sums(static_cast<std::size_t>(q.heads), 0.0);
        for (std::int64_t b = 0; b < q.batch; ++b) {
            const SequenceBounds bounds = sequence_bounds(*input_.rule, b, q.length, input_.key.length);
            for (std::int64_t i = 0; i < q.length; ++i) {
                const double factor = offset_factor(*input_.rule, bounds, i);
                for (std::int64_t h = 0; h < q.heads; ++h)
                    sums[static_cast<std::size_t>(h)] +=
                        factor * by_row[static_cast<std::size_t>((b * q.heads + h) * q.length + i)];
            }
        }
        for (std::size_t h = 0; h < sums.size(); ++h) gradients_.offsets[h] = static_cast<float>(sums[h]);
    }

    void add_sinks() const {
        const std::int64_t heads = input_.query.heads;
        for (std::int64_t h = 0; h < heads; ++h) {
            double sum = 0.0;
            for (std::int64_t b = 0; b < input_.query.batch; ++b)
                sum += sinks_[static_cast<std::size_t>(b * heads + h)];
            gradients_.sinks[h] = static_cast<float>(sum);
        }
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

    void add_blocks() const {
        const std::size_t count = blocks_.size() / static_cast<std::size_t>(parts_);
        for (std::size_t x = 0; x < count; ++x) {
            double sum = 0.0;
            for (std::size_t n = x; n < blocks_.size(); n += count) sum += blocks_[n];
            gradients_.blocks[x] = static_cast<float>(sum);
        }
    }

    /// From all parts and sequences, added up in their order, to the table that the rule has.
    void add_distances(const Sequence& s) const {
        const ScoreRule& rule = *input_.rule;
        for (std::int64_t h = 0; h < s.heads; ++h) {
            std::vector<double> table(static_cast<std::size_t>(rule.bias_length), 0.0);
            for (std::int64_t n = 0; n < parts_ * input_.query.batch; ++n) {
                const double* share = relative_.data() + (n * s.heads + h) * s.relative_length;
                for (std::int64_t x = 0; x < s.relative_length; ++x) {
                    const std::int64_t column = x - s.relative_zero + rule.bias_origin;
                    const std::int64_t inside = std::clamp<std::int64_t>(column, 0, rule.bias_length - 1);
                    if (inside == column || rule.beyond_table == BeyondTable::clamp)
                        table[static_cast<std::size_t>(inside)] += share[x];
                }
            }
            for (std::size_t x = 0; x < table.size(); ++x)
                gradients_.distance_bias[h * rule.bias_length + static_cast<std::int64_t>(x)] =
                    static_cast<float>(table[x]);
        }
    }

    const AttentionInput& input_;
    const TensorView &output_, &output_gradient_;
    const SoftmaxRows& rows_;
    const AttentionGradients& gradients_;
    std::int64_t parts_ = 1, keys_of_part_ = 0, part_size_ = 0;
    AlignedFloats shares_;
    std::vector<SlopeSums> sums_;   ///< [parts, batch, heads, queries] in the first of two runs
    std::vector<float> means_;      ///< [batch, heads, queries]
    std::vector<double> sinks_;     ///< [batch, heads]
    std::vector<double> relative_;  ///< [parts, batch, heads, relative_length]
    std::vector<double> blocks_;    ///< [parts, batch, heads, blocks]
};

std::int64_t two_pass_scratch(const Sequence& s) {
    return std::max(pass_one_scratch(s, kForwardRows, /*panel=*/true), pass_two_scratch(s, kForwardRows, 1)) +
           kForwardRows * s.value_size;
}

/// Row constants, then O, of one block of queries. constants: of this sequence.
void two_passes(const Sequence& s, Normaliser normaliser, std::int64_t h, std::int64_t first_row, HeadTarget target,
                const RowConstants& constants, float* scratch) {
    const auto count = std::min(kForwardRows, s.queries - first_row);
    float* output = scratch;
    PassOneTask one;
    one.sequence = &s;
    one.normaliser = normaliser;
    one.head = h;
    one.first_row = first_row;
    one.rows = static_cast<int>(count);
    one.constants = {constants.shift + h * s.queries, constants.factor + h * s.queries, nullptr};
    one.scratch = scratch + kForwardRows * s.value_size;
    pass_one(one);
    PassTwoTask two;
    two.sequence = &s;
    two.normaliser = normaliser;
    two.head_begin = h;
    two.head_end = h + 1;
    two.first_row = first_row;
    two.rows = one.rows;
    two.constants = constants;
    // It writes from the first row and head on; ours begins with this block.
    two.output.head_stride = 0;
    two.output.row_stride = s.value_size;
    two.output.data = output - first_row * s.value_size;
    two.scratch = one.scratch;
    pass_two(two);
    const std::int64_t bytes = target.type == ElementType::float32 ? 4 : 2;
    target.data = static_cast<char*>(target.data) + (h * target.head_stride + first_row * target.row_stride) * bytes;
    add_parts({output, 1, 0, count, s.value_size, target});
}

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
    const bool one_pass = traits_of(input.rule->normaliser).one_pass();
    Scratch scratch(one_pass ? plain_scratch(plans.front().sequence(), kForwardRows)
                             : two_pass_scratch(plans.front().sequence()));
    // Last blocks first: under a causal mask they are the longest.
    parallel_for(input.query.batch * heads * blocks, [&](std::int64_t index, int worker) {
        check_cancelled(input.cancel);
        const FlushDenormals guard;
        const std::int64_t h = index % heads, b = index / heads % input.query.batch;
        const HeadTarget target = target_of(output, b);
        const std::int64_t first_row = (blocks - 1 - index / heads / input.query.batch) * kForwardRows;
        const Sequence& sequence = plans[static_cast<std::size_t>(b)].sequence();
        if (!one_pass) {
            two_passes(sequence, input.rule->normaliser, h, first_row, target,
                       {rows.shift + b * heads * queries, rows.factor + b * heads * queries, nullptr},
                       scratch.of(worker));
            return;
        }
        PlainTask task;
        task.sequence = &sequence;
        task.normaliser = input.rule->normaliser;
        task.head = h;
        task.first_row = first_row;
        task.rows = static_cast<int>(std::min(kForwardRows, queries - first_row));
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
    check_cancelled(input.cancel);
    note_target();
}

void attention_backward_cpu(const AttentionInput& input, const TensorView& output, const TensorView& output_gradient,
                            const SoftmaxRows& rows, const AttentionGradients& gradients) {
    Backward(input, output, output_gradient, rows, gradients).run();
    note_target();
}

}  // namespace headscope::kernels::cpu
