// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/types/non_approximate.h"

namespace headscope::mixers {

/// Deconstructing Attention's Non-approximate: q = SiLU(x W^Q), and a key's one score is that of its own position,
/// s_j = q_j . k_j / sqrt(d_h), for all queries. Linear in the length in everything: training, reading, decoding from a
/// numerator, a denominator and a maximum a head, and measuring. Rotary positions cancel and are left out.
///
/// Its site's query and key are those of PickedScores: one number a head.
class NonApproximateMixer final : public Mixer {
public:
    NonApproximateMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kNonApproximate; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override { maps_.declare(plan, names); }
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    Projections maps_;
    double scale_;
};

}  // namespace headscope::mixers
