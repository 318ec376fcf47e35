// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Which pairs of a tile are allowed, in terms of ranges, so that full tiles run without masks and empty ones not at
// all. Compiled for the baseline processor only: the vector loops call these a few times a tile.

#include <cstdint>

#include "kernels/cpu/attention/sequence.h"

namespace headscope::kernels::cpu {

/// Rows first .. first + count - 1 of a query block; row r sees the keys [key_begin, prefix_end[r]) and
/// [begin[r], end[r]), prefix_end <= begin, less what block visibility hides.
struct BlockRows {
    std::int64_t first = 0;
    int count = 0;
    std::int64_t first_key = 0, last_key = 0;  ///< all of them see nothing outside [first_key, last_key)
    std::int64_t prefix_end[kMaxBlockRows], begin[kMaxBlockRows], end[kMaxBlockRows];
};
void find_rows(const Sequence& s, std::int64_t first, int count, BlockRows& rows);

/// How rows [row_begin, row_end) of a block see the tile of keys [key, key + count). Columns count from `key`.
struct TileView {
    bool any = false;                 ///< some pair is allowed, block visibility aside
    bool partial = false;             ///< some pair is not, or block visibility has a say
    std::int64_t begin = 0, end = 0;  ///< columns that some row sees, block visibility aside
};
TileView view_tile(const Sequence& s, const BlockRows& rows, int row_begin, int row_end, std::int64_t key,
                   std::int64_t count);

/// True if block visibility shows head h any key of [key, key_end) from those rows, or if the rule has no blocks.
bool head_sees(const Sequence& s, std::int64_t h, const BlockRows& rows, int row_begin, int row_end, std::int64_t key,
               std::int64_t key_end);

/// Writes kMasked over the columns of [begin, end) that row r of head h may not see; `scores` is the tile's row.
/// Returns how many are left.
std::int64_t mask_row(const Sequence& s, std::int64_t h, const BlockRows& rows, int r, std::int64_t key,
                      std::int64_t begin, std::int64_t end, float* scores);

}  // namespace headscope::kernels::cpu
