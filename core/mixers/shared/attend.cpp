// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/attend.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include "core/base/error.h"
#include "core/mixers/shared/block_attention.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/mixers/shared/trained_attention.h"
#include "core/mixers/shared/without_heads.h"
#include "kernels/backend.h"
#include "kernels/normaliser.h"
#include "kernels/reference/dense.h"

namespace headscope::mixers {
namespace {

/// Runs kernels::attention; `output` [B, Lq, H * dv] float32, or undefined when only statistics are wanted.
void run_kernel(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const kernels::ScoreRule& rule,
                const Cancellation* cancellation, const at::Tensor& output, const kernels::StatisticsRequest* request,
                kernels::Statistics* statistics) {
    kernels::AttentionInput input;
    input.query = view_of(query);
    input.key = view_of(key);
    input.value = view_of(value);
    input.rule = &rule;
    input.cancel = cancellation ? cancellation->flag() : nullptr;
    kernels::OutputView view;
    if (output.defined()) {
        view = {output.mutable_data_ptr<float>(), output.stride(0), value.size(3), output.stride(1)};
    }
    try {
        kernels::attention(input, view, request, statistics);
    } catch (const kernels::Cancelled&) {
        throw Stopped();
    }
}

/// Nothing in the scores but scale and the causal mask, and no visibility rule that bites at these lengths.
bool is_plain(const kernels::ScoreRule& rule, std::int64_t queries, std::int64_t keys) {
    const bool window = (rule.window_left >= 0 && rule.window_left < rule.query_offset + queries - 1) ||
                        (rule.window_right >= 0 && rule.window_right < keys - 1 && !rule.causal);
    return !window && rule.far_distance < 0 && rule.soft_cap == 0 && rule.slopes.empty() &&
           rule.distance_bias.empty() && rule.sink_logits.empty() && rule.blocks.block_size == 0 &&
           rule.key_begin.empty() && rule.normaliser == kernels::Normaliser::softmax;
}

/// [B, 1, 1, Lk], true for keys that exist; undefined when all do.
at::Tensor key_mask(const kernels::ScoreRule& rule, std::int64_t keys) {
    if (rule.key_length.empty()) return {};
    const auto batch = static_cast<std::int64_t>(rule.key_length.size());
    const at::Tensor lengths = at::tensor(rule.key_length, at::kLong);
    return (at::arange(keys, at::kLong).unsqueeze(0) < lengths.unsqueeze(1)).view({batch, 1, 1, keys});
}

/// Of numbers that are not finite, or whose sum is too large: false.
bool has_finite_sum(const at::Tensor& numbers) {
    return std::isfinite(numbers.sum().item<double>());
}

/// LibTorch's fused attention where it can say the same; an undefined tensor where it cannot.
at::Tensor library_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                             const kernels::ScoreRule& rule) {
    const std::int64_t queries = query.size(2), keys = key.size(2);
    if (!is_plain(rule, queries, keys) || key.size(3) != value.size(3)) return {};
    const bool sees_all = !rule.causal || (queries == 1 && rule.query_offset >= keys - 1);
    const bool square = queries == keys && rule.query_offset == 0;
    if (!sees_all && !square) return {};
    // A row of scores that are all NaN it takes for one without keys, and gives 0. Earlier keys were new once.
    const std::int64_t added = std::min(queries, keys);
    if (!has_finite_sum(query) || !has_finite_sum(key.narrow(2, keys - added, added))) return {};
    // Sequences are padded at the end: under the causal mask no real query sees a padded key.
    const at::Tensor mask = sees_all ? key_mask(rule, keys) : at::Tensor();
    return at::scaled_dot_product_attention(query, key, value,
                                            mask.defined() ? std::optional<at::Tensor>(mask) : std::nullopt, 0.0,
                                            !sees_all, rule.scale, query.size(1) != key.size(1));
}

/// [B, H, Lq, Lk], true for what block visibility lets through.
at::Tensor in_visible_blocks(const kernels::BlockVisibility& blocks, std::int64_t heads, const at::Tensor& i,
                             const at::Tensor& j) {
    const at::Tensor of_query = at::floor_divide(i, blocks.block_size);
    const at::Tensor of_key = at::floor_divide(j, blocks.block_size);
    const std::vector<std::int64_t> numbers(blocks.visible.begin(), blocks.visible.end());
    const at::Tensor visible = at::tensor(numbers, at::kLong).view({-1, heads, 1, blocks.blocks}).to(at::kBool);
    const at::Tensor own = of_query == of_key, seen = visible.index_select(3, of_key.flatten());
    return blocks.own ? own.logical_or(seen) : seen.logical_and(own.logical_not());
}

/// Softmax of `scores` [B, H, Lq, Lk] with a factor before each term, that of the key's block where it is not the
/// query's own. `allowed`: without a say of blocks; `seen`: with. Rows that see nothing are 0 whatever the factors.
at::Tensor weights_by_factors(const at::Tensor& scores, const at::Tensor& allowed, const at::Tensor& seen,
                              const kernels::BlockVisibility& blocks, const RuleTensors& tensors, const at::Tensor& i,
                              const at::Tensor& j) {
    const at::Tensor of_query = at::floor_divide(i, blocks.block_size);
    const at::Tensor of_key = at::floor_divide(j, blocks.block_size);
    const at::Tensor by_key = tensors.blocks.to(scores.scalar_type()).unsqueeze(2).index_select(3, of_key.flatten());
    at::Tensor factors = at::where(of_query == of_key, blocks.own ? 1.0 : 0.0, by_key);
    factors = factors.masked_fill((tensors.hidden_blocks ? allowed : seen).logical_not(), 0.0);
    const at::Tensor highest = std::get<0>(scores.masked_fill(seen.logical_not(), -1e30).max(3, true)).detach();
    const at::Tensor there = seen.any(3, true);
    const at::Tensor counted = there.logical_and(tensors.hidden_blocks ? allowed : seen);
    const at::Tensor terms = (scores - highest).masked_fill(counted.logical_not(), -1e30).exp() * factors;
    return terms / terms.sum(3, true).masked_fill(there.logical_not(), 1.0);
}

/// The table's values at `relative` [Lq, Lk] = key - query -> [H, Lq, Lk].
at::Tensor distance_biases(const kernels::ScoreRule& rule, const at::Tensor& relative, const at::Tensor& recorded,
                           const at::TensorOptions& options) {
    const at::Tensor table =
        recorded.defined() ? recorded : at::tensor(rule.distance_bias, options).view({-1, rule.bias_length});
    const at::Tensor column = relative + rule.bias_origin;
    const at::Tensor inside = column.clamp(0, rule.bias_length - 1);
    at::Tensor bias = table.index_select(1, inside.flatten()).view({table.size(0), relative.size(0), relative.size(1)});
    return rule.beyond_table == kernels::BeyondTable::zero ? bias.masked_fill(column != inside, 0) : bias;
}

at::Tensor unmeasured(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                      const kernels::ScoreRule& rule, const RuleTensors& tensors, const Cancellation* cancellation) {
    if (trains_fused(query, key, value, rule)) return trained_attention(query, key, value, rule, tensors, cancellation);
    if (const at::Tensor output = library_attention(query, key, value, rule); output.defined())
        return side_by_side(output);
    const bool recorded =
        at::GradMode::is_enabled() && (query.requires_grad() || key.requires_grad() || value.requires_grad());
    if (query.scalar_type() == at::kDouble) return side_by_side(dense_attention(query, key, value, rule, tensors));
    if (recorded) return block_attention(query, key, value, rule);
    at::Tensor output =
        at::empty({query.size(0), query.size(2), query.size(1) * value.size(3)}, query.options().dtype(at::kFloat));
    run_kernel(unit_stride(query), unit_stride(key), unit_stride(value), rule, cancellation, output, nullptr, nullptr);
    return output.to(query.scalar_type());
}

at::Tensor measured(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const kernels::ScoreRule& rule, const Cancellation* cancellation,
                    const kernels::StatisticsRequest& request, kernels::Statistics& statistics) {
    const at::Tensor q = unit_stride(query), k = unit_stride(key), v = unit_stride(value);
    if (query.scalar_type() == at::kDouble) {
        run_kernel(q.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat), rule, cancellation, {}, &request, &statistics);
        return side_by_side(dense_attention(query, key, value, rule));
    }
    at::Tensor output = at::empty({q.size(0), q.size(2), q.size(1) * v.size(3)}, q.options().dtype(at::kFloat));
    run_kernel(q, k, v, rule, cancellation, output, &request, &statistics);
    return output.to(query.scalar_type());
}

}  // namespace

