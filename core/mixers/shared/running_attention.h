// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/mixers/mixer.h"
#include "kernels/running.h"

namespace headscope::mixers {

/// State of a running quotient (kernels/running.h), of constant size.
class RunningCache final : public MixerCache {
public:
    std::int64_t bytes() const override;
    std::unique_ptr<MixerCache> clone() const override;
    std::unique_ptr<MixerCache> chosen(const at::Tensor& sequences) const override;

    /// [B, H, dv], [B, H], [B, H]; float32, or float64 of a float64 model; undefined: no token yet.
    at::Tensor numerator, denominator, maximum;
};

/// One score per key, in linear time.
struct RunningCall {
    at::Tensor query;  ///< [B, H, L, dk]
    at::Tensor key;    ///< [B, G, L, dk], of the same positions
    at::Tensor value;  ///< [B, G, L, dv]
    double scale = 1.0;
    const std::vector<std::int64_t>* lengths = nullptr;  ///< [B]; null: all
    const Cancellation* cancellation = nullptr;

    /// [B, L, H * dv] in the type of the query. The tokens follow those of `cache`, which then holds them too; null: a
    /// text of its own. `scores`, if given, becomes [B, H, L], float32 or, of a float64 model, float64. float64: the
    /// same in ATen, chunk by chunk. Throws Stopped.
    at::Tensor attend(RunningCache* cache, at::Tensor* scores = nullptr) const;

    /// The same recorded by autograd: float32 and bfloat16 by the kernels, float64 by operators, with the matrix.
    at::Tensor train() const;

    /// scale q_j . k_j, [B, H, L], by operators.
    at::Tensor scores_of_keys() const;
};

/// The same attention for the general operator, of scores [B, H, L] and `groups` key heads: keys [B, G, L, H / G] hold
/// the scores of the heads that read them, and a query [B, H, L, H / G] picks its own. The rule's scale is 1.
struct PickedScores {
    at::Tensor query, key;
};
PickedScores picked_scores(const at::Tensor& scores, std::int64_t groups);

}  // namespace headscope::mixers
