// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// How a score s_ij follows from q_i and k_j, which pairs are allowed, and which normalizer makes weights of scores.
// Plain values: files store them, and any tile can be computed again from them.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/summary/attention_dropout.h"

namespace headscope::kernels {

/// From scores to weights. The Taylor ones (Deconstructing Attention, Eq. 6 and 14-17) put 1 + s + t2 instead of
/// the exponential, t2 the second order; kernels/normaliser.h has their names and what they cannot be joined with.
enum class Normaliser : std::uint8_t {
    softmax,
    sparsemax,
    taylor,                     ///< t2 = s^2 / 2, one denominator: every weight is positive
    taylor_diagonal,            ///< t2 = scale^2 / 2 * sum over c of (q_c k_c)^2: weights may be negative
    taylor_per_order,           ///< A = 1 / n + s / sum s + t2 / sum t2: rows sum to 3, and sum s may cross 0
    taylor_diagonal_per_order,  ///< both: Eq. 14-17 to the letter
    elastic,                    ///< A = max(p + offset, 0) of a softmax p (Lazy Attention, Eq. 5): rows sum to anything
    entmax,                     ///< alpha = 1.5 (Peters et al. 2019): A = max((s - threshold) / 2, 0)^2, rows sum to 1
    sigmoid,                    ///< A = 1 / (1 + e^-s), each weight for itself: rows sum to anything
};

/// Term of a score for a relative position beyond the table of distance biases.
enum class BeyondTable : std::uint8_t { zero, clamp };

/// Term that the elastic normalizer adds to the weights of a query that sees n keys: offset / n, or the offset itself.
enum class OffsetForm : std::uint8_t { per_length, constant };

/// Visibility by key block, as NAtS-L needs it: keys of another block are seen if `visible` is set for it; keys of the
/// query's own block if `own` is set (subject to the causal mask). One row per query head.
struct BlockVisibility {
    std::int64_t block_size = 0;        ///< 0: no such rule
    std::int64_t blocks = 0;            ///< per head
    std::vector<std::uint8_t> visible;  ///< [batch, heads, blocks]
    bool own = true;
};

/// Everything that says how s_ij comes about from q_i and k_j and which pairs are allowed. Values only, so that it can
/// be stored beside q, k and the row constants and any tile recomputed later.
///
///   s = scale q.k;  s -= slope_h (i' - j);  s += bias_h[j - i'];  s = cap tanh(s / cap)
///   far_distance >= 0 and i' - j > far_distance: q.k is over the first near_begin numbers, plus q's last one
///
/// with i' = i + query_offset, the query's absolute position (keys start at 0). Pair (i, j) is allowed when
///
///   causal: j <= i'
///   window_left >= 0: i' - i' mod window_segment - j <= window_left, or j < first_keys
///   window_right >= 0: j - i' <= window_right
///   block visibility as above
///   key_begin[b] <= j < key_length[b];  i < query_length[b]
///
/// A causal sliding window W of the model zoo (keys with i - j < W) is window_left = W - 1.
struct ScoreRule {
    double scale = 1.0;
    double soft_cap = 0.0;  ///< 0: none
    bool causal = true;
    std::int64_t query_offset = 0;
    std::int64_t window_left = -1;   ///< -1: no limit
    std::int64_t window_right = -1;  ///< -1: no limit
    std::int64_t first_keys = 0;     ///< always visible beside the window (StreamingLLM)
    /// Windows reach back from the first position of the query's segment of `window_segment`: a memory of window_left
    /// tokens before each segment (Transformer-XL). 1: from the query itself.
    std::int64_t window_segment = 1;
    /// Relative positions as numbers of queries and keys that stand still beyond a distance (Transformer-XL's clamp):
    /// numbers [near_begin, dk - 1) count for nearer pairs alone, a query's last one for farther ones, and a key's last
    /// one is 0. -1: none.
    std::int64_t far_distance = -1, near_begin = 0;
    std::vector<float> slopes;         ///< [heads] or empty (ALiBi)
    std::vector<float> distance_bias;  ///< [heads, bias_length] or empty, by relative position j - i'
    std::int64_t bias_length = 0;
    std::int64_t bias_origin = 0;  ///< column of relative position 0: bias_h[j - i' + bias_origin]
    BeyondTable beyond_table = BeyondTable::clamp;
    std::vector<float> sink_logits;  ///< [heads] or empty: a logit without a value in each row's denominator
    BlockVisibility blocks;
    Normaliser normaliser = Normaliser::softmax;
    std::vector<float> offsets;  ///< [heads], of the elastic normaliser alone
    OffsetForm offset_form = OffsetForm::per_length;
    std::vector<std::int64_t> query_length;  ///< [batch] or empty: all
    std::vector<std::int64_t> key_begin;     ///< [batch] or empty: 0 (left padding)
    std::vector<std::int64_t> key_length;    ///< [batch] or empty: all (end of the real keys)
    AttentionDropout dropout;                ///< of training passes; files do not store it
};

/// T5's bucket of each column of the table that set_bucketed_bias makes: which row of `table` it is filled from.
std::vector<std::int64_t> bucket_columns(std::int64_t buckets, std::int64_t max_distance, bool bidirectional);

/// T5's bucketed bias as a table by relative position for ScoreRule. `table` is [buckets, heads] as T5 stores it.
void set_bucketed_bias(ScoreRule& rule, std::span<const float> table, std::int64_t buckets, std::int64_t heads,
                       std::int64_t max_distance, bool bidirectional, std::int64_t queries, std::int64_t keys);

}  // namespace headscope::kernels