at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const kernels::ScoreRule& rule, SiteIndex site, const StackContext& context,
                  const RuleTensors& tensors) {
    if (context.cancellation) context.cancellation->check();
    const kernels::StatisticsRequest* request = context.probe ? context.probe->request(site) : nullptr;
    if (!request) {
        return finish_attention(unmeasured(query, key, value, rule, tensors, context.cancellation),
                                {query, key, value, rule}, nullptr, site, context);
    }
    kernels::Statistics statistics;
    const at::Tensor output = measured(query, key, value, rule, context.cancellation, *request, statistics);
    return finish_attention(output, {query, key, value, rule}, &statistics, site, context);
}

at::Tensor finish_attention(const at::Tensor& output, const Attended& what, const kernels::Statistics* statistics,
                            SiteIndex site, const StackContext& context) {
    const std::int64_t heads = what.query.size(1);
    if (statistics != nullptr || context.wants("head_output")) {
        const at::Tensor by_head = as_heads(output, heads);
        context.announce("head_output", by_head);
        if (statistics != nullptr) {
            context.probe->measured({site, context.sites->at(static_cast<std::size_t>(site.value)), what.query,
                                     what.key, what.value, by_head, what.rule, *statistics, context.output_projection});
        }
    }
    if (context.switched_off == nullptr) return output;
    return without_heads(output, heads, site, *context.switched_off, what.rule.query_length);
}

