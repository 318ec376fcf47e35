// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/linear/short_convolution.h"

#include <ATen/TensorOperators.h>

#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/shared/recurrence.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/training_ops.h"

namespace headscope::mixers {

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

}  // namespace headscope::mixers
