// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/linear/kimi_delta.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>

#include "core/model/load/tensor_plan.h"

namespace headscope::mixers {

KimiDeltaMixer::KimiDeltaMixer(const model::ModelConfig& config)
    : parts_(DeltaSizes(kKimiDelta, config), false, false,
             config.mixer_options.get<bool>(kKimiDelta, kNegativeEigenvalue.name)) {}

void KimiDeltaMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    parts_.declare(plan, names);
    const model::RecurrentNames& own = names.in_layer.recurrent;
    const std::string stem = names.layer_stem + own.stem;
    const DeltaSizes& sizes = parts_.sizes();
    const model::Dimension hidden{plan.config().hidden, plan.keys().hidden}, one{1, "one"};
    const model::Dimension rank{sizes.key_size, own.keys.key_size}, keys{sizes.key_rows(), own.keys.key_rows};
    const model::Dimension values{sizes.value_rows(), own.keys.value_rows};
    decay_rank_.declare(plan, stem + own.few_of_decay, rank, hidden, false);
    decay_.declare(plan, stem + own.decay_of_few, keys, rank, false);
    gate_rank_.declare(plan, stem + own.few_of_gate, rank, hidden, false);
    gate_.declare(plan, stem + own.gate_of_few, values, rank, false);
    plan.want(&rate_log_, {stem + own.rate_log}, {one, one, {sizes.heads, own.keys.heads}, one},
              model::Initial::rate_log);
    plan.want(&step_bias_, {stem + own.step_bias}, {keys}, model::Initial::step_bias);
    norm_.declare_recurrent(plan, stem + own.norm, {sizes.value_size, own.keys.value_size});
}

at::Tensor KimiDeltaMixer::log_decay(const at::Tensor& normed) const {
    const DeltaSizes& sizes = parts_.sizes();
    const at::Tensor step = at::softplus(at_least_float(decay_(decay_rank_(normed))) + at_least_float(step_bias_));
    return (step.unflatten(2, {sizes.heads, sizes.key_size}) * -at_least_float(rate_log_).exp()).transpose(1, 2);
}

at::Tensor KimiDeltaMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    auto* held = cache ? &dynamic_cast<DeltaCache&>(*cache) : nullptr;
    const DeltaSizes& sizes = parts_.sizes();
    auto heads = parts_.heads(normed, held ? &held->before : nullptr, context.cancellation);
    heads.query = context.pass(model::Point::query, heads.query);
    heads.key = context.pass(model::Point::key, heads.key);
    heads.value = context.pass(model::Point::value, heads.value);
    Recurrence what;
    what.query = unit_length(heads.query);
    what.key = unit_length(heads.key);
    what.value = heads.value;
    what.write = parts_.rates(normed).write;
    what.log_decay = log_decay(normed);
    what.rule.scale = 1.0 / std::sqrt(static_cast<double>(sizes.key_size));
    StackContext own = context;
    own.output_projection = nullptr;  // the norm lies between
    const at::Tensor output = recur(what, held ? &held->state : nullptr, context.site, own);
    return norm_(output.unflatten(2, {sizes.heads, sizes.value_size})).flatten(2) *
           at::sigmoid(gate_(gate_rank_(normed), context.cancellation));
}

}  // namespace headscope::mixers
