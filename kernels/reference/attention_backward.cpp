// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/reference/attention_backward.h"

#include "kernels/reference/dense.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <limits>
#include <numbers>

#include "kernels/backend.h"
#include "kernels/normaliser.h"

namespace headscope::kernels {
namespace {

void write(const at::Tensor& result, std::int64_t b, const MutableView& view) {
    if (view.data == nullptr) return;
    const bool single = view.type == ElementType::float32;
    const std::int64_t bytes = single ? 4 : 2;
    auto* data = static_cast<char*>(view.data) + b * view.batch_stride * bytes;
    at::from_blob(data, result.sizes(), {view.head_stride, view.row_stride, 1}, single ? at::kFloat : at::kBFloat16)
        .copy_(result);
}

/// Numbers [H, Lq, Lk] of weights, with the factors of dropout.
at::Tensor with_dropout(const reference::DenseAttention& dense, const at::Tensor& numbers) {
    return dense.kept.defined() ? numbers * dense.kept : numbers;
}

/// [H, ..] to [G, ..], the heads of a group added up.
at::Tensor by_group(const at::Tensor& heads, std::int64_t groups) {
    return heads.unflatten(0, {groups, heads.size(0) / groups}).sum(1);
}

/// As RowMean of kernels/normaliser.h says; `weight` is that of `score`.
at::Tensor slope_of(Normaliser normaliser, const reference::DenseAttention& dense, const at::Tensor& score,
                    const at::Tensor& weight) {
    switch (traits_of(normaliser).terms) {
        case Terms::exponential:
            return weight;
        case Terms::threshold:
            return (weight > 0.0).to(at::kDouble);
        case Terms::square:
            return weight.sqrt();
        case Terms::elastic:
            return (score - dense.row_constant.unsqueeze(-1)).exp();
        case Terms::taylor:
            return (1.0 + score) / dense.row_constant.unsqueeze(-1);
        case Terms::sigmoid:
            return weight * (1.0 - weight);
    }
    return {};
}

void backward(const AttentionInput& input, const TensorView& output_gradient, const AttentionGradients& gradients,
              std::int64_t b) {
    const std::int64_t heads = input.query.heads, groups = input.key.heads;
    const ScoreRule& rule = *input.rule;
    const reference::DenseAttention dense = reference::dense_attention(input, b);
    // Padding may hold NaN and takes part in no sum.
    const at::Tensor j = dense.key_position.transpose(0, 1);
    const at::Tensor there = dense.query_position - rule.query_offset < dense.bounds.queries;
    const at::Tensor key_there = (j >= dense.bounds.key_begin) & (j < dense.bounds.key_end);
    const at::Tensor q = at::where(there, reference::sequence_of(input.query, b, heads), 0.0);
    const at::Tensor k = at::where(key_there, reference::sequence_of(input.key, b, heads), 0.0);
    const at::Tensor v = at::where(key_there, reference::sequence_of(input.value, b, heads), 0.0);
    const at::Tensor d_output = at::where(there, reference::sequence_of(output_gradient, b, heads), 0.0);
    const at::Tensor a = at::where(dense.allowed, dense.weight, 0.0);
    const bool cut_off = traits_of(rule.normaliser).row_mean == RowMean::kept;
    at::Tensor d_weight = at::where(dense.allowed, with_dropout(dense, at::matmul(d_output, v.transpose(1, 2))), 0.0);
    if (cut_off) d_weight = at::where(a > 0.0, d_weight, 0.0);
    const at::Tensor slope = slope_of(rule.normaliser, dense, dense.score, a).where(dense.allowed, 0.0);
    const bool by_slopes = traits_of(rule.normaliser).row_mean == RowMean::slopes;
    at::Tensor mean = ((by_slopes || cut_off ? slope : a) * d_weight).sum(-1, true), sink_slope;
    if (traits_of(rule.normaliser).row_mean == RowMean::zero) mean.zero_();
    if (!rule.sink_logits.empty()) {  // a key whose value is 0
        const at::Tensor logits = at::tensor(at::ArrayRef<float>(rule.sink_logits), at::kDouble).view({-1, 1, 1});
        const at::Tensor seen = dense.allowed.any(-1, true);
        sink_slope = at::where(seen, slope_of(rule.normaliser, dense, logits, dense.sink_share.unsqueeze(-1)), 0.0);
    }
    if (by_slopes) {
        at::Tensor slopes = slope.sum(-1, true);
        if (sink_slope.defined()) slopes = slopes + sink_slope;
        mean = at::where(slopes > 0.0, mean / slopes, 0.0);
    }
    if (sink_slope.defined() && gradients.sinks != nullptr) {
        const at::Tensor sum = (sink_slope * mean).where(there, 0.0).sum({1, 2});
        for (std::int64_t h = 0; h < heads; ++h)
            gradients.sinks[h] = (b > 0 ? gradients.sinks[h] : 0.0F) - sum[h].item<float>();
    }
    if (gradients.offsets != nullptr) {
        const at::Tensor factors =
            reference::row_offsets(rule.offset_form, at::ones({heads}, at::kDouble), dense.allowed);
        const at::Tensor sum = (d_weight * factors).sum({1, 2});
        for (std::int64_t h = 0; h < heads; ++h)
            gradients.offsets[h] = (b > 0 ? gradients.offsets[h] : 0.0F) + sum[h].item<float>();
    }
    if (gradients.blocks != nullptr) {
        // Every pair that the rule without blocks allows, by the constants of the rule with them.
        ScoreRule open = rule;
        open.blocks = {};
        AttentionInput all = input;
        all.rule = &open;
        const reference::DenseAttention wide = reference::dense_attention(all, b);
        const at::Tensor weight = (wide.score - dense.row_constant.unsqueeze(-1)).exp();
        const at::Tensor products =
            at::where(wide.allowed, with_dropout(dense, at::matmul(d_output, v.transpose(1, 2))), 0.0);
        const at::Tensor key_block = dense.key_position.div(rule.blocks.block_size, "floor");
        at::Tensor counts = dense.query_position.div(rule.blocks.block_size, "floor") != key_block;
        if (!gradients.hidden_blocks) counts = counts & dense.allowed;
        const at::Tensor terms = at::where(counts & wide.allowed, weight * (products - mean), 0.0);
        const at::Tensor sum =
            at::zeros({heads, rule.blocks.blocks}, at::kDouble).index_add(1, key_block.flatten(), terms.sum(1));
        at::from_blob(gradients.blocks + b * heads * rule.blocks.blocks, sum.sizes(), at::kFloat).copy_(sum);
    }
    at::Tensor d_score = slope * (d_weight - mean);
    if (rule.soft_cap > 0.0) {
        const at::Tensor share = at::where(dense.allowed, dense.score / rule.soft_cap, 0.0);
        d_score = d_score * (1.0 - share * share);
    }
    if (gradients.distance_bias != nullptr) {
        const at::Tensor column = dense.key_position - dense.query_position + rule.bias_origin;
        const at::Tensor inside = column.clamp(0, rule.bias_length - 1);
        const at::Tensor kept =
            rule.beyond_table == BeyondTable::zero ? at::where(column == inside, d_score, 0.0) : d_score;
        const at::Tensor sum =
            at::zeros({heads, rule.bias_length}, at::kDouble).index_add(1, inside.flatten(), kept.flatten(1));
        const at::Tensor table = at::from_blob(gradients.distance_bias, sum.sizes(), at::kFloat);
        b > 0 ? table.add_(sum) : table.copy_(sum);
    }
    write(at::matmul(d_score, k) * rule.scale, b, gradients.query);
    write(by_group(at::matmul(d_score.transpose(1, 2), q), groups) * rule.scale, b, gradients.key);
    write(by_group(at::matmul(with_dropout(dense, a).transpose(1, 2), d_output), groups), b, gradients.value);
}

}  // namespace

void attention_forward_reference(const AttentionInput& input, const MutableView& output, const SoftmaxRows& rows) {
    try {
        const std::int64_t heads = input.query.heads, queries = input.query.length;
        for (std::int64_t b = 0; b < input.query.batch; ++b) {
            const reference::DenseAttention dense = reference::dense_attention(input, b);
            const at::Tensor j = dense.key_position.transpose(0, 1);
            const at::Tensor there = (j >= dense.bounds.key_begin) & (j < dense.bounds.key_end);
            const at::Tensor v = at::where(there, reference::sequence_of(input.value, b, heads), 0.0);
            write(at::matmul(with_dropout(dense, at::where(dense.allowed, dense.weight, 0.0)), v), b, output);
            const at::Tensor& constant = dense.row_constant;
            const at::Tensor empty = constant.isinf();
            const auto row = [&](float* base) {
                return at::from_blob(base + b * heads * queries, {heads, queries}, at::kFloat);
            };
            const at::Tensor seen = empty.logical_not().to(at::kDouble);
            const at::Tensor shift = at::where(empty, 0.0, constant * std::numbers::log2e);
            switch (traits_of(input.rule->normaliser).terms) {
                case Terms::exponential:
                case Terms::elastic:
                    row(rows.shift).copy_(shift);
                    row(rows.factor).copy_(seen);
                    break;
                case Terms::threshold:
                case Terms::square:
                    row(rows.shift).copy_(shift);
                    row(rows.factor).copy_(at::where(empty, double{std::numeric_limits<float>::max()}, 0.0));
                    break;
                case Terms::taylor:
                    row(rows.shift).zero_();
                    row(rows.factor).copy_(seen / constant);
                    break;
                case Terms::sigmoid:
                    row(rows.shift).zero_();
                    row(rows.factor).copy_(seen);
                    break;
            }
        }
    } catch (const c10::Error& error) {
        throw Error("reference attention", "memory for whole float64 matrices", error.what_without_backtrace());
    }
}

void attention_backward_reference(const AttentionInput& input, const TensorView&, const TensorView& output_gradient,
                                  const SoftmaxRows&, const AttentionGradients& gradients) {
    try {
        for (std::int64_t b = 0; b < input.query.batch; ++b) backward(input, output_gradient, gradients, b);
    } catch (const c10::Error& error) {
        throw Error("reference attention", "memory for whole float64 matrices", error.what_without_backtrace());
    }
}

}  // namespace headscope::kernels
