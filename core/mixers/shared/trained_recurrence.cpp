// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/trained_recurrence.h"

#include <optional>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/mixers/shared/kept_rule.h"
#include "core/mixers/shared/recurrence_input.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/model/device.h"
#include "core/model/training_ops.h"
#include "kernels/backend.h"

namespace headscope::mixers {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using KeptRecurrence = Kept<kernels::RecurrentRule>;
using Optional = std::optional<at::Tensor>;

float* numbers_of(const at::Tensor& t) {
    return t.defined() ? t.mutable_data_ptr<float>() : nullptr;
}

at::Tensor of_type(const at::Tensor& t, const at::Tensor& like) {
    return t.defined() ? model::on_device(t.to(like.scalar_type()), like.device()) : t;
}

class RecurrenceFunction : public torch::autograd::Function<RecurrenceFunction> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, const Optional& write, const Optional& log_decay,
                              const Optional& factors, const kernels::RecurrentRule& rule, bool dropped_too,
                              const Cancellation* cancellation) {
        const auto given = [](const Optional& t) { return t.value_or(at::Tensor()); };
        const Recurrence what{query, key, value, given(write), given(log_decay), given(factors), rule, false, {}};
        const KernelInput own(what, rule, cancellation);
        const at::Tensor &k = own.key, &v = own.value;
        const std::int64_t heads = v.size(1), length = v.size(2);
        const at::Tensor output = at::empty({v.size(0), length, heads * v.size(3)}, v.options());
        const at::Tensor pieces =
            at::empty({v.size(0), heads, kernels::recurrent_pieces(rule, length), k.size(3), v.size(3)},
                      v.options().dtype(at::kFloat));
        try {
            kernels::recurrent_forward(own.input, target_of(as_heads(output, heads)), {}, numbers_of(pieces));
        } catch (const kernels::Cancelled&) {
            throw Stopped();
        }
        context->save_for_backward(
            {own.query, own.key, own.value, given(write), given(log_decay), given(factors), pieces});
        context->saved_data["rule"] = c10::IValue::make_capsule(c10::make_intrusive<KeptRecurrence>(rule));
        context->saved_data["dropped_too"] = dropped_too;
        return model::on_device(output, value.device());
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        const tensor_list saved = context->get_saved_variables();
        const at::Tensor &q = saved.at(0), &k = saved.at(1), &v = saved.at(2), &pieces = saved.at(6);
        const auto kept = c10::static_intrusive_pointer_cast<KeptRecurrence>(context->saved_data["rule"].toCapsule());
        const KernelInput own({q, k, v, saved.at(3), saved.at(4), saved.at(5), kept->value, false, {}}, kept->value,
                              nullptr);
        // Tensors that are not there have no number among the inputs.
        std::size_t input = 0;
        const auto heads = [&](const at::Tensor& of) {
            return context->needs_input_grad(input++) ? new_heads(of, of.size(1), of.size(2), of.size(3))
                                                      : at::Tensor();
        };
        const auto room = [&](const at::Tensor& of) {
            const bool wanted = of.defined() && context->needs_input_grad(input++);
            return wanted ? at::empty(of.sizes(), v.options().dtype(at::kFloat)) : at::Tensor();
        };
        const at::Tensor dq = heads(q), dk = heads(k), dv = heads(v);
        const at::Tensor write = room(saved.at(3)), log_decay = room(saved.at(4)), factors = room(saved.at(5));
        const at::Tensor outer_by_head = as_heads(model::for_kernel(outer.at(0)).contiguous(), v.size(1));
        const at::Device device = outer[0].device();
        kernels::recurrent_backward(
            own.input, view_of(outer_by_head), pieces.const_data_ptr<float>(),
            {target_of(dq), target_of(dk), target_of(dv), numbers_of(write), numbers_of(log_decay), numbers_of(factors),
             context->saved_data["dropped_too"].toBool()});
        return {model::on_device(dq, device),
                model::on_device(dk, device),
                model::on_device(dv, device),
                of_type(write, saved[3]),
                of_type(log_decay, saved[4]),
                of_type(factors, saved[5]),
                {},
                {},
                {}};
    }
};

}  // namespace

bool recurrence_recorded(const Recurrence& what) {
    for (const at::Tensor* t : {&what.query, &what.key, &what.value, &what.write, &what.log_decay, &what.kept})
        if (model::recorded(*t)) return true;
    return false;
}

bool recurrence_trains_fused(const Recurrence& what) {
    for (const at::Tensor* t : {&what.query, &what.key, &what.value})
        if (t->scalar_type() != at::kFloat && t->scalar_type() != at::kBFloat16) return false;
    return recurrence_recorded(what) && (!what.log_decay.defined() || what.log_decay.dim() == 3);
}

at::Tensor trained_recurrence(const Recurrence& what, const Cancellation* cancellation) {
    return RecurrenceFunction::apply(what.query, what.key, what.value, Optional(what.write), Optional(what.log_decay),
                                     Optional(what.kept), rule_of(what, 0), what.dropped_too, cancellation);
}

}  // namespace headscope::mixers
