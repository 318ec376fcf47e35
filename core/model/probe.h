// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "core/base/indices.h"
#include "core/base/site.h"
#include "kernels/score_rule.h"
#include "kernels/statistics.h"

namespace headscope::kernels {
struct ImplicitStatistics;  // kernels/recurrent.h
}

namespace headscope::model {

/// One measured attention site. Tensors are [B, heads, L, size] views that live as long as the call.
struct AttentionRecord {
    SiteIndex site;
    const Site& description;
    const at::Tensor& query;  ///< after rotary and QK-norm: what enters the scores
    const at::Tensor& key;
    const at::Tensor& value;
    const at::Tensor& output;  ///< [B, H, Lq, dv], before the output projection, no head switched off
    const kernels::ScoreRule& rule;
    const kernels::Statistics& statistics;
    /// [d, H * dv], the map that reads `output`, heads side by side; null: something else is done to it before.
    const at::Tensor* output_projection = nullptr;
};

/// The implicit matrix of one recurrent site (kernels/recurrent.h).
struct ImplicitRecord {
    SiteIndex site;
    const Site& description;
    const kernels::ImplicitStatistics& statistics;
    const at::Tensor& weights;  ///< [B, H, L, L] float32, signed; undefined unless the request was for it
    double deviation = 0;       ///< largest |A v - o| over the tokens; only with the weights
};

/// The one hook through which everything inside a model is seen. The stack calls it on the compute thread, in the order
/// of the computation, under inference mode. What is announced may be a view and may be overwritten after the call: a
/// probe that keeps a tensor clones it. Nothing announced may be written to.
///
/// Names announced (layer = -1 where there is none): "embedding" [B, L, d]; per layer: "input_norm" (what the mixer
/// reads: of a post-norm block its plain input), "query", "key", "value" (before rotary, [B, heads, L, size]),
/// "query_rotated", "key_rotated" (where positions rotate), "head_output" [B, H, L, dv] (of heads that are switched
/// off: what they would say), "mixer_output" (what the output projection reads, [B, L, output size]),
/// "attention_output" (after the output projection, before the residual sum), of a mixture of experts "expert_index"
/// and then "expert_weight" [B, L, experts per token] (int64; what that expert's output is multiplied by; who wants the
/// weights wants the indices), "feed_forward_output" (as "attention_output"),
/// "hidden" (the block's output) [B, L, d]; "final_norm" (what forward() returns, also where a family has no norm
/// there); "logits" (rows of the vocabulary, in chunks; see Model::logits). An encoder-decoder's encoder comes first,
/// its ends being "encoder_embedding" and "encoder_final_norm". A decoder's layer with cross-attention announces
/// "cross_input_norm", that site's "query", "key", "value" and "head_output", and "cross_output" after what its own
/// tokens' site did. A layer of NAtS-L announces "token_types" [B, linear heads, chunks] (int8, 0 softmax, 1 linear,
/// -1 past a sequence's end) and "branch_weights" [B, softmax heads, L, 2] (linear, softmax). A site whose heads differ
/// by embeddings alone announces "head_embeddings" [3, heads, size] (of queries, keys, values) before its "query". A
/// layer with softmax attention and a state side by side announces what both have twice, the softmax's first; its
/// "mixer_output" is behind their output projections. A layer that is its feed-forward alone announces no mixer's. One
/// whose site has slopes that its score rule has not (Falcon's, which queries and keys bear) announces "slopes" [heads]
/// float32.
///
/// Values of padded positions (beyond a sequence's length) are finite and mean nothing.
class Probe {
public:
    virtual ~Probe() = default;

    /// True if `announce` should be called; unrequested values may be skipped or fused away.
    virtual bool wants(std::string_view name, LayerIndex layer) const = 0;
    virtual void announce(std::string_view name, LayerIndex layer, const at::Tensor& value) = 0;
    /// True for a probe that reads no numbers: a model on another device announces its values there, without a copy.
    virtual bool reads_shapes_alone() const { return false; }

    /// Statistics to measure at a site; nullptr: none, and LibTorch's fused attention may run instead of ours.
    virtual const kernels::StatisticsRequest* request(SiteIndex site) = 0;
    virtual void measured(const AttentionRecord& record) = 0;

    /// Measurements of a recurrent site's implicit matrix.
    enum class Implicit : std::uint8_t { nothing, statistics, weights };
    virtual Implicit implicit_request(SiteIndex) { return Implicit::nothing; }
    virtual void implicit(const ImplicitRecord&) {}
};

}  // namespace headscope::model
