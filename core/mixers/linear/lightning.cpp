// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sigmoid.h>

#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/types/lightning.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::mixers {

/// Lightning attention: query, key and value after SiLU, no scale, an RMS norm of all heads' outputs together, times
/// the sigmoid of a gate. Linear time, a cache of constant size.
class LightningMixer final : public Mixer {
public:
    LightningMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kLightning; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override { return {parts_.site()}; }
    std::int64_t output_size() const override { return parts_.sizes().value_rows(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override { return std::make_unique<DeltaCache>(); }

private:
    DeltaParts parts_;
    double layer_rate_;  ///< what the slopes are multiplied by
    model::Norm norm_;   ///< of all heads' numbers
};

LightningMixer::LightningMixer(const model::ModelConfig& config, std::int64_t layer)
    : parts_(DeltaSizes(kLightning, config), false, true, false, DeltaActivation::all, false),
      layer_rate_(1 - static_cast<double>(layer) / (static_cast<double>(config.layers - 1) + 1e-5) + 1e-5) {}

void LightningMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    parts_.declare(plan, names);
    const model::RecurrentNames& own = names.in_layer.recurrent;
    norm_.declare_recurrent(plan, names.layer_stem + own.stem + own.norm,
                            {parts_.sizes().value_rows(), own.keys.value_rows});
}

at::Tensor LightningMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    auto* held = cache ? &dynamic_cast<DeltaCache&>(*cache) : nullptr;
    auto heads = parts_.heads(normed, nullptr, context.cancellation);
    heads.query = context.pass(model::Point::query, heads.query);
    heads.key = context.pass(model::Point::key, heads.key);
    heads.value = context.pass(model::Point::value, heads.value);
    const std::int64_t count = parts_.sizes().heads;
    const at::Tensor slopes = at::pow(2.0, at::arange(1, count + 1, normed.options().dtype(at::kDouble)) *
                                               (-8.0 / static_cast<double>(count))) *
                              -layer_rate_;
    Recurrence what;
    what.query = heads.query;
    what.key = heads.key;
    what.value = heads.value;
    what.log_decay = slopes.to(at_least_float(normed).scalar_type())
                         .view({1, count, 1})
                         .expand({normed.size(0), -1, normed.size(1)});
    what.rule.delta = false;
    StackContext own = context;
    own.output_projection = nullptr;  // the norm lies between
    const at::Tensor output = recur(what, held ? &held->state : nullptr, context.site, own);
    return norm_(output) * at::sigmoid(parts_.gate_logits(normed, context.cancellation));
}

std::unique_ptr<Mixer> make_lightning(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<LightningMixer>(config, layer);
}

}  // namespace headscope::mixers
