// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/types/fourier.h"

namespace headscope::mixers {

/// FNet: the real part of the Fourier transform over a token's numbers and then over the text's own tokens, neither
/// scaled. No weights and no output projection; its site has no matrix.
class FourierMixer final : public Mixer {
public:
    FourierMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kFourier; }
    void declare(model::TensorPlan&, const model::TensorNames&) override {}
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return hidden_; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    std::int64_t hidden_, heads_, head_size_;
};

}  // namespace headscope::mixers
