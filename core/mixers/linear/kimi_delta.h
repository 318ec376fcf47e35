// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/types/kimi_delta.h"

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

}  // namespace headscope::mixers
