// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/types/selective_scan.h"
#include "core/model/blocks.h"

namespace headscope::mixers {

/// Mamba with norms of its step, key and query, as Jamba has it (ModelConfig::selective_scan): a recurrence of as many
/// heads as there are channels, of one number each. Its site has no matrix and one head of all channels: an implicit
/// matrix would be one of each channel. Memory of what decays: of a few tokens.
class SelectiveScanMixer final : public Mixer {
public:
    SelectiveScanMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kSelectiveScan; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return choices_.channels; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    model::SelectiveScanConfig choices_;
    model::Linear input_;               ///< rows of x, then of the gate
    at::Tensor taps_, taps_bias_;       ///< [channels, 1, taps], [channels] or undefined
    model::Linear of_channels_, step_;  ///< to rank + 2 state sizes; from rank to channels
    model::Norm step_norm_, key_norm_, query_norm_;
    at::Tensor rate_log_, direct_;  ///< [channels, state size], [channels]
};

}  // namespace headscope::mixers
