// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/types/mlp.h"
#include "core/model/blocks.h"

namespace headscope::mixers {

/// No token mixing (Deconstructing Attention, arXiv 2510.11602): down(SiLU(gate x) * up x) of each token for itself,
/// three maps in the place of those of query, key and value. Its site has no matrix.
class MlpMixer final : public Mixer {
public:
    MlpMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kMlp; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return heads_ * head_size_; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    std::int64_t heads_, head_size_;
    model::FeedForward maps_;
};

}  // namespace headscope::mixers
