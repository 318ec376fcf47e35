// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/reference/attention.h"

#include "kernels/reference/dense.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>

#include "kernels/backend.h"
#include "kernels/normaliser.h"
#include "kernels/statistics.h"

namespace headscope::kernels {
namespace reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor per_head(const std::vector<float>& values) {
    return at::tensor(at::ArrayRef<float>(values), at::kDouble).view({-1, 1, 1});
}

at::Tensor allowed_pairs(const ScoreRule& rule, const DenseAttention& dense, std::int64_t b, std::int64_t heads) {
    const at::Tensor &i = dense.query_position, &j = dense.key_position;
    const SequenceBounds& bounds = dense.bounds;
    at::Tensor mask = (i - rule.query_offset < bounds.queries) & (j >= bounds.key_begin) & (j < bounds.key_end);
    if (rule.causal) mask = mask & (j <= i);
    if (rule.window_left >= 0) {
        const at::Tensor from = i - i.remainder(rule.window_segment);
        mask = mask & ((from - j <= rule.window_left) | (j < rule.first_keys));
    }
    if (rule.window_right >= 0) mask = mask & (j - i <= rule.window_right);
    mask = mask.unsqueeze(0).expand({heads, -1, -1});
    const BlockVisibility& blocks = rule.blocks;
    if (blocks.block_size > 0) {
        auto* visible = const_cast<std::uint8_t*>(blocks.visible.data()) + b * heads * blocks.blocks;
        const at::Tensor by_block = at::from_blob(visible, {heads, blocks.blocks}, at::kByte).to(at::kBool);
        const at::Tensor key_block = j.div(blocks.block_size, "floor");
        const at::Tensor own = i.div(blocks.block_size, "floor") == key_block;
        const at::Tensor seen = by_block.index_select(1, key_block.flatten()).unsqueeze(1);
        mask = mask & (blocks.own ? own | seen : own.logical_not() & seen);
    }
    return mask;
}

at::Tensor bias_by_distance(const ScoreRule& rule, const at::Tensor& relative, std::int64_t heads) {
    auto* data = const_cast<float*>(rule.distance_bias.data());
    const at::Tensor table = at::from_blob(data, {heads, rule.bias_length}, at::kFloat).to(at::kDouble);
    const at::Tensor column = relative + rule.bias_origin;
    const at::Tensor inside = column.clamp(0, rule.bias_length - 1);
    const at::Tensor bias = table.index_select(1, inside.flatten()).view({heads, relative.size(0), relative.size(1)});
    return rule.beyond_table == BeyondTable::zero ? bias * (inside == column) : bias;
}

/// Scores of every pair, allowed or not, in the order that kernels/attention.h gives.
at::Tensor all_scores(const AttentionInput& input, const DenseAttention& dense, std::int64_t b) {
    const ScoreRule& rule = *input.rule;
    const std::int64_t heads = input.query.heads;
    const at::Tensor relative = dense.key_position - dense.query_position;
    const at::Tensor q = sequence_of(input.query, b, heads), k = sequence_of(input.key, b, heads);
    at::Tensor s = at::matmul(q, k.transpose(1, 2)) * rule.scale;
    if (rule.far_distance >= 0) {
        const at::Tensor common =
            at::matmul(q.narrow(2, 0, rule.near_begin), k.narrow(2, 0, rule.near_begin).transpose(1, 2));
        const at::Tensor far = (common + q.narrow(2, q.size(2) - 1, 1)) * rule.scale;
        s = at::where(relative < -rule.far_distance, far, s);
    }
    if (!rule.slopes.empty()) s = s + per_head(rule.slopes) * relative;
    if (rule.bias_length > 0) s = s + bias_by_distance(rule, relative, heads);
    if (rule.soft_cap > 0.0) s = (s / rule.soft_cap).tanh() * rule.soft_cap;
    return s;
}

/// The second order of the Taylor weights of every pair, [H, Lq, Lk]; undefined where it is s^2 / 2.
at::Tensor second_order(const AttentionInput& input, std::int64_t b) {
    if (!traits_of(input.rule->normaliser).diagonal) return {};
    const std::int64_t heads = input.query.heads;
    const at::Tensor q = sequence_of(input.query, b, heads), k = sequence_of(input.key, b, heads);
    return at::matmul(q * q, (k * k).transpose(1, 2)) * (0.5 * input.rule->scale * input.rule->scale);
}

void write_output(const at::Tensor& result, std::int64_t b, OutputView output) {
    const std::int64_t heads = result.size(0), queries = result.size(1), size = result.size(2);
    at::Tensor target = at::from_blob(output.data + b * output.batch_stride, {heads, queries, size},
                                      {output.head_stride, output.row_stride, 1}, at::kFloat);
    target.copy_(result);
}

}  // namespace

