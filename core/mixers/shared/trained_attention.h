// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/attention_backward.h as a function that autograd records: softmax attention without an L x L matrix in
// memory, neither forward nor backward.

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/mixers/shared/attend.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// True if autograd records one of the three and trained_attention() supports the normalizer (by its traits) and the
/// type (float32 or bfloat16).
bool trains_fused(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const kernels::ScoreRule& rule);

/// query [B, H, Lq, dk], key [B, G, Lk, dk], value [B, G, Lk, dv] -> [B, Lq, H * dv] in the type of the query.
/// Gradients reach `tensors`, too, not the slopes. Throws Stopped when cancelled.
at::Tensor trained_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                             const kernels::ScoreRule& rule, const RuleTensors& tensors,
                             const Cancellation* cancellation);

}  // namespace headscope::mixers
