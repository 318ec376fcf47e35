// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/score_pairs.h"

namespace headscope::kernels {

/// Calls allow(begin, end) for the ranges of keys [begin, end) that query i of head h of sequence b may see under the
/// rule: future, window, first keys, blocks, padding. Ranges do not overlap; empty ones may be among them.
template <class Allow>
void for_key_ranges(const ScoreRule& rule, const SequenceBounds& bounds, std::int64_t b, std::int64_t h,
                    std::int64_t heads, std::int64_t i, const Allow& allow) {
    const std::int64_t block = rule.blocks.block_size;
    const auto allow_blocks = [&](std::int64_t begin, std::int64_t end) {
        if (block == 0) return allow(begin, end);
        for (std::int64_t at = begin; at < end; at = (at / block + 1) * block) {
            if (block_visible(rule, b, h, heads, i, at / block)) allow(at, std::min(end, (at / block + 1) * block));
        }
    };
    const KeyRange keys = key_range(rule, bounds, i);
    // Beside a window the first keys are seen, those in between are not.
    const std::int64_t window = rule.window_left < 0 ? keys.begin : window_begin(rule, i + rule.query_offset);
    allow_blocks(keys.begin, std::min(keys.end, std::min(rule.first_keys, window)));
    allow_blocks(std::max(keys.begin, window), keys.end);
}

}  // namespace headscope::kernels
