// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/torch/arguments.h"

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>

#include "kernels/backend.h"
#include "kernels/normaliser.h"

namespace headscope::kernels {
namespace {

template <typename Choice>
Choice choose(const Arguments& arguments, const char* name,
              std::initializer_list<std::pair<const char*, Choice>> choices) {
    std::string names;
    for (const auto& [word, choice] : choices) {
        if (arguments.word(name) == word) return choice;
        names += (names.empty() ? "" : " or ") + std::string(word);
    }
    TORCH_CHECK_VALUE(false, "[", name, "] expected ", names, "; found ", arguments.word(name));
}

}  // namespace

void check_tensors(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    for (const auto& [name, t] : {std::pair{"query", &q}, {"key", &k}, {"value", &v}}) {
        TORCH_CHECK_VALUE(t->dim() == 4, "[", name, "] expected [batch, heads, length, size]; found ", t->dim(),
                          " dimensions");
        TORCH_CHECK_TYPE(t->scalar_type() == at::kFloat || t->scalar_type() == at::kBFloat16, "[", name,
                         "] expected float32 or bfloat16; found ", t->scalar_type());
        TORCH_CHECK_VALUE(t->device() == q.device(), "[", name, "] expected a tensor on ", q.device(),
                          ", as the query; found one on ", t->device());
    }
    const bool alike = q.sym_size(0) == k.sym_size(0) && q.sym_size(3) == k.sym_size(3) && k.sym_size(1) > 0 &&
                       q.sym_size(1) % k.sym_size(1) == 0;
    TORCH_CHECK_VALUE(alike, "[key] expected batch and size of the query, ", q.sym_sizes(),
                      ", and heads that divide its heads; found ", k.sym_sizes());
    const bool paired =
        k.sym_size(0) == v.sym_size(0) && k.sym_size(1) == v.sym_size(1) && k.sym_size(2) == v.sym_size(2);
    TORCH_CHECK_VALUE(paired, "[value] expected batch, heads and length of the key, ", k.sym_sizes(), "; found ",
                      v.sym_sizes());
}

ScoreRule rule_of(const Arguments& a, std::int64_t batch, std::int64_t heads, std::int64_t size) {
    ScoreRule rule;
    rule.scale = a["scale"].isNone() ? 1.0 / std::sqrt(static_cast<double>(size)) : a.number("scale");
    rule.soft_cap = a.number("soft_cap");
    rule.causal = a.flag("causal");
    rule.query_offset = a.integer("query_offset");
    rule.window_left = a.integer("window_left");
    rule.window_right = a.integer("window_right");
    rule.first_keys = a.integer("first_keys");
    rule.slopes = a.values<float>("slopes", 1);
    rule.distance_bias = a.values<float>("distance_bias", 2);
    if (!a["distance_bias"].isNone()) rule.bias_length = a.tensor("distance_bias").size(1);
    rule.bias_origin = a.integer("bias_origin");
    rule.beyond_table =
        choose<BeyondTable>(a, "beyond_table", {{"clamp", BeyondTable::clamp}, {"zero", BeyondTable::zero}});
    rule.sink_logits = a.values<float>("sink_logits", 1);
    const auto normaliser = find_normaliser(a.word("normaliser"));
    TORCH_CHECK_VALUE(normaliser.has_value(), "[normaliser] expected ", normaliser_list(), "; found ",
                      a.word("normaliser"));
    rule.normaliser = *normaliser;
    rule.offsets = a.values<float>("offsets", 1);
    rule.offset_form = choose<OffsetForm>(a, "offset_form",
                                          {{"per_length", OffsetForm::per_length}, {"constant", OffsetForm::constant}});
    rule.query_length = a.values<std::int64_t>("query_length", 1);
    rule.key_begin = a.values<std::int64_t>("key_begin", 1);
    rule.key_length = a.values<std::int64_t>("key_length", 1);
    rule.blocks.block_size = a.integer("block_size");
    const bool blocks = !a["block_visible"].isNone();
    TORCH_CHECK_VALUE(blocks == (rule.blocks.block_size > 0),
                      "[block_size] expected a size with block_visible and 0 without; found ", rule.blocks.block_size);
    for (const bool seen : a.values<bool>("block_visible", 3)) rule.blocks.visible.push_back(seen ? 1 : 0);
    if (blocks) {
        const at::Tensor visible = a.tensor("block_visible");
        TORCH_CHECK_VALUE(visible.size(0) == batch && visible.size(1) == heads,
                          "[block_visible] expected [batch, heads, blocks]; found ", visible.sizes());
        rule.blocks.blocks = visible.size(2);
    }
    return rule;
}

KernelCall::KernelCall(const at::Tensor& query) : device_(query.device()) {
    if (!query.is_cuda()) return;
    const int index = chosen_gpu_index();
    TORCH_CHECK_VALUE(query.device().index() == index, "[query] expected a tensor on cuda:", index,
                      ", where kernels run; found one on ", query.device());
    const c10::impl::VirtualGuardImpl guard(query.device().type());
    guard.getStream(query.device()).synchronize();
}

TensorView view_of(const at::Tensor& tensor) {
    return {tensor.const_data_ptr(), tensor.scalar_type() == at::kFloat ? ElementType::float32 : ElementType::bfloat16,
            tensor.size(0),          tensor.size(1),
            tensor.size(2),          tensor.size(3),
            tensor.stride(0),        tensor.stride(1),
            tensor.stride(2),        tensor.is_cpu() ? Device::cpu : Device::gpu};
}

at::Tensor with_unit_stride(const at::Tensor& tensor) {
    return tensor.stride(3) == 1 ? tensor : tensor.contiguous();
}

}  // namespace headscope::kernels
