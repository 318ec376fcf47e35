// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/model/blocks.h"
#include "kernels/attention.h"

namespace headscope::mixers {

/// Softmax attention: multi-head, grouped or multi-query, causal or not, with rotary positions, slopes, a shared bias
/// or none, norms of query and key, windows and sink logits, over the tokens themselves. Query, key and value come out
/// of one matrix product; "query" and "key" are announced after their norms.
class StandardMixer final : public Mixer {
public:
    StandardMixer(const model::ModelConfig& config, std::int64_t layer);

    std::string name() const override { return "standard"; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return heads_ * head_size_; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    void declare_norms(model::TensorPlan& plan, const model::TensorNames& names);
    /// Query and key after their norms, [B, L, heads + key_value_heads, size] like the input.
    at::Tensor with_norms(const at::Tensor& query_key) const;

    std::int64_t heads_, key_value_heads_, head_size_;
    kernels::ScoreRule rule_;
    model::Linear query_key_value_;  ///< rows: query heads, key heads, value heads
    model::Norm query_norm_, key_norm_;
    bool norms_of_all_heads_ = false;
    at::Tensor sinks_;  ///< [heads] or undefined
};

}  // namespace headscope::mixers
