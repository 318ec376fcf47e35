// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Attention with the whole matrix. dense_matrix() is the one formula of a score rule; the reference backend runs it in
// float64, sequence by sequence, and autograd records it where a rule has no fused backward pass. H heads, Lq queries,
// Lk keys.

// Without it TensorOperators.h brings every operator of ATen in, and doubles the time to compile.
#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#endif
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include "kernels/attention.h"
#include "kernels/reference/rule_tensors.h"
#include "kernels/score_pairs.h"

namespace headscope::kernels::reference {

struct Positions {
    at::Tensor query;  ///< [Lq, 1] int64: i' = i + query_offset
    at::Tensor key;    ///< [1, Lk] int64: j
};
Positions positions_of(const ScoreRule& rule, std::int64_t queries, std::int64_t keys, at::Device device = at::kCPU);

struct DenseMatrix {
    at::Tensor allowed;       ///< [B, H, Lq, Lk] bool
    at::Tensor score;         ///< [B, H, Lq, Lk], -1e30 where not allowed
    at::Tensor weight;        ///< [B, H, Lq, Lk], 0 where not allowed
    at::Tensor row_constant;  ///< [B, H, Lq], any number for a row that sees no key; undefined with RuleTensors::blocks
    at::Tensor sink_share;    ///< [B, H, Lq]; undefined without sink logits
};

struct NormalisedScores {
    at::Tensor weight;        ///< [.., H, Lq, Lk], 0 where not allowed
    at::Tensor row_constant;  ///< [.., H, Lq], as Statistics::row_constant; rows that see no key have some number
    at::Tensor sink_share;    ///< [.., H, Lq]; undefined without sink logits
};

/// query [B, H, Lq, dk], key [B, G, Lk, dk] of sequences first .. first + B - 1 of the rule, in any floating type.
/// Differentiable in query, key and `tensors`.
DenseMatrix dense_matrix(const at::Tensor& query, const at::Tensor& key, const ScoreRule& rule,
                         const RuleTensors& tensors = {}, std::int64_t first = 0);

/// The second half of dense_matrix(): weights of `score`, -1e30 where not `allowed`; both may have been edited. Without
/// RuleTensors::blocks.
NormalisedScores weights_of_scores(const at::Tensor& query, const at::Tensor& key, const at::Tensor& score,
                                   const at::Tensor& allowed, const ScoreRule& rule, const RuleTensors& tensors = {});

/// Factors of ScoreRule::dropout of sequences first .. first + B - 1, [B, H, Lq, Lk] float64: 0 or 1 / (1 - p).
/// Undefined without dropout.
at::Tensor dropout_factors(const ScoreRule& rule, std::int64_t first, std::int64_t count, std::int64_t heads,
                           std::int64_t queries, std::int64_t keys);

/// The output [B, H, Lq, dv] of dense_matrix() for value [B, G, Lk, dv], with the rule's dropout.
at::Tensor dense_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const ScoreRule& rule, const RuleTensors& tensors = {});

/// One sequence in float64, as the reference backend measures it.
struct DenseAttention {
    SequenceBounds bounds;
    at::Tensor query_position;  ///< [Lq, 1], Positions::query
    at::Tensor key_position;    ///< [1, Lk], Positions::key
    at::Tensor allowed;         ///< [H, Lq, Lk] bool
    at::Tensor score;           ///< [H, Lq, Lk], -inf where not allowed
    at::Tensor weight;          ///< [H, Lq, Lk], 0 where not allowed
    at::Tensor row_constant;    ///< [H, Lq], +inf for a row that sees no key
    at::Tensor sink_share;      ///< [H, Lq], what the sink logit takes of a row that sees a key; 0 without sink logits
    at::Tensor kept;            ///< [H, Lq, Lk], dropout_factors(); undefined without dropout
};

/// From scores [.., H, Lq, Lk] to weights: the formula of each normaliser, differentiable by ATen's autograd.
/// `score`: where not allowed -inf or, for gradients, a number far below every score. `sink`: [H, 1, 1] or undefined.
/// `second`: the second order of the Taylor weights, or undefined for s^2 / 2. `offset`: row_offsets() of the elastic
/// normaliser.
NormalisedScores normalise(Normaliser normaliser, const at::Tensor& score, const at::Tensor& allowed,
                           const at::Tensor& sink = {}, const at::Tensor& second = {}, const at::Tensor& offset = {});

/// Term that the elastic normalizer adds to the weights of each row, [.., H, Lq, 1], from offsets [H]; undefined if
/// there are none.
at::Tensor row_offsets(OffsetForm form, const at::Tensor& offsets, const at::Tensor& allowed);

/// Builds the matrix of sequence b. input has passed check_attention.
DenseAttention dense_attention(const AttentionInput& input, std::int64_t b);

/// Sequence b of a view as float64 [heads, length, size], heads repeated until there are `heads`.
at::Tensor sequence_of(const TensorView& view, std::int64_t b, std::int64_t heads);

/// Fills the part of sequence b. `statistics` has been through prepare_statistics of kernels/statistics.h.
void measure_sequence(const AttentionInput& input, const StatisticsRequest& request, const DenseAttention& dense,
                      std::int64_t b, Statistics& statistics);

}  // namespace headscope::kernels::reference
