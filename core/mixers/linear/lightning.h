// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/types/lightning.h"

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

}  // namespace headscope::mixers
