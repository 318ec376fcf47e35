// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/score_rule.h"

namespace headscope::mixers {

/// dense_attention (attend.h) for training with rules without a fused backward pass: block by block of queries in
/// float32, recomputed for gradients, so that no L x L tensor outlives a block's rows.
/// query [B, H, Lq, dk], key [B, G, Lk, dk], value [B, G, Lk, dv] -> [B, Lq, H * dv] in the type of the query.
at::Tensor block_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const kernels::ScoreRule& rule);

}  // namespace headscope::mixers
