// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/types/standard.h"
#include "core/model/blocks.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// Latent attention (DeepSeek-V2, arXiv 2405.04434): softmax attention whose keys and values come out of a few numbers
/// of each token, the latent part. A head's query and key are a part without positions beside one that turns, and the
/// key's turning part is the same in all heads; values have a size of their own. "query" and "key" are announced as the
/// scores see them, both parts side by side.
///
/// The cache holds the latent part and the turning part of a key, as the paper does: keys and values of earlier tokens
/// are computed again from these in each call.
class LatentMixer final : public Mixer {
public:
    explicit LatentMixer(const model::ModelConfig& config);

    const MixerType& type() const override { return kStandard; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return heads_ * value_size_; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;
    /// The parts without positions.
    std::optional<HeadMaps> head_maps() const override;

private:
    /// [B, L, heads, still + turning]
    at::Tensor queries(const at::Tensor& normed, const Cancellation* cancellation) const;
    /// [B, heads, L, still + turning], rotated now.
    at::Tensor turned_key(const at::Tensor& key, const StackContext& context) const;

    std::int64_t heads_, rank_, still_size_, turning_size_, value_size_;
    kernels::ScoreRule rule_;
    model::Linear query_down_;  ///< weight undefined: queries come out of the input at once
    model::Norm query_norm_;
    model::Linear query_up_;
    model::Linear key_value_down_;  ///< rows: the latent part, the turning part of a key
    model::Norm latent_norm_;
    model::Linear key_value_up_;  ///< rows, head by head: the still part of a key, a value
};

}  // namespace headscope::mixers
