// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Positions of each token as runs of adjacent keys: duplicate and induction scores gather a few ranges instead of
// scanning rows, and a text of one repeated token is one range.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/attention/sequence.h"

namespace headscope::kernels::cpu {

/// Columns [begin, end) of a tile's row.
struct Segment {
    std::int16_t row = 0, begin = 0, end = 0;
};

/// One tile's segments: by group of rows, for the pattern scores of indicators.md.
struct SegmentLists {
    std::vector<Segment> duplicate, induction;
};

class TokenRuns {
public:
    explicit TokenRuns(std::span<const std::int32_t> tokens, std::int64_t key_begin, std::int64_t key_end);

    /// The segments of the queries at positions [position, position + rows) in the tile of `count` keys from `key`.
    /// duplicate: keys before the query with its token; induction: keys up to the query whose predecessor has it.
    void find(std::int64_t position, int rows, std::int64_t key, std::int64_t count, SegmentLists& out) const;

private:
    struct Run {
        std::int64_t begin, end;
    };
    std::int64_t key_begin_, key_end_;
    std::vector<std::int32_t> token_number_;  // [keys]: equal tokens have equal numbers
    std::vector<std::int64_t> first_run_;     // [numbers + 1]
    std::vector<Run> runs_;                   // by number, then by position
};

}  // namespace headscope::kernels::cpu
