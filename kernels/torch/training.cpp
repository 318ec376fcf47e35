// SPDX-License-Identifier: GPL-3.0-or-later
// torch.ops.headscope.attention under autograd: two more operators, attention_forward, which keeps two numbers a row,
// and attention_backward, and the function that joins them. Both are operators, not calls, so that torch.compile can
// trace them with tensors that have no data.
#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#endif
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_backward.h"
#include "kernels/backend.h"
#include "kernels/normaliser.h"
#include "kernels/torch/arguments.h"

namespace headscope::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

std::string forward_schema() {
    return std::string("attention_forward(Tensor query, Tensor key, Tensor value, *, ") + kRuleSchema +
           ") -> (Tensor output, Tensor rows)";
}

std::string backward_schema() {
    return std::string(
               "attention_backward(Tensor output_gradient, Tensor output, Tensor rows, Tensor query, Tensor key, "
               "Tensor value, *, ") +
           kRuleSchema + ") -> (Tensor query_gradient, Tensor key_gradient, Tensor value_gradient)";
}

MutableView target_of(const at::Tensor& t) {
    return {t.mutable_data_ptr(), t.scalar_type() == at::kFloat ? ElementType::float32 : ElementType::bfloat16,
            t.stride(0), t.stride(1), t.stride(2)};
}

SoftmaxRows rows_of(const at::Tensor& rows) {
    float* data = rows.mutable_data_ptr<float>();
    return {data, data + rows.numel() / 2};
}

void forward_on_device(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const Arguments a(op, *stack);
    check_tensors(a.tensor("query"), a.tensor("key"), a.tensor("value"));
    const at::Tensor q = with_unit_stride(a.tensor("query")), k = with_unit_stride(a.tensor("key")),
                     v = with_unit_stride(a.tensor("value"));
    const ScoreRule rule = rule_of(a, q.size(0), q.size(1), q.size(3));
    const at::Tensor output = at::empty({q.size(0), q.size(1), q.size(2), v.size(3)}, q.options());
    const at::Tensor rows = at::empty({2, q.size(0), q.size(1), q.size(2)}, q.options().dtype(at::kFloat));
    const KernelCall call(q);
    try {
        attention_forward({view_of(q), view_of(k), view_of(v), &rule, nullptr}, target_of(output), rows_of(rows));
    } catch (const Error& error) {
        TORCH_CHECK_VALUE(false, error.what());
    }
    torch::jit::drop(*stack, op.schema().arguments().size());
    torch::jit::push(*stack, output, rows);
}

void forward_on_meta(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const Arguments a(op, *stack);
    const at::Tensor q = a.tensor("query"), v = a.tensor("value");
    check_tensors(q, a.tensor("key"), v);
    const std::vector<c10::SymInt> shape{q.sym_size(0), q.sym_size(1), q.sym_size(2), v.sym_size(3)};
    const std::vector<c10::SymInt> rows{2, q.sym_size(0), q.sym_size(1), q.sym_size(2)};
    torch::jit::drop(*stack, op.schema().arguments().size());
    torch::jit::push(*stack, at::empty_symint(shape, q.options()),
                     at::empty_symint(rows, q.options().dtype(at::kFloat)));
}

void backward_on_device(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const Arguments a(op, *stack);
    const at::Tensor q = with_unit_stride(a.tensor("query")), k = with_unit_stride(a.tensor("key")),
                     v = with_unit_stride(a.tensor("value"));
    const at::Tensor output = with_unit_stride(a.tensor("output"));
    const at::Tensor gradient = with_unit_stride(a.tensor("output_gradient").to(q.scalar_type()));
    const at::Tensor rows = a.tensor("rows").contiguous();
    TORCH_CHECK_VALUE(rows.scalar_type() == at::kFloat && rows.numel() == 2 * q.size(0) * q.size(1) * q.size(2),
                      "[rows] expected what attention_forward gave; found ", rows.sizes());
    const ScoreRule rule = rule_of(a, q.size(0), q.size(1), q.size(3));
    const at::Tensor d_query = at::empty(q.sizes(), q.options()), d_key = at::empty(k.sizes(), k.options());
    const at::Tensor d_value = at::empty(v.sizes(), v.options());
    const KernelCall call(q);
    try {
        attention_backward({view_of(q), view_of(k), view_of(v), &rule, nullptr}, view_of(output), view_of(gradient),
                           rows_of(rows), {target_of(d_query), target_of(d_key), target_of(d_value)});
    } catch (const Error& error) {
        TORCH_CHECK_VALUE(false, error.what());
    }
    torch::jit::drop(*stack, op.schema().arguments().size());
    torch::jit::push(*stack, d_query, d_key, d_value);
}

void backward_on_meta(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const Arguments a(op, *stack);
    const auto like = [](const at::Tensor& t) { return at::empty_symint(t.sym_sizes(), t.options()); };
    const at::Tensor d_query = like(a.tensor("query")), d_key = like(a.tensor("key"));
    const at::Tensor d_value = like(a.tensor("value"));
    torch::jit::drop(*stack, op.schema().arguments().size());
    torch::jit::push(*stack, d_query, d_key, d_value);
}

