// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/TensorOperators.h>

#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/shared/recurrence.h"
#include "core/mixers/types/short_convolution.h"
#include "core/model/blocks.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/training_ops.h"

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

ShortConvolutionMixer::ShortConvolutionMixer(const model::ModelConfig& config, std::int64_t)
    : channels_(config.hidden), taps_count_(config.convolution_taps), bias_(config.convolution_bias) {}

void ShortConvolutionMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::Dimension hidden{channels_, plan.keys().hidden};
    const std::string taps = names.layer_stem + "conv.conv";
    input_.declare(plan, names.layer_stem + "conv.in_proj", {3 * channels_, "3 * " + hidden.keys}, hidden, bias_);
    plan.want(&taps_, {taps + ".weight"}, {hidden, {1, "one"}, {taps_count_, "conv_L_cache"}});
    if (bias_) plan.want(&taps_bias_, {taps + ".bias"}, {hidden});
}

std::vector<Site> ShortConvolutionMixer::sites() const {
    Site site;
    site.heads = site.key_value_heads = 1;
    site.key_size = site.value_size = static_cast<std::int32_t>(channels_);
    site.has_matrix = type().has_matrix;
    return {site};
}

at::Tensor ShortConvolutionMixer::forward(const at::Tensor& normed, const StackContext& context,
                                          MixerCache* cache) const {
    auto* held = cache ? &dynamic_cast<DeltaCache&>(*cache) : nullptr;
    const auto [b, others] = model::split_heads(input_(normed, context.cancellation), channels_);
    const auto [c, x] = model::split_heads(others, channels_);
    return c * short_convolution(b * x, taps_.select(1, 0), taps_bias_, held ? &held->before : nullptr, true);
}

std::unique_ptr<MixerCache> ShortConvolutionMixer::new_cache() const {
    return std::make_unique<DeltaCache>();  // without a state
}

std::unique_ptr<Mixer> make_short_convolution(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<ShortConvolutionMixer>(config, layer);
}

}  // namespace headscope::mixers
