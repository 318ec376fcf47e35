// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/types/cross.h"
#include "core/model/blocks.h"
#include "kernels/attention.h"

namespace headscope::mixers {

/// Attention of a decoder's tokens to what its encoder returned (StackContext::memory): softmax over the whole source,
/// no mask but the source's end, no positions. Keys and values are computed once for a text that is generated.
/// Not in the registry: a decoder layer has one beside the mixer of its own tokens.
class CrossMixer final : public Mixer {
public:
    /// `config` is the decoder's.
    explicit CrossMixer(const model::ModelConfig& config);

    const MixerType& type() const override { return kCross; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return heads_ * head_size_; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    std::int64_t heads_, head_size_;
    kernels::ScoreRule rule_;
    model::Linear query_;
    model::Linear key_value_;  ///< rows: key heads, value heads
};

}  // namespace headscope::mixers
