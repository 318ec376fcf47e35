// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/mixers/mixer.h"
#include "kernels/attention.h"

namespace headscope::mixers {

/// One attention: query [B, H, Lq, dk], key [B, G, Lk, dk], value [B, G, Lk, dv] (any strides with unit stride in the
/// last dimension) -> [B, Lq, H * dv] in the type of the query, heads side by side as the output projection reads them.
///
/// When the probe asks for statistics of `site`, kernels::attention computes the output and measures in one go (float64
/// models: the output by dense_attention, measured on float32 copies), announces "head_output" and calls
/// Probe::measured. Otherwise, where autograd records, trained_attention (trained_attention.h); else LibTorch's fused
/// attention where it can express the rule, else kernels::attention, else (float64, or a normaliser other than softmax
/// under autograd) dense_attention.
///
/// Heads that are switched off (StackContext::switched_off) are announced and measured as they would be; what is
/// returned has them replaced.
///
/// `rule` has the layer's constants; query offset and lengths are this call's. Throws Stopped when cancelled.
at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const kernels::ScoreRule& rule, SiteIndex site, const StackContext& context);

/// The same by the book: builds the matrix, in the inputs' type, out of operators that autograd knows. Everything of a
/// ScoreRule but sparsemax and block visibility (Error(unsupported)). Returns [B, H, Lq, dv].
at::Tensor dense_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const kernels::ScoreRule& rule);

}  // namespace headscope::mixers
