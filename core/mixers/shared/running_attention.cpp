// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/running_attention.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/model/device.h"
#include "core/model/training_ops.h"
#include "kernels/backend.h"

namespace headscope::mixers {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr std::int64_t kRunningChunk = 64;  // tokens, of the float64 path

void clear(RunningCache& cache, const at::Tensor& query, std::int64_t size) {
    const auto type = query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::TensorOptions options = query.options().dtype(type);
    cache.numerator = at::zeros({query.size(0), query.size(1), size}, options);
    cache.denominator = at::zeros({query.size(0), query.size(1)}, options);
    cache.maximum = at::full({query.size(0), query.size(1)}, -std::numeric_limits<double>::infinity(), options);
}

/// Three vectors in one tensor [3, B, H, L].
kernels::RunningRows rows_of(const at::Tensor& rows) {
    if (!rows.defined()) return {};
    float* first = rows.mutable_data_ptr<float>();
    const std::int64_t size = rows.numel() / 3;
    return {first, first + size, first + 2 * size};
}

kernels::RunningInput input_of(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double scale,
                               const std::vector<std::int64_t>* lengths, const Cancellation* cancellation) {
    kernels::RunningInput input{view_of(query), view_of(key), view_of(value), scale, {}, nullptr};
    if (lengths) input.lengths = *lengths;
    if (cancellation) input.cancel = cancellation->flag();
    return input;
}

void run(const kernels::RunningInput& input, const at::Tensor& by_head, const at::Tensor& rows,
         const RunningCache* cache) {
    std::vector<at::Tensor> states;
    if (cache) states = {cache->numerator, cache->denominator, cache->maximum};
    const KernelStates held(std::move(states));
    try {
        kernels::running_forward(input, target_of(by_head), rows_of(rows),
                                 {held.floats(0), held.floats(1), held.floats(2)});
    } catch (const kernels::Cancelled&) {
        throw Stopped();
    }
    held.give_back();
}

at::Tensor new_rows(const at::Tensor& query) {
    return at::empty({3, query.size(0), query.size(1), query.size(2)}, query.options().dtype(at::kFloat));
}

at::Tensor of_heads(const at::Tensor& groups, std::int64_t heads) {
    return groups.size(1) == heads ? groups : groups.repeat_interleave(heads / groups.size(1), 1);
}

/// Tokens of one chunk in float64: scores [B, H, L], values [B, H, L, dv] -> [B, H, L, dv].
at::Tensor exact_chunk(const at::Tensor& scores, const at::Tensor& value, RunningCache& cache) {
    const at::Tensor earlier = cache.maximum.unsqueeze(2);
    const at::Tensor maximum = std::get<0>(at::cummax(scores, 2)).maximum(earlier);  // [B, H, L]
    // By what sums of earlier chunks shrink; nothing has been seen where the maximum is still infinite.
    const at::Tensor shrunk = (earlier - maximum).exp().nan_to_num(0.0);
    const at::Tensor weights = (scores.unsqueeze(2) - maximum.unsqueeze(3)).clamp_max(0).exp().tril();
    const at::Tensor sums = weights.matmul(value) + shrunk.unsqueeze(3) * cache.numerator.unsqueeze(2);
    const at::Tensor totals = weights.sum(3) + shrunk * cache.denominator.unsqueeze(2);
    const std::int64_t last = scores.size(2) - 1;
    cache.numerator = sums.select(2, last).clone();
    cache.denominator = totals.select(2, last).clone();
    cache.maximum = maximum.select(2, last).clone();
    return sums / totals.unsqueeze(3);
}

class RunningFunction : public torch::autograd::Function<RunningFunction> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, double scale, const std::vector<std::int64_t>* lengths,
                              const Cancellation* cancellation) {
        const at::Tensor q = kernel_operand(query), k = kernel_operand(key), v = kernel_operand(value),
                         rows = new_rows(q);
        const at::Tensor output = at::empty({q.size(0), q.size(2), q.size(1) * v.size(3)}, q.options());
        run(input_of(q, k, v, scale, lengths, cancellation), as_heads(output, q.size(1)), rows, nullptr);
        context->save_for_backward({q, k, v, output, rows});
        context->saved_data["scale"] = scale;
        context->saved_data["lengths"] = lengths ? *lengths : std::vector<std::int64_t>{};
        return model::on_device(output, query.device());
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        const tensor_list saved = context->get_saved_variables();
        const at::Tensor &q = saved.at(0), &k = saved.at(1), &v = saved.at(2), &output = saved.at(3);
        const std::vector<std::int64_t> lengths = context->saved_data["lengths"].toIntVector();
        // Side by side in one tensor, as the projection's gradient is wanted.
        const std::int64_t heads = q.size(1), groups = k.size(1);
        tensor_list gradients;
        if (q.size(3) == v.size(3)) {
            const at::Tensor all =
                at::empty({q.size(0), q.size(2), heads + 2 * groups, q.size(3)}, q.options()).transpose(1, 2);
            gradients = {all.narrow(1, 0, heads), all.narrow(1, heads, groups), all.narrow(1, heads + groups, groups)};
        } else {
            for (const at::Tensor* one : {&q, &k, &v}) gradients.push_back(at::empty(one->sizes(), one->options()));
        }
        kernels::running_backward(
            input_of(q, k, v, context->saved_data["scale"].toDouble(), lengths.empty() ? nullptr : &lengths, nullptr),
            rows_of(saved.at(4)), view_of(as_heads(output, heads)),
            view_of(as_heads(model::for_kernel(outer.at(0)).contiguous(), heads)),
            {target_of(gradients[0]), target_of(gradients[1]), target_of(gradients[2])});
        for (at::Tensor& one : gradients) one = model::on_device(one, outer[0].device());
        return {gradients[0], gradients[1], gradients[2], {}, {}, {}};
    }
};

}  // namespace

