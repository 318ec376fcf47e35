// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/types/approximate.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// Deconstructing Attention's Approximate: t(s) = 1 + s + s^2 / 2 in the place of the exponential
/// (kApproximate). Short texts, training and whatever is measured go pair by pair through
/// attend(); long ones and everything with a cache in linear time, from a state of constant size.
class ApproximateMixer final : public Mixer {
public:
    ApproximateMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kApproximate; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override { maps_.declare(plan, names); }
    std::vector<Site> sites() const override { return {maps_.site(true)}; }
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    /// True if attend() applies: a probe or autograd records, or the text is short.
    bool by_pairs(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const StackContext& context) const;

    Projections maps_;
    kernels::ScoreRule rule_;
};

}  // namespace headscope::mixers
