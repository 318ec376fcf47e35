// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/mixers/mixer.h"
#include "kernels/reference/dense.h"
#include "kernels/score_rule.h"
#include "kernels/statistics.h"

namespace headscope::mixers {

using kernels::reference::RuleTensors;

/// One attention: query [B, H, Lq, dk], key [B, G, Lk, dk], value [B, G, Lk, dv] (any strides with unit stride in the
/// last dimension) -> [B, Lq, H * dv] in the type of the query, heads side by side as the output projection reads them.
///
/// When the probe asks for statistics of `site`, kernels::attention computes the output and measures in one go (float64
/// models: the output by dense_attention, measured on float32 copies), announces "head_output" and calls
/// Probe::measured. Otherwise, where autograd records, trained_attention (trained_attention.h); else LibTorch's fused
/// attention where it can express the rule, else kernels::attention; for float64 dense_attention, and under autograd
/// for normalisers without a fused backward pass block_attention (block_attention.h).
///
/// Edits (StackContext::editor) of scores, pattern and head output apply; the pattern is measured as it is without its
/// own edits. With edits of scores or pattern the output comes from the dense matrix.
///
/// In training the weights lose training.attention_dropout (StackContext::training); measured ones lose nothing.
///
/// `rule` has the layer's constants; query offset and lengths are this call's. Throws Stopped when cancelled.
at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const kernels::ScoreRule& rule, SiteIndex site, const StackContext& context,
                  const RuleTensors& tensors = {});

/// Inputs of one attention, for the probe.
struct Attended {
    const at::Tensor &query, &key, &value;  ///< [B, heads, L, size] as they enter the scores of `rule`
    const kernels::ScoreRule& rule;
};

/// The end of attend(), for mixers that compute `output` [B, Lq, H * dv] in another way: announces "head_output", hands
/// `statistics` (null: none were asked for) to the probe, and edits the head output.
at::Tensor finish_attention(const at::Tensor& output, const Attended& what, const kernels::Statistics* statistics,
                            SiteIndex site, const StackContext& context);

/// attend() without probe and fused kernels: builds the matrix in the inputs' type and returns [B, H, Lq, dv].
/// Differentiable.
using kernels::reference::dense_attention;

}  // namespace headscope::mixers
