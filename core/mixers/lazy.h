// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/types/lazy.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// Lazy Attention: scores with a learned bias of each head for distances below the window, then Elastic-Softmax, whose
/// offset each head learns: a row's weights are max(p + tau / i, 0), i keys being visible. Neither takes weight decay.
class LazyMixer final : public Mixer {
public:
    LazyMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kLazy; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;
    std::optional<HeadMaps> head_maps() const override { return maps_.head_maps(); }

private:
    Projections maps_;
    kernels::ScoreRule rule_;
    std::int64_t window_ = 0;  ///< 0: no bias
    bool elastic_, learns_offset_;
    bool has_slopes_ = false, learns_slopes_ = false;  ///< ALiBi's, besides the bias
    double first_offset_;
    at::Tensor bias_;    ///< [heads, window], by distance from 0 on
    at::Tensor offset_;  ///< [heads]
    at::Tensor slopes_;  ///< [heads], if they are learned
};

}  // namespace headscope::mixers
