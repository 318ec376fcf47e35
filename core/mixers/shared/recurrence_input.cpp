// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/recurrence_input.h"

#include <utility>

#include "core/mixers/shared/tensor_views.h"
#include "core/model/device.h"

namespace headscope::mixers {
namespace {

/// The kernels' view of [B, H, L] or [B, H, L, size] float32 numbers.
kernels::TensorView numbers_view(const at::Tensor& numbers) {
    return numbers.defined() ? view_of(numbers.dim() == 3 ? numbers.unsqueeze(3) : numbers) : kernels::TensorView{};
}

}  // namespace

kernels::RecurrentRule rule_of(const Recurrence& what, std::int64_t open) {
    kernels::RecurrentRule rule = what.rule;
    rule.decay = !what.log_decay.defined()   ? kernels::Decay::none
                 : what.log_decay.dim() == 3 ? kernels::Decay::head
                                             : kernels::Decay::channel;
    if (rule.chunk_size > 0) {
        rule.chunk_begin = open;
        rule.chunks = (open + what.value.size(2) + rule.chunk_size - 1) / rule.chunk_size;
    }
    return rule;
}

KernelInput::KernelInput(const Recurrence& what, kernels::RecurrentRule rule_of_call, const Cancellation* cancellation)
    : rule(std::move(rule_of_call)) {
    const auto narrow = [](const at::Tensor& x) {
        return kernel_operand(x.scalar_type() == at::kDouble ? x.to(at::kFloat) : x);
    };
    const auto floats = [](const at::Tensor& x) {
        return x.defined() ? model::for_kernel(x.to(at::kFloat)).contiguous() : at::Tensor();
    };
    query = narrow(what.query);
    key = narrow(what.key);
    value = narrow(what.value);
    write = floats(what.write);
    log_decay = floats(what.log_decay);
    direct = model::on_processor(floats(what.direct));  // read there by kernels of a GPU, too
    if (what.kept.defined()) {
        const at::Tensor kept = model::on_processor(what.kept.detach()).to(at::kFloat).contiguous();
        rule.kept.assign(kept.const_data_ptr<float>(), kept.const_data_ptr<float>() + kept.numel());
    }
    input = {view_of(query),
             view_of(key),
             view_of(value),
             numbers_view(write),
             numbers_view(log_decay),
             &rule,
             cancellation ? cancellation->flag() : nullptr,
             direct.defined() ? direct.const_data_ptr<float>() : nullptr};
}

}  // namespace headscope::mixers
