// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

#include "core/base/indices.h"
#include "core/base/site.h"
#include "kernels/attention.h"

namespace headscope::model {

/// What one attention site just did. Tensors are [B, heads, L, size] views that live as long as the call.
struct AttentionRecord {
    SiteIndex site;
    const Site& description;
    const at::Tensor& query;    ///< after rotary and QK-norm: what enters the scores
    const at::Tensor& key;
    const at::Tensor& value;
    const at::Tensor& output;   ///< [B, H, Lq, dv], before the output projection
    const kernels::ScoreRule& rule;
    const kernels::Statistics& statistics;
};

/// The one hook through which everything inside a model is seen. The stack calls it on the compute thread, in the order
/// of the computation, under inference mode.
///
/// Names announced (layer = -1 where there is none): "embedding" [B, L, d]; per layer: "input_norm", "query", "key",
/// "value" (before rotary, [B, heads, L, size]), "query_rotated", "key_rotated", "head_output" [B, H, L, dv],
/// "attention_output", "feed_forward_output", "hidden" (the block's output) [B, L, d]; "final_norm"; "logits" (rows of
/// the vocabulary, in chunks; see Model::logits).
class Probe {
public:
    virtual ~Probe() = default;

    /// Whether `announce` is wanted; what nobody wants may be left uncomputed or fused away.
    virtual bool wants(std::string_view name, LayerIndex layer) const = 0;
    virtual void announce(std::string_view name, LayerIndex layer, const at::Tensor& value) = 0;

    /// What to measure at a site; nullptr: nothing, and LibTorch's fused attention may run instead of ours.
    virtual const kernels::StatisticsRequest* request(SiteIndex site) = 0;
    virtual void measured(const AttentionRecord& record) = 0;
};

}  // namespace headscope::model
