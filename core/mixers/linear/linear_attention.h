// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

#include "core/mixers/mixer.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/types/linear_attention.h"
#include "core/model/embedding/rotary.h"

namespace headscope::mixers {

/// RetNet (kRetNet) and gated linear attention (kGla), in the conventions of flash-linear-attention: a state that
/// decays, without the delta rule; an RMS norm of each head's output times SiLU of the gate. Linear time, a cache of
/// constant size. RetNet turns queries and keys by rotary positions where the model or its own option has them; throws
/// Error(unsupported) where these depend on the text's length, which a state cannot.
class LinearAttentionMixer final : public Mixer {
public:
    LinearAttentionMixer(const MixerType& type, const model::ModelConfig& config);

    const MixerType& type() const override { return *type_; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override { return {parts_.site()}; }
    std::int64_t output_size() const override { return parts_.sizes().value_rows(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override { return std::make_unique<DeltaCache>(); }

private:
    at::Tensor log_decay(const at::Tensor& normed) const;
    /// By ModelConfig::feature_map.
    at::Tensor mapped(const at::Tensor& heads) const;
    /// Heads [B, H, L, dk] of this call's tokens.
    at::Tensor turned(const at::Tensor& heads, const StackContext& context) const;

    const MixerType* type_;
    DeltaParts parts_;
    model::Linear rank_, decay_;  ///< GLA's decay: from the input to a few numbers, to each number of the keys
    double least_log_decay_ = 0;  ///< 0: none
    std::optional<model::Activation> feature_map_;
    std::optional<model::Rotary> rotary_;
    model::Norm norm_;  ///< of each head's output
};

}  // namespace headscope::mixers
