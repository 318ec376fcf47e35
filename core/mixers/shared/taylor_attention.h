// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/mixers/mixer.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// State of Taylor weights (kernels/taylor_state.h), of constant size: sums of keys' products times values and ones.
class TaylorCache final : public MixerCache {
public:
    std::int64_t bytes() const override;
    std::unique_ptr<MixerCache> clone() const override;
    std::unique_ptr<MixerCache> chosen(const at::Tensor& sequences) const override;

    /// [B, G, features, dv + 1], float32, or float64 of a float64 model; undefined: no token yet.
    at::Tensor state;
};

/// Taylor weights in linear time: query [B, H, L, dk], key and value [B, G, L, size] of the same tokens -> [B, L, H *
/// dv] in the type of the query. They follow those of `cache`, which then holds them too; null: a text of its own.
/// Of `rule`, scale and normaliser are read. float64: the same sums, chunk by chunk in ATen. Throws Stopped.
at::Tensor taylor_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const kernels::ScoreRule& rule, TaylorCache* cache, const Cancellation* cancellation);

}  // namespace headscope::mixers
