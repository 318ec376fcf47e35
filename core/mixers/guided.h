// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/shared/projections.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// Shared by RndEmbQK and FixedSeqQK: softmax attention whose queries and keys come from a guide stream, the same for
/// every text, and whose values come from the text. The stack runs the guide (StackContext::guide). Generation computes
/// no query and no key, and caches only values.
class GuidedMixer final : public Mixer {
public:
    GuidedMixer(const MixerType& type, const model::ModelConfig& config);

    const MixerType& type() const override { return type_; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override { maps_.declare(plan, names); }
    std::vector<Site> sites() const override { return {maps_.site(true)}; }
    std::int64_t output_size() const override { return maps_.output_size(); }
    GuideMaps guide_maps(const at::Tensor& normed, const StackContext& context) const override;
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    at::Tensor attend_together(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               const kernels::ScoreRule& rule, const StackContext& context) const;

    const MixerType& type_;
    Projections maps_;
    kernels::ScoreRule rule_;
};

}  // namespace headscope::mixers
