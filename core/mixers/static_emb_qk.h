// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/types/static_emb_qk.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// StaticEmbQK (Deconstructing Attention, arXiv 2510.11602): softmax attention whose queries and keys come from the
/// tokens' embeddings in every layer, through the layer's own input norm and maps; values from the layer's input.
class StaticEmbeddingMixer final : public Mixer {
public:
    StaticEmbeddingMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kStaticEmbedding; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override { maps_.declare(plan, names); }
    std::vector<Site> sites() const override { return {maps_.site(true)}; }
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    Projections maps_;
    kernels::ScoreRule rule_;
};

}  // namespace headscope::mixers
