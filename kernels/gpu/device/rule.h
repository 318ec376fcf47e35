// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Pairs that a rule allows, for a block of 64 queries: two ranges of keys for each row, the same in all heads, and
// visible blocks by head. Tiles are classified from the rows' extremes, so that empty ones cost nothing and full ones
// test no pair.

#include "kernels/gpu/device/tile.h"

namespace headscope::gpu {

HS_DEVICE int block_of(int position, int size) {
    return position >= 0 ? position / size : -((size - 1 - position) / size);
}

/// Ranges of a row: keys [key_begin, prefix_end) and [begin, end), prefix_end <= begin.
struct RowRange {
    int prefix_end, begin, end;
};

HS_DEVICE RowRange find_row(const HsRule& rule, int i) {
    const int position = i + rule.query_offset;
    int begin = rule.key_begin, end = i < rule.query_end ? rule.key_end : rule.key_begin;
    if (rule.causal != 0) end = least(end, position + 1);
    // Windows may be as long as an int: no sum with them.
    if (rule.window_right >= 0 && rule.window_right < end - position) end = position + rule.window_right + 1;
    if (rule.window_left >= 0) {
        const int inside = position % rule.window_segment;
        const int segment = position - (inside < 0 ? inside + rule.window_segment : inside);
        if (segment - begin > rule.window_left) begin = segment - rule.window_left;
    }
    end = most(end, rule.key_begin);
    begin = least(begin, end);
    int prefix_end = least(most(rule.first_keys, rule.key_begin), end);
    if (prefix_end >= begin) begin = prefix_end = rule.key_begin;
    return {prefix_end, begin, end};
}

/// The ranges of 64 rows in shared memory, and their extremes.
class BlockRows {
public:
    static constexpr int kInts = 3 * kTile;

    /// All threads of the block; ends with a barrier.
    HS_DEVICE BlockRows(const Context& c, const HsRule& rule, Shared<int> memory, int first)
        : rule_(rule), memory_(memory), first_(first) {
        if (c.thread() < kTile) {
            const RowRange row = find_row(rule, first + c.thread());
            memory_[c.thread()] = row.prefix_end;
            memory_[kTile + c.thread()] = row.begin;
            memory_[2 * kTile + c.thread()] = row.end;
        }
        c.sync();
        last_prefix_ = rule.key_begin;
        first_begin_ = least_end_ = rule.key_end;
        last_begin_ = last_end_ = rule.key_begin;
        least_prefix_ = rule.key_end;
        for (int r = 0; r < kTile; ++r) {
            const int prefix = memory_[r], begin = memory_[kTile + r], end = memory_[2 * kTile + r];
            last_prefix_ = most(last_prefix_, prefix);
            least_prefix_ = least(least_prefix_, prefix);
            if (end > begin) first_begin_ = least(first_begin_, begin);
            last_begin_ = most(last_begin_, begin);
            last_end_ = most(last_end_, end);
            least_end_ = least(least_end_, end);
        }
    }

    HS_DEVICE int first() const { return first_; }
    HS_DEVICE int begin(int r) const { return memory_[kTile + r]; }
    HS_DEVICE int end(int r) const { return memory_[2 * kTile + r]; }
    HS_DEVICE bool any() const { return last_end_ > rule_.key_begin; }

    /// First key of the tile at or after `key` that some row sees, of head `head`; at least end_key() if there is none.
    HS_DEVICE int next_tile(int key, int head) const {
        while (key < last_end_ && !sees(key, head)) key += kTile;
        return key;
    }
    HS_DEVICE int first_tile(int head) const {
        const int key = last_prefix_ > rule_.key_begin ? rule_.key_begin : least(first_begin_, last_end_);
        return next_tile(key / kTile * kTile, head);
    }
    HS_DEVICE int end_key() const { return last_end_; }

    HS_DEVICE bool sees(int key, int head) const {
        const bool range = most(key, first_begin_) < least(key + kTile, last_end_);
        const bool prefix = most(key, rule_.key_begin) < least(key + kTile, last_prefix_);
        return (range || prefix) && head_sees(key, head);
    }

    /// Every pair of the tile is allowed.
    HS_DEVICE bool is_full(int key) const {
        if (rule_.block_size > 0) return false;
        const bool range = key >= last_begin_ && key + kTile <= least_end_;
        return range || (key >= rule_.key_begin && key + kTile <= least_prefix_);
    }

    HS_DEVICE bool allows(int r, int j, int head) const {
        const bool range = j >= memory_[kTile + r] && j < memory_[2 * kTile + r];
        const bool prefix = j >= rule_.key_begin && j < memory_[r];
        if (!range && !prefix) return false;
        if (rule_.block_size == 0) return true;
        const int block = j / rule_.block_size;
        if (block == block_of(first_ + r + rule_.query_offset, rule_.block_size)) return rule_.own_block != 0;
        return rule_.visible[static_cast<long long>(head) * rule_.blocks + block] != 0;
    }

private:
    HS_DEVICE bool head_sees(int key, int head) const {
        if (rule_.block_size == 0) return true;
        const int own = block_of(first_ + rule_.query_offset, rule_.block_size);
        const int last_own = block_of(first_ + kTile - 1 + rule_.query_offset, rule_.block_size);
        for (int block = key / rule_.block_size; block * rule_.block_size < least(key + kTile, rule_.key_end);
             ++block) {
            if (rule_.own_block != 0 && block >= own && block <= last_own) return true;
            if (rule_.visible[static_cast<long long>(head) * rule_.blocks + block] != 0) return true;
        }
        return false;
    }

    const HsRule& rule_;
    Shared<int> memory_;
    int first_;
    int last_prefix_, least_prefix_, first_begin_, last_begin_, last_end_, least_end_;
};

}  // namespace headscope::gpu