at::Tensor dense_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const kernels::ScoreRule& rule, const RuleTensors& tensors) {
    const std::int64_t heads = query.size(1), groups = key.size(1), queries = query.size(2), keys = key.size(2);
    const at::Tensor k = groups == heads ? key : key.repeat_interleave(heads / groups, 1);
    const at::Tensor v = groups == heads ? value : value.repeat_interleave(heads / groups, 1);
    const at::Tensor i = at::arange(rule.query_offset, rule.query_offset + queries, at::kLong).unsqueeze(1);
    const at::Tensor j = at::arange(keys, at::kLong).unsqueeze(0);
    at::Tensor scores = query.matmul(k.transpose(-1, -2)) * rule.scale;
    if (rule.far_distance >= 0) {
        const at::Tensor common =
            query.narrow(3, 0, rule.near_begin).matmul(k.narrow(3, 0, rule.near_begin).transpose(-1, -2));
        const at::Tensor far = (common + query.narrow(3, query.size(3) - 1, 1)) * rule.scale;
        scores = at::where(i - j > rule.far_distance, far, scores);
    }
    if (!rule.slopes.empty()) {
        const at::Tensor slopes = at::tensor(rule.slopes, query.options()).view({heads, 1, 1});
        scores = scores - slopes * (i - j).to(query.scalar_type());
    }
    if (rule.bias_length > 0) scores = scores + distance_biases(rule, j - i, tensors.distance_bias, query.options());
    if (rule.soft_cap > 0) scores = (scores / rule.soft_cap).tanh() * rule.soft_cap;

    at::Tensor allowed = at::ones({queries, keys}, at::kBool);
    if (rule.causal) allowed = allowed.logical_and(j <= i);
    if (rule.window_left >= 0)
        allowed = allowed.logical_and(
            (i - i.remainder(rule.window_segment) - j <= rule.window_left).logical_or(j < rule.first_keys));
    if (rule.window_right >= 0) allowed = allowed.logical_and(j - i <= rule.window_right);
    if (const at::Tensor mask = key_mask(rule, keys); mask.defined()) allowed = allowed.logical_and(mask);
    if (!rule.key_begin.empty()) {
        const auto batch = static_cast<std::int64_t>(rule.key_begin.size());
        allowed = allowed.logical_and(j >= at::tensor(rule.key_begin, at::kLong).view({batch, 1, 1, 1}));
    }
    if (rule.blocks.block_size > 0) {
        const at::Tensor seen = allowed.logical_and(in_visible_blocks(rule.blocks, heads, i, j));
        if (tensors.blocks.defined())
            return weights_by_factors(scores, allowed, seen, rule.blocks, tensors, i, j).matmul(v);
        allowed = seen;
    }
    // A finite floor instead of -inf: the gradients of a row that sees no key are numbers, too.
    scores = scores.masked_fill(allowed.logical_not(), -1e30);
    at::Tensor logits, second, offsets = tensors.offsets;
    if (!rule.sink_logits.empty())
        logits = (tensors.sink_logits.defined() ? tensors.sink_logits : at::tensor(rule.sink_logits, query.options()))
                     .view({heads, 1, 1});
    if (kernels::traits_of(rule.normaliser).diagonal)
        second = (query * query).matmul((k * k).transpose(-1, -2)) * (0.5 * rule.scale * rule.scale);
    if (!rule.offsets.empty() && !offsets.defined()) offsets = at::tensor(rule.offsets, query.options());
    return kernels::reference::normalise(rule.normaliser, scores, allowed, logits, second,
                                         kernels::reference::row_offsets(rule.offset_form, offsets, allowed))
        .weight.matmul(v);
}

}  // namespace headscope::mixers