at::Tensor sequence_of(const TensorView& view, std::int64_t b, std::int64_t heads) {
    const bool single = view.type == ElementType::float32;
    const std::size_t bytes = single ? sizeof(float) : sizeof(std::uint16_t);
    auto* data =
        static_cast<char*>(const_cast<void*>(view.data)) + static_cast<std::size_t>(b * view.batch_stride) * bytes;
    const at::Tensor heads_of_view =
        at::from_blob(data, {view.heads, view.length, view.size}, {view.head_stride, view.row_stride, 1},
                      single ? at::kFloat : at::kBFloat16);
    return heads_of_view.to(at::kDouble).repeat_interleave(heads / view.heads, 0);
}

DenseAttention dense_attention(const AttentionInput& input, std::int64_t b) {
    const ScoreRule& rule = *input.rule;
    const std::int64_t heads = input.query.heads, queries = input.query.length, keys = input.key.length;
    DenseAttention dense;
    dense.bounds = sequence_bounds(rule, b, queries, keys);
    dense.query_position = (at::arange(queries, at::kLong) + rule.query_offset).unsqueeze(1);
    dense.key_position = at::arange(keys, at::kLong).unsqueeze(0);
    dense.allowed = allowed_pairs(rule, dense, b, heads);
    dense.score = at::where(dense.allowed, all_scores(input, dense, b), -kInfinity);
    const at::Tensor sink = rule.sink_logits.empty() ? at::Tensor() : per_head(rule.sink_logits);
    const at::Tensor offsets =
        rule.offsets.empty() ? at::Tensor() : at::tensor(at::ArrayRef<float>(rule.offsets), at::kDouble);
    const NormalisedScores found = normalise(rule.normaliser, dense.score, dense.allowed, sink, second_order(input, b),
                                             row_offsets(rule.offset_form, offsets, dense.allowed));
    dense.weight = found.weight;
    dense.row_constant = at::where(dense.allowed.any(-1), found.row_constant, kInfinity);
    dense.sink_share = found.sink_share.defined() ? found.sink_share : at::zeros_like(dense.row_constant);
    return dense;
}

}  // namespace reference

void attention_reference(const AttentionInput& input, OutputView output, const StatisticsRequest* request,
                         Statistics* statistics) {
    check_attention(input);
    if (request != nullptr) check_statistics(input, *request);
    try {
        if (request != nullptr) prepare_statistics(input, *request, *statistics);
        for (std::int64_t b = 0; b < input.query.batch; ++b) {
            check_cancelled(input.cancel);
            const reference::DenseAttention dense = reference::dense_attention(input, b);
            if (output.data != nullptr) {
                const at::Tensor value = reference::sequence_of(input.value, b, input.query.heads);
                reference::write_output(at::matmul(dense.weight, value), b, output);
            }
            if (request != nullptr) reference::measure_sequence(input, *request, dense, b, *statistics);
        }
    } catch (const c10::Error& error) {
        throw Error("reference attention", "memory for whole float64 matrices", error.what_without_backtrace());
    }
}

}  // namespace headscope::kernels