/// Calls an operator of ours by name below autograd: `tensors`, then the rule.
torch::jit::Stack call(const char* name, const tensor_list& tensors, const std::vector<c10::IValue>& rule) {
    const at::AutoDispatchBelowADInplaceOrView below;
    torch::jit::Stack stack(tensors.begin(), tensors.end());
    stack.insert(stack.end(), rule.begin(), rule.end());
    c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&stack);
    return stack;
}

class AttentionFunction : public torch::autograd::Function<AttentionFunction> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, const std::vector<c10::IValue>& rule) {
        const torch::jit::Stack results = call("headscope::attention_forward", {query, key, value}, rule);
        const at::Tensor output = results.at(0).toTensor();
        context->save_for_backward({output, results.at(1).toTensor(), query, key, value});
        context->saved_data["rule"] = c10::ivalue::Tuple::create(rule);
        return output;
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        TORCH_CHECK_NOT_IMPLEMENTED(!at::GradMode::is_enabled(),
                                    "[headscope::attention] expected one backward pass; found create_graph=True: this "
                                    "operator has no second derivative.");
        tensor_list tensors = context->get_saved_variables();
        tensors.insert(tensors.begin(), outer.at(0));
        const auto& rule = context->saved_data["rule"].toTupleRef().elements();
        const torch::jit::Stack results =
            call("headscope::attention_backward", tensors, std::vector<c10::IValue>(rule.begin(), rule.end()));
        return {results.at(0).toTensor(), results.at(1).toTensor(), results.at(2).toTensor(), {}};
    }
};

void attention_under_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const Arguments a(op, *stack);
    const auto wants = [&](const char* name) {
        return at::GradMode::is_enabled() && a[name].isTensor() && a.tensor(name).requires_grad();
    };
    for (const char* name : {"slopes", "distance_bias", "sink_logits", "offsets"}) {
        TORCH_CHECK_NOT_IMPLEMENTED(!wants(name), "[", name,
                                    "] expected a constant: gradients reach query, key and value alone; found one that "
                                    "requires grad. Detach it.");
    }
    at::Tensor output;
    if (wants("query") || wants("key") || wants("value")) {
        // An unknown name is refused with all the others below.
        const auto normaliser = find_normaliser(a.word("normaliser"));
        TORCH_CHECK_NOT_IMPLEMENTED(!normaliser || traits_of(*normaliser).trains(), "[normaliser] expected ",
                                    normaliser_list(/*training=*/true), " where a gradient is wanted; found ",
                                    a.word("normaliser"));
        std::vector<c10::IValue> rule;
        const auto& schema =
            c10::Dispatcher::singleton().findSchemaOrThrow("headscope::attention_forward", "").schema();
        for (const c10::Argument& argument : schema.arguments()) {
            if (argument.kwarg_only()) rule.push_back(a[argument.name().c_str()]);
        }
        output = AttentionFunction::apply(a.tensor("query"), a.tensor("key"), a.tensor("value"), rule);
    }
    if (output.defined() && !a.flag("statistics")) {
        torch::jit::drop(*stack, op.schema().arguments().size());
        torch::jit::push(*stack, output, c10::Dict<std::string, at::Tensor>());
        return;
    }
    const at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
    if (output.defined()) (*stack)[stack->size() - 2] = output;
}

}  // namespace
}  // namespace headscope::kernels

TORCH_LIBRARY_FRAGMENT(headscope, library) {
    library.def(torch::schema(headscope::kernels::forward_schema().c_str()), {at::Tag::pt2_compliant_tag});
    library.def(torch::schema(headscope::kernels::backward_schema().c_str()), {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(headscope, CPU, library) {
    using torch::CppFunction;
    library.impl("attention_forward", CppFunction::makeFromBoxedFunction<&headscope::kernels::forward_on_device>());
    library.impl("attention_backward", CppFunction::makeFromBoxedFunction<&headscope::kernels::backward_on_device>());
}

TORCH_LIBRARY_IMPL(headscope, CUDA, library) {
    using torch::CppFunction;
    library.impl("attention_forward", CppFunction::makeFromBoxedFunction<&headscope::kernels::forward_on_device>());
    library.impl("attention_backward", CppFunction::makeFromBoxedFunction<&headscope::kernels::backward_on_device>());
}

TORCH_LIBRARY_IMPL(headscope, Meta, library) {
    using torch::CppFunction;
    library.impl("attention_forward", CppFunction::makeFromBoxedFunction<&headscope::kernels::forward_on_meta>());
    library.impl("attention_backward", CppFunction::makeFromBoxedFunction<&headscope::kernels::backward_on_meta>());
}

TORCH_LIBRARY_IMPL(headscope, Autograd, library) {
    library.impl("attention",
                 torch::CppFunction::makeFromBoxedFunction<&headscope::kernels::attention_under_autograd>());
}
