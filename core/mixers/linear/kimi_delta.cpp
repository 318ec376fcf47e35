// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>

#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/types/kimi_delta.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::mixers {

/// Kimi delta attention: unit queries and keys, an RMS norm of each head's output times the sigmoid of a gate. Linear
/// time, a cache of constant size.
class KimiDeltaMixer final : public Mixer {
public:
    explicit KimiDeltaMixer(const model::ModelConfig& config);

    const MixerType& type() const override { return kKimiDelta; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override { return {parts_.site()}; }
    std::int64_t output_size() const override { return parts_.sizes().value_rows(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override { return std::make_unique<DeltaCache>(); }

private:
    /// g [B, H, L, dk], float32 at least.
    at::Tensor log_decay(const at::Tensor& normed) const;

    DeltaParts parts_;
    model::Linear decay_rank_, decay_, gate_rank_, gate_;
    at::Tensor rate_log_;   ///< [1, 1, H, 1]
    at::Tensor step_bias_;  ///< [H * dk]
    model::Norm norm_;      ///< of each head's output
};

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

std::unique_ptr<Mixer> make_kimi_delta(const MixerType&, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<KimiDeltaMixer>(config);
}

}  // namespace headscope::mixers
