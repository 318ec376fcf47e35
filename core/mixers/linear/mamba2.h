// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/types/mamba2.h"
#include "core/model/blocks.h"

namespace headscope::mixers {

/// Mamba2: query C and key B of a group of heads, value x, after one convolution and SiLU; a token writes with its step
/// dt and decays by e^(-dt e^A_log); D x beside the state; an RMS norm of y * SiLU(z). What families have otherwise is
/// ModelConfig::state_space. Linear time, a cache of constant size. Throws Error(mismatch) where groups do not divide
/// heads.
class Mamba2Mixer final : public Mixer {
public:
    explicit Mamba2Mixer(const model::ModelConfig& config);

    const MixerType& type() const override { return kMamba2; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return inner(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    std::int64_t inner() const { return heads_ * head_size_; }
    std::int64_t channels() const { return inner() + 2 * groups_ * state_size_; }
    /// Rows of z, x, B, C and dt, [B, L, rows], times their factors.
    at::Tensor projected(const at::Tensor& normed, const Cancellation* cancellation) const;
    /// dt [B, L, H], float32 at least.
    at::Tensor step(const at::Tensor& logits) const;
    /// The state's output y combined with the gate z, both [B, L, inner].
    at::Tensor gated(const at::Tensor& y, const at::Tensor& z) const;
    at::Tensor normal(const at::Tensor& x) const;

    model::StateSpaceConfig choices_;
    std::int64_t heads_ = 0, head_size_ = 0, state_size_ = 0, groups_ = 0, taps_count_ = 0;
    model::Linear projection_;         ///< rows of z, x, B, C, dt
    at::Tensor taps_, taps_bias_;      ///< [channels, 1, taps], [channels]
    at::Tensor rate_log_, step_bias_;  ///< [H]
    at::Tensor direct_;                ///< [H], or [inner]
    model::Norm norm_;                 ///< of each group's numbers
};

}  // namespace headscope::mixers
