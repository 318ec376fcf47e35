// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Which cells of two maps are each other: by their tokens, as the window pairs what it compares.

#include <cstdint>
#include <memory>
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
    /// True if every token of the first side has a partner.
    bool whole() const;
};

/// A head's numbers: weights or logits of its map, coefficients of its implicit matrix.
struct MapSide {
    std::shared_ptr<const maps::TileSource> map;
    MapValues values = MapValues::weights;
};

/// The values of `asked` (weights or logits); a recurrent layer has its implicit matrix for weights. Throws Error
/// (usage) that names what the file lacks. The file must stay.
MapSide read_side(const MapPlace& place, std::int64_t head, MapValues asked);

/// Sizes are those of the maps; where a file has no tokens of that many, they are paired by position. Throws Error
/// (mismatch) where that cannot be, or nothing is paired.
MapPairs pair_maps(const MapPlace& first, const maps::TileSource& a, const MapPlace& second, const maps::TileSource& b);

/// How many tokens were paired and how, in sentences; empty: the tokens are the same.
std::string pairs_note(const MapPairs& pairs);

}  // namespace headscope::figures
