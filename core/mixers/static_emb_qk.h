// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/projections.h"
#include "kernels/attention.h"

namespace headscope::mixers {

/// StaticEmbQK (Deconstructing Attention, arXiv 2510.11602): softmax attention whose queries and keys come from the
/// tokens' embeddings in every layer, through the layer's own input norm and maps; values from the layer's input.
class StaticEmbeddingMixer final : public Mixer {
public:
    StaticEmbeddingMixer(const model::ModelConfig& config, std::int64_t layer);

    std::string name() const override { return "static_emb_qk"; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override { maps_.declare(plan, names); }
    std::vector<Site> sites() const override { return {maps_.site(true)}; }
    std::int64_t output_size() const override { return maps_.output_size(); }
    QueryKeySource query_key_source() const override { return QueryKeySource::embedding; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    Projections maps_;
    kernels::ScoreRule rule_;
};

}  // namespace headscope::mixers
