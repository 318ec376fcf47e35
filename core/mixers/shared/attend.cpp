// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/attend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/tensor.h>

#include "core/base/error.h"
#include "core/mixers/shared/block_attention.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/mixers/shared/trained_attention.h"
#include "core/model/device.h"
#include "core/model/random_fill.h"
#include "core/model/training_forward.h"
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
           rule.key_begin.empty() && rule.normaliser == kernels::Normaliser::softmax && rule.dropout.share == 0;
}

/// [B, 1, 1, Lk], true for keys that exist; undefined when all do.
at::Tensor key_mask(const kernels::ScoreRule& rule, std::int64_t keys) {
    if (rule.key_length.empty()) return {};
    const auto batch = static_cast<std::int64_t>(rule.key_length.size());
    const at::Tensor lengths = at::tensor(rule.key_length, at::kLong);
    return (at::arange(keys, at::kLong).unsqueeze(0) < lengths.unsqueeze(1)).view({batch, 1, 1, keys});
}

/// False for numbers that are not finite, or whose sum overflows.
bool has_finite_sum(const at::Tensor& numbers) {
    return std::isfinite(numbers.sum().item<double>());
}

/// LibTorch's fused attention where it can say the same; an undefined tensor where it cannot.
at::Tensor library_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                             const kernels::ScoreRule& rule) {
    const std::int64_t queries = query.size(2), keys = key.size(2);
    // On GPUs it computes float32 in fewer bits, or has no kernel; where a GPU was chosen the processor does not
    // compute.
    if (!query.is_cpu() || kernels::runs_on_gpu() || !is_plain(rule, queries, keys) || key.size(3) != value.size(3))
        return {};
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

at::Tensor unmeasured(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                      const kernels::ScoreRule& rule, const RuleTensors& tensors, const Cancellation* cancellation) {
    if (trains_fused(query, key, value, rule)) return trained_attention(query, key, value, rule, tensors, cancellation);
    if (const at::Tensor output = library_attention(query, key, value, rule); output.defined())
        return side_by_side(output);
    const bool recorded =
        at::GradMode::is_enabled() && (query.requires_grad() || key.requires_grad() || value.requires_grad());
    if (query.scalar_type() == at::kDouble) return side_by_side(dense_attention(query, key, value, rule, tensors));
    if (recorded || rule.dropout.share > 0) return block_attention(query, key, value, rule);
    const at::Tensor q = kernel_operand(query), k = kernel_operand(key), v = kernel_operand(value);
    at::Tensor output = at::empty({q.size(0), q.size(2), q.size(1) * v.size(3)}, q.options().dtype(at::kFloat));
    run_kernel(q, k, v, rule, cancellation, output, nullptr, nullptr);
    return model::on_device(output.to(query.scalar_type()), query.device());
}

/// training.attention_dropout of a site. The Taylor weights are a formula for sums over keys, which drop nothing.
kernels::AttentionDropout dropout_at(SiteIndex site, const StackContext& context, kernels::Normaliser normaliser) {
    if (!context.training || context.training->attention_dropout <= 0 || kernels::is_taylor(normaliser)) return {};
    return {context.training->attention_dropout,
            model::random_key(context.training->attention_seed, "weights of site " + std::to_string(site.value)),
            context.training->step_sequence};
}

at::Tensor measured(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const kernels::ScoreRule& rule, const Cancellation* cancellation,
                    const kernels::StatisticsRequest& request, kernels::Statistics& statistics) {
    const at::Tensor q = kernel_operand(query), k = kernel_operand(key), v = kernel_operand(value);
    if (query.scalar_type() == at::kDouble) {
        run_kernel(q.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat), rule, cancellation, {}, &request, &statistics);
        return side_by_side(dense_attention(query, key, value, rule));
    }
    at::Tensor output = at::empty({q.size(0), q.size(2), q.size(1) * v.size(3)}, q.options().dtype(at::kFloat));
    run_kernel(q, k, v, rule, cancellation, output, &request, &statistics);
    return model::on_device(output.to(query.scalar_type()), query.device());
}

/// [B, Lq, H * dv] from the dense matrix, whose scores and weights are edited. Visible pairs are those of the rule less
/// those whose score became -inf.
at::Tensor edited_attention(const Attended& what, RuleTensors tensors, SiteIndex site, const StackContext& context) {
    tensors.blocks = at::Tensor();  // the rule's own flags give the same weights
    const kernels::reference::DenseMatrix dense =
        kernels::reference::dense_matrix(what.query, what.key, what.rule, tensors);
    at::Tensor weight = dense.weight, allowed = dense.allowed;
    if (context.edits(model::Point::scores, site)) {
        constexpr double hidden = -std::numeric_limits<double>::infinity();
        const at::Tensor score = context.edited_matrix(
            model::Point::scores, dense.score.masked_fill(allowed.logical_not(), hidden), allowed, what.rule, site);
        allowed = allowed.logical_and(score.detach().ne(hidden));
        constexpr double floor = -1e30;
        weight = kernels::reference::weights_of_scores(
                     what.query, what.key, score.masked_fill(allowed.logical_not(), floor), allowed, what.rule, tensors)
                     .weight;
    }
    weight = context.edited_matrix(model::Point::pattern, weight, allowed, what.rule, site);
    const std::int64_t heads = what.query.size(1), groups = what.value.size(1);
    const at::Tensor value = groups == heads ? what.value : what.value.repeat_interleave(heads / groups, 1);
    return side_by_side(weight.matmul(value));
}

}  // namespace

at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const kernels::ScoreRule& rule, SiteIndex site, const StackContext& context,
                  const RuleTensors& tensors) {
    if (context.cancellation) context.cancellation->check();
    const kernels::StatisticsRequest* request = context.probe ? context.probe->request(site) : nullptr;
    const bool rewrites = context.edits(model::Point::scores, site) || context.edits(model::Point::pattern, site);
    kernels::Statistics statistics;
    at::Tensor output;
    if (request)
        output = measured(query, key, value, rule, context.cancellation, *request, statistics);
    else if (const auto dropout = dropout_at(site, context, rule.normaliser); !rewrites && dropout.share > 0) {
        kernels::ScoreRule dropping = rule;
        dropping.dropout = dropout;
        output = unmeasured(query, key, value, dropping, tensors, context.cancellation);
    } else if (!rewrites) {
        output = unmeasured(query, key, value, rule, tensors, context.cancellation);
    }
    if (rewrites) output = edited_attention({query, key, value, rule}, tensors, site, context);
    return finish_attention(output, {query, key, value, rule}, request ? &statistics : nullptr, site, context);
}

at::Tensor finish_attention(const at::Tensor& output, const Attended& what, const kernels::Statistics* statistics,
                            SiteIndex site, const StackContext& context) {
    const std::int64_t heads = what.query.size(1);
    const bool edits = context.edits(model::Point::head_output, site);
    if (statistics != nullptr || context.wants("head_output") || edits) {
        const at::Tensor by_head = as_heads(output, heads);
        context.announce("head_output", by_head);
        if (statistics != nullptr) {
            context.probe->measured({site, context.sites->at(static_cast<std::size_t>(site.value)), what.query,
                                     what.key, what.value, by_head, what.rule, *statistics, context.output_projection});
        }
        if (edits) return side_by_side(context.edited(model::Point::head_output, by_head, site));
    }
    return output;
}

}  // namespace headscope::mixers