std::int64_t RunningCache::bytes() const {
    return bytes_of(numerator) + bytes_of(denominator) + bytes_of(maximum);
}

std::unique_ptr<MixerCache> RunningCache::clone() const {
    auto copy = std::make_unique<RunningCache>();
    copy->numerator = copied(numerator);
    copy->denominator = copied(denominator);
    copy->maximum = copied(maximum);
    return copy;
}

std::unique_ptr<MixerCache> RunningCache::chosen(const at::Tensor& sequences) const {
    auto copy = std::make_unique<RunningCache>();
    copy->numerator = of_sequences(numerator, sequences);
    copy->denominator = of_sequences(denominator, sequences);
    copy->maximum = of_sequences(maximum, sequences);
    return copy;
}

at::Tensor RunningCall::scores_of_keys() const {
    return (query * of_heads(key, query.size(1))).sum(3) * scale;
}

at::Tensor RunningCall::attend(RunningCache* cache, at::Tensor* scores) const {
    const std::int64_t heads = query.size(1), length = query.size(2), size = value.size(3);
    if (cache && !cache->numerator.defined()) clear(*cache, query, size);
    if (query.scalar_type() == at::kDouble) {
        const at::Tensor output = at::empty({query.size(0), length, heads * size}, query.options());
        const at::Tensor by_head = as_heads(output, heads);
        RunningCache own;
        clear(own, query, size);
        const at::Tensor all = scores_of_keys(), values = of_heads(value, heads);
        for (std::int64_t first = 0; first < length; first += kRunningChunk) {
            if (cancellation) cancellation->check();
            const std::int64_t count = std::min(kRunningChunk, length - first);
            by_head.narrow(2, first, count)
                .copy_(exact_chunk(all.narrow(2, first, count), values.narrow(2, first, count), cache ? *cache : own));
        }
        if (scores) *scores = all;
        return output;
    }
    const at::Tensor q = kernel_operand(query), k = kernel_operand(key), v = kernel_operand(value);
    const at::Tensor output = at::empty({q.size(0), length, heads * size}, q.options());
    const at::Tensor rows = scores ? new_rows(q) : at::Tensor();
    run(input_of(q, k, v, scale, lengths, cancellation), as_heads(output, heads), rows, cache);
    if (scores) *scores = model::on_device(rows[0], query.device());
    return model::on_device(output, query.device());
}

at::Tensor RunningCall::train() const {
    if (model::trains_by_kernel(query) || model::trains_by_kernel(key) || model::trains_by_kernel(value))
        return RunningFunction::apply(query, key, value, scale, lengths, cancellation);
    const PickedScores picked = picked_scores(scores_of_keys(), key.size(1));
    kernels::ScoreRule rule;
    if (lengths) rule.key_length = *lengths;
    return side_by_side(dense_attention(picked.query, picked.key, value, rule));
}

PickedScores picked_scores(const at::Tensor& scores, std::int64_t groups) {
    const std::int64_t heads = scores.size(1), share = heads / groups;
    const at::Tensor unit = at::eye(share, scores.options()).repeat({groups, 1}).view({1, heads, 1, share});
    return {unit.expand({scores.size(0), heads, scores.size(2), share}).contiguous(),
            scores.unflatten(1, {groups, share}).transpose(2, 3).contiguous()};
}

}  // namespace headscope::mixers
