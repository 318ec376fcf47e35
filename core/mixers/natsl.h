// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>

#include "core/mixers/mixer.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/types/natsl.h"
#include "core/model/blocks.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

class NatslCache;

/// Softmax attention and Gated DeltaNet over the same queries, keys and values (Deng et al., "Neural Attention Search
/// Linear"). Each linear head types each chunk of tokens by the mean of what the layer reads: a softmax chunk's keys
/// are seen by later queries of the head's softmax heads, a linear chunk's stay in its state. In its own chunk a query
/// sees all. The two outputs are normed, weighted and gated. Two sites: softmax, linear. Time is quadratic in the
/// tokens of softmax chunks alone; so is memory linear.
///
/// The choice trains straight through: forwards a type is 0 or 1, backwards it has the gradient of the softmax of the
/// two scores, and what is behind it that of a factor (Eq. 14 to 16).
class NatslMixer final : public Mixer {
public:
    NatslMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kNatsl; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return parts_.sizes().value_rows(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    /// Inputs of both branches.
    struct Read {
        DeltaParts::Heads linear;
        at::Tensor query, key, value;  ///< [B, softmax heads, L, size] as they enter the scores
    };
    Read read(const at::Tensor& normed, const StackContext& context, at::Tensor* before) const;
    /// `inputs` [B, L, d] from a chunk's first token on -> [B, linear heads, chunks, 2]: 1 at the chunk's type
    /// (softmax, linear), 0 at the other. A last chunk that is not full counts by what there is of it.
    at::Tensor types(const at::Tensor& inputs, const StackContext& context) const;
    /// -> [B, L, softmax heads * value size]; `cache` takes in the tokens. The same of linear().
    at::Tensor softmax(const Read& read, const at::Tensor& types, const StackContext& context, NatslCache* cache) const;
    at::Tensor linear(const at::Tensor& normed, const Read& read, const at::Tensor& types, const StackContext& context,
                      NatslCache* cache) const;
    /// The tokens of `read` behind those that the cache holds, chunk by chunk; `attends`: and what they make of it.
    at::Tensor continued(const Read& read, const at::Tensor& types, const StackContext& context, NatslCache& cache,
                         bool attends) const;
    /// [B, L, softmax heads, size] of [B, heads, L, size].
    at::Tensor narrow(const at::Tensor& heads) const;

    DeltaParts parts_;
    std::int64_t heads_ = 0, group_ = 0;  ///< softmax heads, and how many of them have a linear head's types
    std::int64_t chunk_ = 0;
    bool reads_convolution_, decays_softmax_, softmax_inside_, linear_inside_, one_norm_, noisy_, all_scores_;
    std::string weights_;
    kernels::ScoreRule rule_;
    std::optional<model::Rotary> rotary_;
    model::Linear score_, weight_;
    model::Norm query_norm_, key_norm_, linear_norm_, softmax_norm_;  ///< one_norm_: the third is of the sum
};

}  // namespace headscope::mixers
