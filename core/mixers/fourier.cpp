// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/fft_fftn.h>
#include <ATen/ops/real.h>

#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/no_cache.h"
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

namespace {

/// [.., L, d], of any floating type.
at::Tensor transformed(const at::Tensor& x) {
    const at::Tensor wide = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
    return at::real(at::fft_fftn(wide, at::OptionalIntArrayRef(), at::IntArrayRef{-2, -1})).to(x.scalar_type());
}

}  // namespace

FourierMixer::FourierMixer(const model::ModelConfig& config, std::int64_t)
    : hidden_(config.hidden), heads_(config.heads), head_size_(config.head_size) {}

std::vector<Site> FourierMixer::sites() const {
    Site site;
    site.heads = site.key_value_heads = static_cast<std::int32_t>(heads_);
    site.key_size = site.value_size = static_cast<std::int32_t>(head_size_);
    site.causal = false;
    site.has_matrix = type().has_matrix;
    return {site};
}

at::Tensor FourierMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache*) const {
    if (context.cancellation) context.cancellation->check();
    if (!context.lengths) return transformed(normed);
    std::vector<at::Tensor> texts;
    for (std::int64_t b = 0; b < normed.size(0); ++b) {
        const std::int64_t own = (*context.lengths)[static_cast<std::size_t>(b)];
        const at::Tensor text = transformed(normed.narrow(0, b, 1).narrow(1, 0, own));
        texts.push_back(at::constant_pad_nd(text, {0, 0, 0, normed.size(1) - own}));
    }
    return at::cat(texts);
}

std::unique_ptr<MixerCache> FourierMixer::new_cache() const {
    return std::make_unique<NoCache>();
}

std::unique_ptr<Mixer> make_fourier(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<FourierMixer>(config, layer);
}

}  // namespace headscope::mixers
