// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/operator_flops.h"

#include <algorithm>
#include <array>

#include <ATen/core/Tensor.h>

namespace headscope::cost {
namespace {

using Inputs = c10::ArrayRef<const c10::IValue>;

const at::Tensor* tensor(Inputs inputs, std::size_t index) {
    if (index >= inputs.size() || !inputs[index].isTensor()) return nullptr;
    const at::Tensor& value = inputs[index].toTensor();
    return value.defined() ? &value : nullptr;
}

/// [.., m, k] times [.., k, n] or a vector of k.
template <std::size_t kFirst>
std::int64_t product(Inputs inputs) {
    const at::Tensor *a = tensor(inputs, kFirst), *b = tensor(inputs, kFirst + 1);
    if (a == nullptr || b == nullptr || b->dim() == 0) return 0;
    return 2 * a->numel() * (b->dim() >= 2 ? b->size(-1) : 1);
}

/// The pairs that LibTorch's fused attention computes: blocks of queries, each up to its last visible key.
std::int64_t fused_pairs(std::int64_t queries, std::int64_t keys, bool causal) {
    if (!causal) return queries * keys;
    const std::int64_t block = std::min<std::int64_t>(queries >= 768 ? 256 : queries >= 192 ? 64 : 32, queries);
    std::int64_t pairs = 0;
    for (std::int64_t first = 0; first < queries; first += block)
        pairs += std::min(block, queries - first) * std::min(first + block, keys);
    return pairs;
}

bool flag(Inputs inputs, std::size_t index) {
    return index < inputs.size() && inputs[index].isBool() && inputs[index].toBool();
}

std::int64_t fused_attention(Inputs inputs) {
    const at::Tensor *q = tensor(inputs, 0), *k = tensor(inputs, 1), *v = tensor(inputs, 2);
    if (q == nullptr || k == nullptr || v == nullptr) return 0;
    return 2 * q->size(0) * q->size(1) * fused_pairs(q->size(2), k->size(2), flag(inputs, 4)) *
           (q->size(3) + v->size(3));
}

/// Scores again, dV and dP through V; dQ and dK.
std::int64_t fused_attention_backward(Inputs inputs) {
    const at::Tensor *q = tensor(inputs, 1), *k = tensor(inputs, 2), *v = tensor(inputs, 3);
    if (q == nullptr || k == nullptr || v == nullptr) return 0;
    return 2 * q->size(0) * q->size(1) * fused_pairs(q->size(2), k->size(2), flag(inputs, 7)) *
           (3 * q->size(3) + 2 * v->size(3));
}

struct Operator {
    std::string_view name;
    std::int64_t (*flops)(Inputs);
};
constexpr std::array kOperators{
    Operator{"aten::mm", product<0>},
    Operator{"aten::addmm", product<1>},
    Operator{"aten::addmm_", product<1>},
    Operator{"aten::_addmm_activation", product<1>},
    Operator{"aten::bmm", product<0>},
    Operator{"aten::baddbmm", product<1>},
    Operator{"aten::baddbmm_", product<1>},
    Operator{"aten::addbmm", product<1>},
    Operator{"aten::addbmm_", product<1>},
    Operator{"aten::mv", product<0>},
    Operator{"aten::addmv", product<1>},
    Operator{"aten::addmv_", product<1>},
    Operator{"aten::dot", product<0>},
    Operator{"aten::vdot", product<0>},
    Operator{"aten::_scaled_dot_product_flash_attention_for_cpu", fused_attention},
    Operator{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", fused_attention_backward}};

}  // namespace

std::int64_t flops_of_operator(std::string_view name, Inputs inputs) {
    for (const Operator& candidate : kOperators)
        if (candidate.name == name) return candidate.flops(inputs);
    return -1;
}

}  // namespace headscope::cost
