// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/block_attention.h"

#include <algorithm>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/kept_rule.h"

namespace headscope::mixers {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr std::int64_t kBlock = 64;  // queries

/// Queries [first, first + count), the keys up to `keys` that they may see, and their rule.
struct Block {
    std::int64_t first, count, keys;
    kernels::ScoreRule rule;

    Block(const kernels::ScoreRule& whole, std::int64_t begin, std::int64_t queries, std::int64_t all_keys)
        : first(begin), count(std::min(kBlock, queries - begin)), keys(all_keys), rule(whole) {
        rule.query_offset += first;
        if (rule.causal) keys = std::clamp<std::int64_t>(rule.query_offset + count, 1, all_keys);
    }
    at::Tensor queries_of(const at::Tensor& all) const { return all.narrow(2, first, count); }
    at::Tensor keys_of(const at::Tensor& all) const { return all.narrow(2, 0, keys); }
};

template <class Body>
void for_blocks(const kernels::ScoreRule& rule, std::int64_t queries, std::int64_t keys, const Body& body) {
    for (std::int64_t first = 0; first < queries; first += kBlock) body(Block(rule, first, queries, keys));
}

class BlockFunction : public torch::autograd::Function<BlockFunction> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, const kernels::ScoreRule& rule) {
        const at::Tensor q = query.to(at::kFloat), k = key.to(at::kFloat), v = value.to(at::kFloat);
        const std::int64_t heads = q.size(1), size = v.size(3);
        const at::Tensor output = at::empty({q.size(0), q.size(2), heads * size}, query.options());
        const at::Tensor by_head = output.unflatten(2, {heads, size}).transpose(1, 2);
        for_blocks(rule, q.size(2), k.size(2), [&](const Block& block) {
            block.queries_of(by_head).copy_(
                dense_attention(block.queries_of(q), block.keys_of(k), block.keys_of(v), block.rule));
        });
        context->save_for_backward({query, key, value});
        context->saved_data["rule"] = c10::IValue::make_capsule(c10::make_intrusive<KeptRule>(rule));
        return output;
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        const tensor_list saved = context->get_saved_variables();
        const auto kept = c10::static_intrusive_pointer_cast<KeptRule>(context->saved_data["rule"].toCapsule());
        tensor_list inputs, gradients;
        for (const at::Tensor& one : saved) {
            inputs.push_back(one.detach().to(at::kFloat));
            gradients.push_back(at::zeros(one.sizes(), inputs.back().options()));
        }
        const std::int64_t heads = saved[0].size(1);
        const at::Tensor d_output =
            outer.at(0).to(at::kFloat).unflatten(2, {heads, outer.at(0).size(2) / heads}).transpose(1, 2);
        for_blocks(kept->value, saved[0].size(2), saved[1].size(2), [&](const Block& block) {
            const at::AutoGradMode recording(true);
            tensor_list parts{block.queries_of(inputs[0]), block.keys_of(inputs[1]), block.keys_of(inputs[2])};
            for (at::Tensor& part : parts) part = part.detach().requires_grad_(true);
            const at::Tensor result = dense_attention(parts[0], parts[1], parts[2], block.rule);
            const tensor_list found = torch::autograd::grad({result}, parts, {block.queries_of(d_output)});
            block.queries_of(gradients[0]).add_(found[0]);
            block.keys_of(gradients[1]).add_(found[1]);
            block.keys_of(gradients[2]).add_(found[2]);
        });
        for (std::size_t n = 0; n < gradients.size(); ++n) gradients[n] = gradients[n].to(saved[n].scalar_type());
        return {gradients[0], gradients[1], gradients[2], {}};
    }
};

}  // namespace

at::Tensor block_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const kernels::ScoreRule& rule) {
    return BlockFunction::apply(query, key, value, rule);
}

}  // namespace headscope::mixers
