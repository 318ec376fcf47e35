// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/linear/mamba2.h"
#include "core/mixers/mixer.h"
#include "core/mixers/standard.h"
#include "core/mixers/types/side_by_side.h"
#include "core/model/blocks.h"

namespace headscope::mixers {

/// Falcon-H1's: softmax attention and Mamba2 of the same input, each with an output projection of its own and factors
/// before and behind it (ModelConfig::branch_factors), added. Two sites: branch "softmax", then "linear". What both
/// announce under one name comes twice, the softmax's first.
class SideBySideMixer final : public Mixer {
public:
    SideBySideMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kSideBySide; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return hidden_; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;
    /// The softmax attention's, with its factors.
    std::optional<HeadMaps> head_maps() const override;

private:
    StandardMixer attention_;
    Mamba2Mixer state_;
    model::Linear attention_output_, state_output_;
    model::BranchFactors factors_;
    std::int64_t hidden_;
};

}  // namespace headscope::mixers
