// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/mixers/mixer.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/types/gated_deltanet.h"

namespace headscope::mixers {

/// Gated DeltaNet (kGatedDeltaNet) and, without decay, DeltaNet (kDeltaNet), in the conventions of
/// flash-linear-attention: unit queries and keys (DeltaNet: or what its options say), an RMS norm of each head's output
/// times the gate. Linear time, a cache of constant size.
class GatedDeltaMixer final : public Mixer {
public:
    GatedDeltaMixer(const MixerType& type, const model::ModelConfig& config);

    const MixerType& type() const override { return *type_; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override { return {parts_.site()}; }
    std::int64_t output_size() const override { return parts_.sizes().value_rows(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    const MixerType* type_;
    std::string activation_, unit_;  ///< DeltaNet's qk_activation and qk_norm
    DeltaParts parts_;
    model::Norm norm_;  ///< of each head's output
};

}  // namespace headscope::mixers
