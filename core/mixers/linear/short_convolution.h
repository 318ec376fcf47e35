// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/types/short_convolution.h"
#include "core/model/blocks.h"

namespace headscope::mixers {

/// LFM2's convolution, as transformers has it: of one map's three parts b, c and x, c times the convolution of b x over
/// ModelConfig::convolution_taps tokens, without an activation. Its site has no matrix, and one head of all channels.
class ShortConvolutionMixer final : public Mixer {
public:
    ShortConvolutionMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kShortConvolution; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return channels_; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    std::int64_t channels_, taps_count_;
    bool bias_;
    model::Linear input_;
    at::Tensor taps_, taps_bias_;  ///< [channels, 1, taps], [channels] or undefined
};

}  // namespace headscope::mixers
