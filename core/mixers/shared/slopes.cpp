// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/slopes.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/flip.h>

#include "core/model/device.h"

namespace headscope::mixers {

std::vector<float> rule_numbers(const at::Tensor& tensor) {
    const at::Tensor single = model::on_processor(tensor.detach()).to(at::kFloat).contiguous();
    return {single.const_data_ptr<float>(), single.const_data_ptr<float>() + single.numel()};
}

void set_distance_bias(const at::Tensor& bias, kernels::ScoreRule& rule, RuleTensors& tensors) {
    // The rule's table goes by key - query: from the farthest to 0.
    tensors.distance_bias = at::flip(bias, {1});
    rule.distance_bias = rule_numbers(tensors.distance_bias);
    rule.bias_length = bias.size(1);
    rule.bias_origin = bias.size(1) - 1;
    rule.beyond_table = kernels::BeyondTable::zero;
}

void set_trained_slopes(const at::Tensor& slopes, const at::Tensor& bias, std::int64_t keys, kernels::ScoreRule& rule,
                        RuleTensors& tensors) {
    if (!at::GradMode::is_enabled() || !slopes.requires_grad()) {
        rule.slopes = rule_numbers(slopes);
        if (bias.defined()) set_distance_bias(bias, rule, tensors);
        return;
    }
    const at::ScalarType type = slopes.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    at::Tensor table = slopes.to(type).neg().unsqueeze(1) * at::arange(keys, slopes.options().dtype(type));
    if (bias.defined()) {
        const std::int64_t window = std::min(bias.size(1), keys);
        table = table + at::constant_pad_nd(bias.narrow(1, 0, window).to(type), {0, keys - window});
    }
    set_distance_bias(table, rule, tensors);
}

}  // namespace headscope::mixers
