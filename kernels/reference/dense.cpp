// SPDX-License-Identifier: GPL-3.0-or-later
// A score rule as a formula in ATen: the oracle of every backend, and the training pass of rules without a fused one.
#include "kernels/reference/dense.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <vector>

#include "kernels/normaliser.h"

namespace headscope::kernels::reference {
namespace {

/// A finite floor instead of -inf: gradients of a row without keys stay finite.
constexpr double kFloor = -1e30;

at::Tensor heads_repeated(const at::Tensor& tensor, std::int64_t heads) {
    return tensor.size(1) == heads ? tensor : tensor.repeat_interleave(heads / tensor.size(1), 1);
}

/// `values` of sequences [first, first + count) as [count, 1, 1, 1].
at::Tensor by_sequence(const std::vector<std::int64_t>& values, std::int64_t first, std::int64_t count,
                       const Positions& places) {
    return at::tensor(values, places.key.options()).narrow(0, first, count).view({count, 1, 1, 1});
}

/// [B, H, Lq, Lk]: the pairs that the block rule shows.
at::Tensor pairs_in_blocks(const BlockVisibility& blocks, std::int64_t first, std::int64_t count, std::int64_t heads,
                           const Positions& places) {
    auto* visible = const_cast<std::uint8_t*>(blocks.visible.data()) + first * heads * blocks.blocks;
    const at::Tensor by_block =
        at::from_blob(visible, {count, heads, 1, blocks.blocks}, at::kByte).to(places.key.device(), at::kBool);
    const at::Tensor key_block = places.key.div(blocks.block_size, "floor");
    const at::Tensor own = places.query.div(blocks.block_size, "floor") == key_block;
    const at::Tensor seen = by_block.index_select(3, key_block.flatten());
    return blocks.own ? own | seen : own.logical_not() & seen;
}

/// The table's values at `relative` [Lq, Lk] = j - i': [H, Lq, Lk].
at::Tensor bias_by_distance(const ScoreRule& rule, const at::Tensor& relative, const at::Tensor& table) {
    const at::Tensor column = relative + rule.bias_origin;
    const at::Tensor inside = column.clamp(0, rule.bias_length - 1);
    const at::Tensor bias =
        table.index_select(1, inside.flatten()).view({table.size(0), relative.size(0), relative.size(1)});
    return rule.beyond_table == BeyondTable::zero ? bias.masked_fill(column != inside, 0) : bias;
}

/// Scores of every pair, allowed or not, in the order that ScoreRule gives: [B, H, Lq, Lk].
at::Tensor all_scores(const at::Tensor& q, const at::Tensor& k, const ScoreRule& rule, const at::Tensor& recorded_bias,
                      const Positions& places) {
    const at::Tensor relative = places.key - places.query;
    at::Tensor s = at::matmul(q, k.transpose(-1, -2)) * rule.scale;
    if (rule.far_distance >= 0) {
        const at::Tensor common =
            at::matmul(q.narrow(-1, 0, rule.near_begin), k.narrow(-1, 0, rule.near_begin).transpose(-1, -2));
        const at::Tensor far = (common + q.narrow(-1, q.size(-1) - 1, 1)) * rule.scale;
        s = at::where(relative < -rule.far_distance, far, s);
    }
    if (!rule.slopes.empty())
        s = s + at::tensor(rule.slopes, q.options()).view({-1, 1, 1}) * relative.to(q.scalar_type());
    if (rule.bias_length > 0) {
        const at::Tensor table = recorded_bias.defined()
                                     ? recorded_bias
                                     : at::tensor(rule.distance_bias, q.options()).view({-1, rule.bias_length});
        s = s + bias_by_distance(rule, relative, table);
    }
    if (rule.soft_cap > 0.0) s = (s / rule.soft_cap).tanh() * rule.soft_cap;
    return s;
}

/// Softmax of `scores` [B, H, Lq, Lk] with a factor on each term: that of the key's block, or for the query's own block
/// whether the rule shows it. `allowed` leaves blocks out, `seen` includes them. Rows that see nothing are 0.
at::Tensor weights_by_factors(const at::Tensor& scores, const at::Tensor& allowed, const at::Tensor& seen,
                              const BlockVisibility& blocks, const RuleTensors& tensors, const Positions& places) {
    const at::Tensor key_block = places.key.div(blocks.block_size, "floor");
    const at::Tensor own = places.query.div(blocks.block_size, "floor") == key_block;
    const at::Tensor by_key = tensors.blocks.to(scores.scalar_type()).unsqueeze(2).index_select(3, key_block.flatten());
    at::Tensor factors = at::where(own, blocks.own ? 1.0 : 0.0, by_key);
    factors = factors.masked_fill((tensors.hidden_blocks ? allowed : seen).logical_not(), 0.0);
    const at::Tensor highest = std::get<0>(scores.masked_fill(seen.logical_not(), kFloor).max(3, true)).detach();
    const at::Tensor exists = seen.any(3, true);
    const at::Tensor counted = exists.logical_and(tensors.hidden_blocks ? allowed : seen);
    const at::Tensor terms = (scores - highest).masked_fill(counted.logical_not(), kFloor).exp() * factors;
    return terms / terms.sum(3, true).masked_fill(exists.logical_not(), 1.0);
}

/// Pairs that the rule allows, blocks left out: [B or 1, 1, Lq, Lk].
at::Tensor pairs_without_blocks(const ScoreRule& rule, std::int64_t first, std::int64_t count,
                                const Positions& places) {
    const at::Tensor &i = places.query, &j = places.key;
    at::Tensor allowed = at::ones({1, 1, i.size(0), j.size(1)}, i.options().dtype(at::kBool));
    if (rule.causal) allowed = allowed & (j <= i);
    if (rule.window_left >= 0) {
        const at::Tensor from = i - i.remainder(rule.window_segment);
        allowed = allowed & ((from - j <= rule.window_left) | (j < rule.first_keys));
    }
    if (rule.window_right >= 0) allowed = allowed & (j - i <= rule.window_right);
    if (!rule.query_length.empty())
        allowed = allowed & (i - rule.query_offset < by_sequence(rule.query_length, first, count, places));
    if (!rule.key_begin.empty()) allowed = allowed & (j >= by_sequence(rule.key_begin, first, count, places));
    if (!rule.key_length.empty()) allowed = allowed & (j < by_sequence(rule.key_length, first, count, places));
    return allowed;
}

}  // namespace

Positions positions_of(const ScoreRule& rule, std::int64_t queries, std::int64_t keys, at::Device device) {
    const at::TensorOptions options = at::TensorOptions(device).dtype(at::kLong);
    return {(at::arange(queries, options) + rule.query_offset).unsqueeze(1), at::arange(keys, options).unsqueeze(0)};
}

DenseMatrix dense_matrix(const at::Tensor& query, const at::Tensor& key, const ScoreRule& rule,
                         const RuleTensors& tensors, std::int64_t first) {
    const std::int64_t count = query.size(0), heads = query.size(1);
    const at::Tensor k = heads_repeated(key, heads);
    const Positions places = positions_of(rule, query.size(2), key.size(2), query.device());
    const at::Tensor scores = all_scores(query, k, rule, tensors.distance_bias, places);
    DenseMatrix dense;
    dense.allowed = pairs_without_blocks(rule, first, count, places);
    if (rule.blocks.block_size > 0) {
        const at::Tensor seen = dense.allowed & pairs_in_blocks(rule.blocks, first, count, heads, places);
        if (tensors.blocks.defined())
            dense.weight = weights_by_factors(scores, dense.allowed, seen, rule.blocks, tensors, places);
        dense.allowed = seen;
    }
    dense.allowed = dense.allowed.expand({count, heads, -1, -1});
    dense.score = scores.masked_fill(dense.allowed.logical_not(), kFloor);
    if (dense.weight.defined()) return dense;
    const NormalisedScores found = weights_of_scores(query, key, dense.score, dense.allowed, rule, tensors);
    dense.weight = found.weight;
    dense.row_constant = found.row_constant;
    dense.sink_share = found.sink_share;
    return dense;
}

NormalisedScores weights_of_scores(const at::Tensor& query, const at::Tensor& key, const at::Tensor& score,
                                   const at::Tensor& allowed, const ScoreRule& rule, const RuleTensors& tensors) {
    const auto per_head = [&](const at::Tensor& recorded, const std::vector<float>& values) {
        if (values.empty()) return at::Tensor();
        return recorded.defined() ? recorded : at::tensor(values, query.options());
    };
    at::Tensor sink = per_head(tensors.sink_logits, rule.sink_logits), second;
    if (sink.defined()) sink = sink.view({-1, 1, 1});
    if (traits_of(rule.normaliser).diagonal)
        second = at::matmul(query * query, heads_repeated(key * key, query.size(1)).transpose(-1, -2)) *
                 (0.5 * rule.scale * rule.scale);
    const at::Tensor offsets = row_offsets(rule.offset_form, per_head(tensors.offsets, rule.offsets), allowed);
    return normalise(rule.normaliser, score, allowed, sink, second, offsets);
}

at::Tensor dropout_factors(const ScoreRule& rule, std::int64_t first, std::int64_t count, std::int64_t heads,
                           std::int64_t queries, std::int64_t keys) {
    const std::uint32_t threshold = dropout_threshold(rule.dropout.share);
    if (threshold == 0) return {};
    const double kept = 1.0 / (1.0 - rule.dropout.share);
    at::Tensor factors = at::empty({count, heads, queries, keys}, at::kDouble);
    auto* to = factors.mutable_data_ptr<double>();
    for (std::int64_t b = first; b < first + count; ++b) {
        const std::uint64_t sequence = dropout_sequence(rule.dropout, b);
        for (std::int64_t h = 0; h < heads; ++h) {
            for (std::int64_t i = 0; i < queries; ++i) {
                const std::uint64_t row = dropout_row(sequence, h, i + rule.query_offset);
                for (std::int64_t j = 0; j < keys; ++j) *to++ = dropout_bits(row, j) < threshold ? 0.0 : kept;
            }
        }
    }
    return factors;
}

at::Tensor dense_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const ScoreRule& rule, const RuleTensors& tensors) {
    at::Tensor weight = dense_matrix(query, key, rule, tensors).weight;
    const at::Tensor kept = dropout_factors(rule, 0, query.size(0), query.size(1), query.size(2), key.size(2));
    if (kept.defined()) weight = weight * kept.to(weight.options());
    return at::matmul(weight, heads_repeated(value, query.size(1)));
}

}  // namespace headscope::kernels::reference
