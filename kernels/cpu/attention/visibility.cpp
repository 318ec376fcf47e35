// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/attention/visibility.h"

#include <algorithm>

namespace headscope::kernels::cpu {
namespace {

std::int64_t block_of(const Sequence& s, std::int64_t position) {
    return position >= 0 ? position / s.block_size : -((s.block_size - 1 - position) / s.block_size);
}

std::int64_t fill(float* scores, std::int64_t begin, std::int64_t end) {
    if (begin >= end) return 0;
    std::fill(scores + begin, scores + end, kMasked);
    return end - begin;
}

}  // namespace

void find_rows(const Sequence& s, std::int64_t first, int count, BlockRows& rows) {
    rows.first = first;
    rows.count = count;
    rows.first_key = s.key_end;
    rows.last_key = s.key_begin;
    for (int r = 0; r < count; ++r) {
        const std::int64_t i = first + r, position = i + s.query_offset;
        std::int64_t begin = s.key_begin, end = i < s.query_end ? s.key_end : s.key_begin;
        if (s.causal) end = std::min(end, position + 1);
        if (s.window_right >= 0) end = std::min(end, position + s.window_right + 1);
        if (s.window_left >= 0) {
            const std::int64_t inside = position % s.window_segment;
            const std::int64_t segment = position - (inside < 0 ? inside + s.window_segment : inside);
            begin = std::max(begin, segment - s.window_left);
        }
        end = std::max(end, s.key_begin);
        begin = std::min(begin, end);
        std::int64_t prefix_end = std::clamp(s.first_keys, s.key_begin, end);
        if (prefix_end >= begin) {
            begin = s.key_begin;
            prefix_end = s.key_begin;
        }
        rows.prefix_end[r] = prefix_end;
        rows.begin[r] = begin;
        rows.end[r] = end;
        if (end > s.key_begin) {
            const bool prefix = prefix_end > s.key_begin;
            if (prefix || end > begin) rows.first_key = std::min(rows.first_key, prefix ? s.key_begin : begin);
            rows.last_key = std::max(rows.last_key, end > begin ? end : prefix_end);
        }
    }
}

TileView view_tile(const Sequence& s, const BlockRows& rows, int row_begin, int row_end, std::int64_t key,
                   std::int64_t count) {
    TileView view{false, s.block_size > 0, count, 0};
    const std::int64_t key_end = key + count;
    const auto add = [&](std::int64_t begin, std::int64_t end) {
        begin = std::max(begin, key);
        end = std::min(end, key_end);
        if (begin >= end) return false;
        view.any = true;
        view.begin = std::min(view.begin, begin - key);
        view.end = std::max(view.end, end - key);
        return begin == key && end == key_end;
    };
    for (int r = row_begin; r < row_end; ++r) {
        const bool prefix_covers = add(s.key_begin, rows.prefix_end[r]);
        const bool range_covers = add(rows.begin[r], rows.end[r]);
        if (!prefix_covers && !range_covers) view.partial = true;
    }
    return view;
}

bool head_sees(const Sequence& s, std::int64_t h, const BlockRows& rows, int row_begin, int row_end, std::int64_t key,
               std::int64_t key_end) {
    if (s.block_size == 0) return true;
    const std::int64_t first_own = block_of(s, rows.first + row_begin + s.query_offset);
    const std::int64_t last_own = block_of(s, rows.first + row_end - 1 + s.query_offset);
    for (std::int64_t block = key / s.block_size; block * s.block_size < key_end; ++block) {
        if (s.own_block && block >= first_own && block <= last_own) return true;
        if (s.visible[h * s.blocks + block] != 0) return true;
    }
    return false;
}

std::int64_t mask_row(const Sequence& s, std::int64_t h, const BlockRows& rows, int r, std::int64_t key,
                      std::int64_t begin, std::int64_t end, float* scores) {
    const auto column = [&](std::int64_t j) { return std::clamp(j - key, begin, end); };
    std::int64_t hidden = fill(scores, begin, column(s.key_begin));
    hidden += fill(scores, column(rows.prefix_end[r]), column(rows.begin[r]));
    hidden += fill(scores, column(rows.end[r]), end);
    if (s.block_size > 0) {
        const std::int64_t own = block_of(s, rows.first + r + s.query_offset);
        const auto hide = [&](std::int64_t from, std::int64_t to) { hidden += fill(scores, column(from), column(to)); };
        const std::int64_t last = std::min(rows.end[r], key + end);
        for (std::int64_t block = std::max(key, s.key_begin) / s.block_size; block * s.block_size < last; ++block) {
            if (block == own ? s.own_block : s.visible[h * s.blocks + block] != 0) continue;
            const std::int64_t from = std::max(block * s.block_size, s.key_begin);
            const std::int64_t to = std::min((block + 1) * s.block_size, rows.end[r]);
            hide(from, std::min(to, rows.prefix_end[r]));
            hide(std::max(from, rows.begin[r]), to);
        }
    }
    return end - begin - hidden;
}

}  // namespace headscope::kernels::cpu
