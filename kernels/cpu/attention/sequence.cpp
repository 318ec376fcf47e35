// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/attention/sequence.h"

#include <algorithm>

#include "kernels/cpu/attention/views.h"
#include "kernels/cpu/attention/workspace.h"
#include "kernels/score_pairs.h"

namespace headscope::kernels::cpu {
SequencePlan::SequencePlan(const AttentionInput& input, std::int64_t b) {
    const ScoreRule& rule = *input.rule;
    Sequence& s = sequence_;
    s.heads = input.query.heads;
    s.key_heads = input.key.heads;
    s.queries = input.query.length;
    s.keys = input.key.length;
    s.key_size = input.query.size;
    s.value_size = input.value.size;
    s.query = matrix_of(input.query, b);
    s.key = matrix_of(input.key, b);
    s.value = matrix_of(input.value, b);
    const SequenceBounds bounds = sequence_bounds(rule, b, s.queries, s.keys);
    s.query_end = bounds.queries;
    s.key_begin = bounds.key_begin;
    s.key_end = bounds.key_end;
    s.query_offset = rule.query_offset;
    s.causal = rule.causal;
    s.window_left = rule.window_left;
    s.window_right = rule.window_right;
    s.first_keys = rule.first_keys;
    s.window_segment = rule.window_segment;
    s.far_distance = rule.far_distance;
    s.near_begin = rule.near_begin;
    s.block_size = rule.blocks.block_size;
    s.blocks = rule.blocks.blocks;
    s.own_block = rule.blocks.own;
    if (s.block_size > 0) s.visible = rule.blocks.visible.data() + b * s.heads * s.blocks;
    s.query_factor = static_cast<float>(rule.scale * kLog2E);
    s.soft_cap = static_cast<float>(rule.soft_cap * kLog2E);
    if (!rule.sink_logits.empty()) {
        for (const float logit : rule.sink_logits) sink_logits_.push_back(static_cast<float>(double{logit} * kLog2E));
        s.sink_logits = sink_logits_.data();
    }
    if (!rule.slopes.empty() || rule.bias_length > 0) build_relative(rule);
    if (!rule.offsets.empty()) {
        std::vector<double> factors;
        for (std::int64_t i = 0; i < s.queries; ++i) factors.push_back(offset_factor(rule, bounds, i));
        for (const float offset : rule.offsets) {
            for (const double factor : factors) offsets_.push_back(static_cast<float>(double{offset} * factor));
        }
        s.offsets = offsets_.data();
    }
    s.dropout = dropout_sequence(rule.dropout, b);
    s.dropout_threshold = dropout_threshold(rule.dropout.share);
    s.dropout_factor = dropout_factor(rule.dropout.share);
    s.cancel = input.cancel;
}

void SequencePlan::build_relative(const ScoreRule& rule) {
    Sequence& s = sequence_;
    // From the last query looking at key 0 to the first one looking past the last tile's end.
    const std::int64_t lowest = -(s.query_offset + s.queries - 1);
    const std::int64_t highest = s.keys - 1 - s.query_offset + kTileKeys;
    s.relative_zero = -lowest;
    s.relative_length = highest - lowest + 1;
    relative_.reserve(static_cast<std::size_t>(s.heads * s.relative_length));
    for (std::int64_t h = 0; h < s.heads; ++h) {
        const double slope = rule.slopes.empty() ? 0.0 : double{rule.slopes[static_cast<std::size_t>(h)]};
        for (std::int64_t relative = lowest; relative <= highest; ++relative) {
            const double bias = slope * static_cast<double>(relative) + double{distance_bias(rule, h, relative)};
            relative_.push_back(static_cast<float>(bias * kLog2E));
        }
    }
    s.relative = relative_.data();
    s.relative_end = s.relative_length;
    if (rule.slopes.empty() && rule.beyond_table == BeyondTable::zero) {
        const std::int64_t first = s.relative_zero - rule.bias_origin;
        s.relative_begin = std::clamp<std::int64_t>(first, 0, s.relative_length);
        s.relative_end = std::clamp<std::int64_t>(first + rule.bias_length, 0, s.relative_length);
    }
}

void SequencePlan::set_packed_keys(const float* packed, std::int64_t head_stride) {
    sequence_.packed_keys = packed;
    sequence_.packed_head_stride = head_stride;
}

}  // namespace headscope::kernels::cpu
