// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/types/streaming_llm.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// StreamingLLM: a causal window and the text's first keys beside it. Its cache forgets what no later query sees.
///
/// Positions within a cache change distances to the first keys alone: for query i they are min(i, first + window - 1) -
/// j instead of i - j. So a query enters the scores twice, turned by its own position and by that one, and a key is in
/// one half of a head's numbers or in the other: heads have twice their size there.
class StreamingMixer final : public Mixer {
public:
    StreamingMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kStreamingLlm; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override { maps_.declare(plan, names); }
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;
    std::optional<HeadMaps> head_maps() const override { return maps_.head_maps(); }

private:
    Projections maps_;
    kernels::ScoreRule rule_;
    std::int64_t first_, window_;
    bool by_cache_;  ///< positions are those within the cache
};

}  // namespace headscope::mixers
