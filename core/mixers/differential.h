// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/types/standard.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// Differential attention (Ye et al., arXiv 2410.05258) as transformers has it (ModelConfig::differential): softmax
/// attention of H heads, over values of twice a head's size; of its output the first half of the heads less lambda
/// times the second, an RMS norm of each without a gain, times a constant of the layer. Two sites: the softmax maps,
/// and what they make together, H / 2 heads with a signed implicit matrix. Memory of that one's statistics: a few rows.
class DifferentialMixer final : public Mixer {
public:
    DifferentialMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kStandard; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    /// [], float32 at least.
    at::Tensor factor() const;

    kernels::ScoreRule rule_;
    Projections maps_;
    double first_factor_;                           ///< lambda where nothing is learned
    at::Tensor query_1_, key_1_, query_2_, key_2_;  ///< [size], whose products make lambda
    model::Norm norm_;
};

}  // namespace headscope::mixers
