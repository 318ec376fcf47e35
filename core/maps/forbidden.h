// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/maps/tile.h"
#include "kernels/key_ranges.h"

namespace headscope::maps {

/// Calls hide(r, c) for each pixel under which the rule allows no pair of head `head` of `heads`: future, window,
/// blocks, padding. row_of(i), column_of(j): the pixel of query q_begin + i, of key k_begin + j; both rise.
template <class RowOf, class ColumnOf, class Hide>
void for_forbidden(const kernels::ScoreRule& rule, const kernels::SequenceBounds& bounds, std::int64_t head,
                   std::int64_t heads, const Cells& cells, std::int64_t rows, std::int64_t columns, const RowOf& row_of,
                   const ColumnOf& column_of, const Hide& hide) {
    // Per row of pixels: +1 where a range of allowed keys begins, -1 behind its end.
    std::vector<std::int64_t> change(static_cast<std::size_t>(columns) + 1);
    const auto allow = [&](std::int64_t begin, std::int64_t end) {
        begin = std::max(begin, cells.k_begin) - cells.k_begin;
        end = std::min(end, cells.k_end) - cells.k_begin;
        if (begin >= end) return;
        ++change[static_cast<std::size_t>(column_of(begin))];
        --change[static_cast<std::size_t>(column_of(end - 1)) + 1];
    };
    std::int64_t i = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
        std::fill(change.begin(), change.end(), 0);
        for (; i < cells.queries() && row_of(i) == r; ++i)
            kernels::for_key_ranges(rule, bounds, 0, head, heads, cells.q_begin + i, allow);
        std::int64_t ranges = 0;
        for (std::int64_t c = 0; c < columns; ++c) {
            ranges += change[static_cast<std::size_t>(c)];
            if (ranges == 0) hide(r, c);
        }
    }
}

}  // namespace headscope::maps
