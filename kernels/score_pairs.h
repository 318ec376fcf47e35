// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A ScoreRule's answers for one pair at a time, and the checks that every backend makes first. Nothing here
// allocates or locks but the checks' error messages. Backends with vector loops use these for rows' ends, for
// small masks and in their tests; definitions are in kernels/score_rule.h.

#include <cmath>
#include <cstdint>

#include "kernels/attention.h"

namespace headscope::kernels {

/// The part of a padded sequence that exists: queries [0, queries), keys [key_begin, key_end).
struct SequenceBounds {
    std::int64_t queries = 0;
    std::int64_t key_begin = 0, key_end = 0;
    std::int64_t keys() const { return key_end - key_begin; }
};
SequenceBounds sequence_bounds(const ScoreRule& rule, std::int64_t b, std::int64_t queries, std::int64_t keys);

/// Keys that query i can see at most: causal mask, window and bounds, as one range [begin, end), empty when begin ==
/// end. With first_keys and a window the keys of [begin, end) that allowed() refuses lie in between; blocks are not
/// looked at.
struct KeyRange {
    std::int64_t begin = 0, end = 0;
};
KeyRange key_range(const ScoreRule& rule, const SequenceBounds& bounds, std::int64_t i);

/// The first key in the window of a query at `position`, i'; wants window_left >= 0. May be below 0.
inline std::int64_t window_begin(const ScoreRule& rule, std::int64_t position) {
    const std::int64_t inside = position % rule.window_segment;
    return position - (inside < 0 ? inside + rule.window_segment : inside) - rule.window_left;
}

/// True if the block rule lets query i of head h see the keys of `block` (j / block_size). Requires block_size > 0.
bool block_visible(const ScoreRule& rule, std::int64_t b, std::int64_t h, std::int64_t heads, std::int64_t i,
                   std::int64_t block);

/// True if query i of head h may see key j. `heads` is the number of query heads.
bool allowed(const ScoreRule& rule, const SequenceBounds& bounds, std::int64_t b, std::int64_t h, std::int64_t heads,
             std::int64_t i, std::int64_t j);

/// Keys that query i sees under a rule without blocks.
std::int64_t visible_keys(const ScoreRule& rule, const SequenceBounds& bounds, std::int64_t i);

/// Factor of the head's offset for query i: 1 / n of the n keys that it sees, or 1; 0 if it sees none.
double offset_factor(const ScoreRule& rule, const SequenceBounds& bounds, std::int64_t i);

/// Term that the elastic normalizer adds to the weights of query i; 0 under a rule without offsets.
inline float offset_of(const ScoreRule& rule, const SequenceBounds& bounds, std::int64_t h, std::int64_t i) {
    if (rule.offsets.empty()) return 0.0F;
    const double offset = double{rule.offsets[static_cast<std::size_t>(h)]};
    return static_cast<float>(offset * offset_factor(rule, bounds, i));
}

/// bias_h[j - i'] of the table, as `beyond_table` says outside it; 0 without a table.
inline float distance_bias(const ScoreRule& rule, std::int64_t h, std::int64_t relative) {
    if (rule.bias_length == 0) return 0.0F;
    std::int64_t column = relative + rule.bias_origin;
    if (column < 0 || column >= rule.bias_length) {
        if (rule.beyond_table == BeyondTable::zero) return 0.0F;
        column = column < 0 ? 0 : rule.bias_length - 1;
    }
    return rule.distance_bias[static_cast<std::size_t>(h * rule.bias_length + column)];
}

/// s_ij from the dot product q_i . k_j (ScoreRule::far_distance has which), in the arithmetic of Real.
template <typename Real>
Real score_of(const ScoreRule& rule, std::int64_t h, std::int64_t i, std::int64_t j, Real dot) {
    const std::int64_t relative = j - (i + rule.query_offset);
    Real s = static_cast<Real>(rule.scale) * dot;
    if (!rule.slopes.empty())
        s += static_cast<Real>(rule.slopes[static_cast<std::size_t>(h)]) * static_cast<Real>(relative);
    s += static_cast<Real>(distance_bias(rule, h, relative));
    if (rule.soft_cap > 0.0) {
        const Real cap = static_cast<Real>(rule.soft_cap);
        s = cap * std::tanh(s / cap);
    }
    return s;
}

/// The bin of histogram_edges() that holds s; -1 for NaN.
int histogram_bin(double s);

/// The step that StatisticsRequest::histogram_row_step stands for: itself, or the default of that many queries.
std::int64_t histogram_step(std::int64_t requested, std::int64_t queries);

/// (check_attention.cpp) Throws Error unless shapes, strides, types and every option of the rule fit together.
/// `with_value`: input.value too.
void check_attention(const AttentionInput& input, bool with_value = true);

/// Throws Error unless the request is possible for this input (which check_attention has passed).
void check_statistics(const AttentionInput& input, const StatisticsRequest& request);

}  // namespace headscope::kernels
