// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/types/head_variants.h"
#include "core/mixers/types/standard.h"
#include "core/model/blocks.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// Softmax attention with shared maps: `sha`, `mqa`, `skv`, `el_att`, `mhe_add` and `mhe_mul`, as their types say; and
/// the cross-attention of a decoder with these or `standard`, which reads what the encoder returned
/// (StackContext::memory): no mask but the source's end, no positions, keys and values computed once for a text that is
/// generated.
/// Order for query and key: map and bias, the head's embedding, norm, rotary positions; for values: map, bias,
/// embedding. The cache has keys and values as the maps give them, once for all heads (of `skv` and `el_att` once for
/// both); what comes after that is done when they are read.
class HeadVariantMixer final : public Mixer {
public:
    enum class Reads : std::uint8_t { self, memory };  ///< what keys and values are made of
    HeadVariantMixer(const MixerType& type, const model::ModelConfig& config, Reads reads);

    const MixerType& type() const override { return *type_; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return heads_ * head_size_; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;
    /// Empty for `sha`, whose one head writes through all of the output projection.
    std::optional<HeadMaps> head_maps() const override;

private:
    bool is_cross() const { return reads_ == Reads::memory; }
    bool embeds_heads() const { return type_ == &kHeadEmbeddingAdd || type_ == &kHeadEmbeddingMul; }
    /// `shared` [B, L, maps, size] -> [B, L, heads, size], by the embedding [heads, size] of each.
    at::Tensor of_heads(const at::Tensor& shared, const at::Tensor& embedding) const;

    const MixerType* type_;
    Reads reads_;
    kernels::ScoreRule rule_;
    std::int64_t heads_, head_size_;
    std::int64_t query_maps_, key_maps_, value_maps_;  ///< heads that the maps give; 0: there is no such map
    std::int64_t query_heads_, key_value_heads_;       ///< heads that attend
    bool has_norms_;
    model::Linear query_;  ///< of cross-attention
    model::Linear maps_;   ///< rows of queries (of self-attention), keys and values
    model::Norm query_norm_, key_norm_;
    at::Tensor query_embedding_, key_embedding_, value_embedding_;  ///< [heads, size] or undefined
};

}  // namespace headscope::mixers
