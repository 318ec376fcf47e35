// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Which cells of two maps are each other: by their tokens, as the window pairs what it compares.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/figures/map_values.h"
#include "core/figures/token_alignment.h"

namespace headscope::figures {

/// A site of one sequence of a file.
struct MapPlace {
    const store::AnalysisFile& file;
    std::int64_t sequence = 0, site = 0;
    const Site& about() const { return file.header().sites[static_cast<std::size_t>(site)]; }
};

/// a: the first map, b: the second.
struct MapPairs {
    TokenAlignment queries, keys;
    bool cross = false;  ///< queries and keys are of different sequences
    bool identical() const;
    /// Nobody stands alone on the first side.
    bool whole() const;
};

/// A head's numbers: weights or logits of its map, coefficients of its implicit matrix.
struct MapSide {
    std::int64_t queries = 0, keys = 0;
    MapValues values = MapValues::weights;
    std::function<std::vector<float>(const Region& region)> read;  ///< row-major; NaN: not allowed
};

/// What there is of `asked` (weights or logits): of a recurrent layer its implicit matrix for weights. Throws Error
/// (usage) that says what the file lacks. The file must stay.
MapSide read_side(const MapPlace& place, std::int64_t head, MapValues asked);

/// Sizes are those of the maps; where a file has no tokens of that many, they are paired by position. Throws Error
/// (mismatch) where that cannot be, or nothing is paired.
MapPairs pair_maps(const MapPlace& first, const MapSide& a, const MapPlace& second, const MapSide& b);

/// The second map's numbers, laid out as `region` of the first: [region.queries(), region.keys()]; NaN where a
/// query or a key has no partner.
std::vector<float> paired_values(const MapSide& second, const Region& region, const MapPairs& pairs);

/// How many tokens were paired and how, in sentences; empty: the tokens are the same.
std::string pairs_note(const MapPairs& pairs);

}  // namespace headscope::figures
