// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/trained_attention.h"

#include <memory>
#include <optional>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/mixers/shared/kept_rule.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/model/device.h"
#include "core/model/training_ops.h"
#include "kernels/attention_backward.h"
#include "kernels/backend.h"
#include "kernels/normaliser.h"

namespace headscope::mixers {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

kernels::SoftmaxRows softmax_rows_of(const at::Tensor& constants) {
    const std::int64_t rows = constants.numel() / 2;
    return {constants.mutable_data_ptr<float>(), constants.mutable_data_ptr<float>() + rows};
}

struct Gradients {
    at::Tensor query, key, value;
};

/// Side by side in one tensor where lengths and sizes agree: split_heads() then joins them without a copy.
Gradients new_gradients(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    const std::int64_t heads = q.size(1), groups = k.size(1);
    if (q.size(2) != k.size(2) || q.size(3) != v.size(3)) {
        return {new_heads(q, heads, q.size(2), q.size(3)), new_heads(k, groups, k.size(2), k.size(3)),
                new_heads(v, groups, v.size(2), v.size(3))};
    }
    const at::Tensor all = new_heads(q, heads + 2 * groups, q.size(2), q.size(3));
    return {all.narrow(1, 0, heads), all.narrow(1, heads, groups), all.narrow(1, heads + groups, groups)};
}

class AttentionFunction : public torch::autograd::Function<AttentionFunction> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, const std::optional<at::Tensor>& sinks,
                              const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& blocks,
                              const std::optional<at::Tensor>& offsets, bool hidden_blocks,
                              const kernels::ScoreRule& rule, const Cancellation* cancellation) {
        const at::Tensor q = kernel_operand(query), k = kernel_operand(key), v = kernel_operand(value);
        const std::int64_t heads = q.size(1), length = q.size(2);
        const at::Tensor output = at::empty({q.size(0), length, heads * v.size(3)}, q.options());
        const at::Tensor by_head = output.view({q.size(0), length, heads, v.size(3)}).transpose(1, 2);
        const at::Tensor constants = at::empty({2, q.size(0), heads, length}, q.options().dtype(at::kFloat));
        const auto kept = c10::make_intrusive<KeptRule>(rule);
        try {
            kernels::attention_forward(
                {view_of(q), view_of(k), view_of(v), &kept->value, cancellation ? cancellation->flag() : nullptr},
                target_of(by_head), softmax_rows_of(constants));
        } catch (const kernels::Cancelled&) {
            throw Stopped();
        }
        context->save_for_backward({q, k, v, output, constants, sinks.value_or(at::Tensor()),
                                    bias.value_or(at::Tensor()), blocks.value_or(at::Tensor()),
                                    offsets.value_or(at::Tensor())});
        context->saved_data["hidden_blocks"] = hidden_blocks;
        context->saved_data["rule"] = c10::IValue::make_capsule(kept);
        return model::on_device(output, query.device());
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        const tensor_list saved = context->get_saved_variables();
        const at::Tensor &q = saved.at(0), &k = saved.at(1), &v = saved.at(2), &output = saved.at(3);
        const auto kept = c10::static_intrusive_pointer_cast<KeptRule>(context->saved_data["rule"].toCapsule());
        const auto by_head = [&](const at::Tensor& flat) {
            return flat.view({q.size(0), q.size(2), q.size(1), v.size(3)}).transpose(1, 2);
        };
        const at::Tensor outer_by_head = by_head(model::for_kernel(outer.at(0)).contiguous());
        Gradients gradients = new_gradients(q, k, v);
        if (!context->needs_input_grad(0)) gradients.query.reset();
        if (!context->needs_input_grad(1)) gradients.key.reset();
        if (!context->needs_input_grad(2)) gradients.value.reset();
        // Tensors that are not there have no number among the inputs.
        std::size_t input = 3;
        const auto room = [&](const at::Tensor& of) {
            const bool wanted = of.defined() && context->needs_input_grad(input++);
            // Kernels of a GPU write these in memory of the processor, too.
            return wanted ? at::empty(of.sizes(), of.options().dtype(at::kFloat).device(at::kCPU)) : at::Tensor();
        };
        const at::Tensor sinks = room(saved.at(5)), bias = room(saved.at(6)), blocks = room(saved.at(7));
        const at::Tensor offsets = room(saved.at(8));
        const auto floats = [](const at::Tensor& t) { return t.defined() ? t.mutable_data_ptr<float>() : nullptr; };
        kernels::attention_backward(
            {view_of(q), view_of(k), view_of(v), &kept->value, nullptr}, view_of(by_head(output)),
            view_of(outer_by_head), softmax_rows_of(saved.at(4)),
            {target_of(gradients.query), target_of(gradients.key), target_of(gradients.value), floats(sinks),
             floats(bias), floats(blocks), context->saved_data["hidden_blocks"].toBool(), floats(offsets)});
        const auto of_type = [](const at::Tensor& t, const at::Tensor& of) {
            return t.defined() ? model::on_device(t.to(of.scalar_type()), of.device()) : t;
        };
        const at::Device device = outer[0].device();
        return {model::on_device(gradients.query, device),
                model::on_device(gradients.key, device),
                model::on_device(gradients.value, device),
                of_type(sinks, saved[5]),
                of_type(bias, saved[6]),
                of_type(blocks, saved[7]),
                of_type(offsets, saved[8]),
                {},
                {},
                {}};
    }
};

}  // namespace

bool trains_fused(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const kernels::ScoreRule& rule) {
    return (model::trains_by_kernel(query) || model::trains_by_kernel(key) || model::trains_by_kernel(value)) &&
           kernels::traits_of(rule.normaliser).trains();
}

at::Tensor trained_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                             const kernels::ScoreRule& rule, const RuleTensors& tensors,
                             const Cancellation* cancellation) {
    return AttentionFunction::apply(
        query, key, value, std::optional<at::Tensor>(tensors.sink_logits),
        std::optional<at::Tensor>(tensors.distance_bias), std::optional<at::Tensor>(tensors.blocks),
        std::optional<at::Tensor>(tensors.offsets), tensors.hidden_blocks, rule, cancellation);
}

}  // namespace headscope::mixers
