// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/types/alibi.h"
#include "core/mixers/types/sigmoid.h"
#include "core/mixers/types/sink_logits.h"
#include "core/mixers/types/standard.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// Softmax attention: multi-head, grouped or multi-query, causal or not, with rotary positions, slopes, a shared bias
/// or none, norms of query and key, windows, pieces and sink logits, over the tokens themselves. Query, key and value
/// come out of one matrix product; "query" and "key" are announced after their norms. The types `alibi`, `sink_logits`
/// and `sigmoid` are it with one thing otherwise.
class StandardMixer final : public Mixer {
public:
    StandardMixer(const MixerType& type, const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return *type_; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;
    bool returns_heads() const override { return !maps_.gated(); }
    bool returns_one_position() const override { return true; }
    std::optional<HeadMaps> head_maps() const override { return maps_.head_maps(); }

private:
    const MixerType* type_;
    kernels::ScoreRule rule_;
    Projections maps_;
    bool has_slopes_;
    bool steps_rounded_;  ///< ModelConfig::alibi_rounded: queries and keys have two more columns, for what no slope
                          ///< gives
    double slope_scale_;
    bool learns_slopes_;          ///< option `trained` of `alibi`
    std::int64_t farthest_ = -1;  ///< distance in a shared bias; -1: there is none
    std::int64_t chunk_ = 0;      ///< of ModelConfig::chunks; 0: none
    float bias_ = 0;              ///< of every score (`sigmoid`)
    at::Tensor sinks_;            ///< [heads] or undefined
    at::Tensor slopes_;           ///< [heads], if they are learned
};

}  // namespace headscope::mixers
