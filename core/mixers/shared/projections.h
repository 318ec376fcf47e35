// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/base/site.h"
#include "core/mixers/mixer.h"
#include "core/model/blocks.h"
#include "core/model/config.h"

namespace headscope::mixers {

/// The maps from hidden states to query, key and value heads that the softmax-like mixers have in common: separate or
/// fused in the file, with or without biases, grouped heads, and norms of query and key. One matrix of all rows: query
/// heads, key heads, value heads; they may be fed from different inputs.
///
/// The order for query and key is projection and bias (heads()), then what a mixer does of its own, with_norms(), then
/// rotary positions; values are only cut (clipped()).
class Projections {
public:
    explicit Projections(const model::ModelConfig& config);
    void declare(model::TensorPlan& plan, const model::TensorNames& names);

    std::int64_t query_heads() const { return heads_; }
    std::int64_t key_value_heads() const { return key_value_heads_; }
    std::int64_t head_size() const { return head_size_; }
    std::int64_t output_size() const { return heads_ * head_size_; }
    bool gated() const { return gated_; }  ///< heads() makes a gate
    Site site(bool causal) const;

    /// x [B, L, d] -> [B, L, heads + 2 key_value_heads, size], one product. `gate` is set to [B, L, heads * size] where
    /// there is one (ModelConfig::attention_gate).
    at::Tensor heads(const at::Tensor& x, const Cancellation* cancellation, at::Tensor* gate = nullptr) const;
    /// Weights of each head, with the gains of their norms; a layer norm centers them.
    HeadMaps head_maps() const;
    /// The queries and keys alone: [B, L, heads + key_value_heads, size].
    at::Tensor query_key(const at::Tensor& x, const Cancellation* cancellation) const;
    /// The values alone: [B, key_value_heads, L, size].
    at::Tensor value(const at::Tensor& x, const Cancellation* cancellation) const;

    /// True if attend_one() works: rows of queries are a matrix of their own, and no factor grows with the position.
    bool separates_queries() const;
    /// Queries, and keys with values, from separate products: [B, L, heads, size], [B, L, 2 key_value_heads, size].
    at::Tensor query_alone(const at::Tensor& x, const Cancellation* cancellation) const;
    at::Tensor key_value(const at::Tensor& x, const Cancellation* cancellation) const;
    /// Queries or keys alone as with_norms() returns them.
    at::Tensor with_query_norm(const at::Tensor& query) const;
    at::Tensor with_key_norm(const at::Tensor& key) const;

    /// Query and key after their norms, and cut; shape as the input [B, L, heads + key_value_heads, size].
    at::Tensor with_norms(const at::Tensor& query_key) const;
    /// Rotated, and normed where norms come after that (QueryKeyNorm::rotated_head).
    at::Tensor rotated(const at::Tensor& heads, const model::Rotary& rotary, const model::RotaryTable& table) const;
    /// Queries or keys as they enter the scores, for tokens from `first` on: times ModelConfig::query_growth's factor;
    /// `rotated` itself if that is 1. `turns`: the layer has positions.
    at::Tensor grown(const at::Tensor& rotated, std::int64_t first, bool turns) const;
    /// Cut to ModelConfig::query_key_value_clip, where there is one.
    at::Tensor clipped(const at::Tensor& heads) const { return clip_ > 0 ? heads.clamp(-clip_, clip_) : heads; }

    // Parts of what heads() or query_key() returned, as [B, heads, L, size].
    at::Tensor query_of(const at::Tensor& all) const { return all.narrow(2, 0, heads_).transpose(1, 2); }
    at::Tensor key_of(const at::Tensor& all) const { return all.narrow(2, heads_, key_value_heads_).transpose(1, 2); }
    at::Tensor value_of(const at::Tensor& all) const {
        return all.narrow(2, heads_ + key_value_heads_, key_value_heads_).transpose(1, 2);
    }

private:
    bool has_norms() const {
        return norms_ != model::QueryKeyNorm::none && norms_ != model::QueryKeyNorm::rotated_head;
    }
    void declare_norms(model::TensorPlan& plan, const model::TensorNames& names);
    void declare_own_norms(model::TensorPlan& plan, const model::TensorNames& names);
    at::Tensor normed(const model::Norm& norm, const at::Tensor& heads) const;
    /// Outputs of the matrix, [.., L, rows], in the order of heads().
    at::Tensor by_head(const at::Tensor& all, at::Tensor* gate) const;
    /// `maps` [heads, d, size] with the norm's gain, centered by a layer norm.
    at::Tensor gained(const model::Norm& norm, const at::Tensor& maps) const;
    /// Rows [first, first + count) of the matrix, as a map of its own.
    model::Linear rows(std::int64_t first, std::int64_t count) const;

    std::int64_t heads_, key_value_heads_, head_size_;
    model::Linear all_;
    model::Norm query_norm_, key_norm_;
    model::QueryKeyNorm norms_;
    double clip_, growth_;
    std::int64_t growth_step_;
    bool growth_unrotated_;
    bool gated_, biases_;
    bool by_group_ = false;  ///< the matrix's rows lie as FusedLayout::by_group has them
};

/// Announces and edits "query" and "key" [B, heads, L, size] of `query_key`, which has its norms, and `value`; then
/// rotates query and key for this call's tokens and announces that, where there are rotary positions. Returns what
/// enters the scores.
at::Tensor announce_and_rotate(const Projections& maps, at::Tensor& query_key, at::Tensor& value,
                               const StackContext& context);

/// Query, key and value [B, heads, L, size] of one attention as they enter its scores.
struct Attending {
    at::Tensor query, key, value;
};
/// Queries of StackContext::only_position alone, with keys and values of all rows of x [B, L, d]. Edits keys and
/// values.
Attending attend_one(const Projections& maps, const at::Tensor& x, const StackContext& context);

/// Appends this call's keys and values to a KeyValueCache; `key` and `value` [B, key_value_heads, L, size] are then all
/// that it holds. Where angles depend on the text's length it keeps keys as `query_key` has them, and all turn now.
void join_cache(const Projections& maps, const at::Tensor& query_key, at::Tensor& key, at::Tensor& value,
                const StackContext& context, MixerCache& cache);

}  // namespace headscope::mixers
