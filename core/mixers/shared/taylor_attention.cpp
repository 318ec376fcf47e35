// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/taylor_attention.h"

#include <algorithm>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/triu_indices.h>
#include <ATen/ops/zeros.h>

#include "core/mixers/shared/tensor_views.h"
#include "core/model/device.h"
#include "kernels/backend.h"
#include "kernels/normaliser.h"
#include "kernels/taylor_state.h"

namespace headscope::mixers {
namespace {

constexpr std::int64_t kTaylorChunk = 64;  // tokens, of the float64 path

at::Tensor empty_state(const at::Tensor& key, const at::Tensor& value, const kernels::ScoreRule& rule) {
    const auto type = key.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return at::zeros(
        {key.size(0), key.size(1), kernels::taylor_features(rule.normaliser, key.size(3)), value.size(3) + 1},
        key.options().dtype(type));
}

/// The products of (1, x) by order: {1}, {x}, {x_a x_b, a <= b} (diagonal: a = b). Each [.., number].
std::vector<at::Tensor> products(const at::Tensor& x, bool diagonal) {
    at::Tensor second = x * x;
    if (!diagonal) {
        const at::Tensor pairs = model::on_device(at::triu_indices(x.size(-1), x.size(-1), 0, at::kLong), x.device());
        second = x.index_select(-1, pairs[0]) * x.index_select(-1, pairs[1]);
    }
    std::vector<std::int64_t> sizes = x.sizes().vec();
    sizes.back() = 1;
    return {at::ones(sizes, x.options()), x, second};
}

/// Weight of each product of a query: 1; scale; scale^2 / 2, doubled where two equal products are merged.
std::vector<at::Tensor> counts(const at::Tensor& like, std::int64_t size, bool diagonal, double scale) {
    at::Tensor second = at::ones({size}, like.options());
    if (!diagonal) {
        const at::Tensor pairs = model::on_device(at::triu_indices(size, size, 0, at::kLong), like.device());
        second = 2 - pairs[0].eq(pairs[1]).to(like.scalar_type());
    }
    return {at::ones({1}, like.options()), at::ones({size}, like.options()) * scale, second * (0.5 * scale * scale)};
}

/// [B, H, L, dv] from tokens that all lie in one chunk, and `state`, which they join.
at::Tensor exact_chunk(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const kernels::ScoreRule& rule, const at::Tensor& state) {
    const bool diagonal = kernels::traits_of(rule.normaliser).diagonal;
    const std::int64_t share = query.size(1) / key.size(1);
    const auto of_heads = [share](const at::Tensor& groups) { return groups.repeat_interleave(share, 1); };
    const at::Tensor with_ones = at::cat({value, at::ones_like(value.narrow(3, 0, 1))}, 3);
    const auto of_query = products(query, diagonal), of_key = products(key, diagonal);
    const auto count = counts(query, query.size(3), diagonal, rule.scale);
    const at::Tensor before = of_heads(state), values = of_heads(with_ones);
    at::Tensor sums, result;
    std::int64_t first = 0;
    for (std::size_t order = 0; order < 3; ++order) {
        const std::int64_t number = of_query[order].size(3);
        const at::Tensor counted = of_query[order] * count[order];
        const at::Tensor pairs = counted.matmul(of_heads(of_key[order]).transpose(2, 3)).tril();
        const at::Tensor own = counted.matmul(before.narrow(2, first, number)) + pairs.matmul(values);
        sums = order == 0 || kernels::traits_of(rule.normaliser).per_order ? own : sums + own;
        const at::Tensor quotient = sums.narrow(3, 0, value.size(3)) / sums.narrow(3, value.size(3), 1);
        result = order > 0 && kernels::traits_of(rule.normaliser).per_order ? result + quotient : quotient;
        first += number;
    }
    at::Tensor held = state;
    held.add_(at::cat(of_key, 3).transpose(2, 3).matmul(with_ones));
    return result;
}

}  // namespace

std::int64_t TaylorCache::bytes() const {
    return bytes_of(state);
}

std::unique_ptr<MixerCache> TaylorCache::clone() const {
    auto copy = std::make_unique<TaylorCache>();
    copy->state = copied(state);
    return copy;
}

std::unique_ptr<MixerCache> TaylorCache::chosen(const at::Tensor& sequences) const {
    auto copy = std::make_unique<TaylorCache>();
    copy->state = of_sequences(state, sequences);
    return copy;
}

at::Tensor taylor_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const kernels::ScoreRule& rule, TaylorCache* cache, const Cancellation* cancellation) {
    const std::int64_t heads = query.size(1), length = query.size(2), size = value.size(3);
    if (cache && !cache->state.defined()) cache->state = empty_state(key, value, rule);
    if (query.scalar_type() == at::kDouble) {
        const at::Tensor output = at::empty({query.size(0), length, heads * size}, query.options());
        const at::Tensor by_head = as_heads(output, heads);
        const at::Tensor state = cache ? cache->state : empty_state(key, value, rule);
        for (std::int64_t first = 0; first < length; first += kTaylorChunk) {
            if (cancellation) cancellation->check();
            const auto part = [&](const at::Tensor& all) {
                return all.narrow(2, first, std::min(kTaylorChunk, length - first));
            };
            part(by_head).copy_(exact_chunk(part(query), part(key), part(value), rule, state));
        }
        return output;
    }
    const at::Tensor q = kernel_operand(query), k = kernel_operand(key), v = kernel_operand(value);
    const at::Tensor output = at::empty({q.size(0), length, heads * size}, q.options());
    const KernelStates held(std::vector<at::Tensor>{cache ? cache->state : at::Tensor()});
    try {
        kernels::taylor_forward({view_of(q), view_of(k), view_of(v), rule.scale, rule.normaliser,
                                 cancellation ? cancellation->flag() : nullptr},
                                target_of(as_heads(output, heads)), held.floats(0));
    } catch (const kernels::Cancelled&) {
        throw Stopped();
    }
    held.give_back();
    return model::on_device(output, query.device());
}

}  // namespace headscope::mixers
