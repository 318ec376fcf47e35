// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/types/token_map.h"
#include "core/model/blocks.h"

namespace headscope::mixers {

/// o = M V with V = W x of each token and M the leading L x L block of a learned [L_max, L_max]; no biases, no output
/// projection. Its site is one head without an attention matrix, whose implicit matrix is that block.
class TokenMapMixer final : public Mixer {
public:
    TokenMapMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kTokenMap; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return hidden_; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    std::int64_t hidden_;
    at::Tensor tokens_;     ///< [L_max, L_max], a row for each output token
    model::Linear values_;  ///< [d, d]
};

}  // namespace headscope::mixers
