// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Which cells of two maps are each other: by their tokens, as the window pairs what it compares.

#include <cstdint>
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

/// Sizes are those of the maps; where a file has no tokens of that many, they are paired by position. Throws Error
/// (mismatch) where that cannot be, or nothing is paired.
MapPairs pair_maps(const MapPlace& first, const store::AnalysisFile::Map& a, const MapPlace& second,
                   const store::AnalysisFile::Map& b);

/// exact_values() of the second map, laid out as `region` of the first: [region.queries(), region.keys()]; NaN where a
/// query or a key has no partner.
std::vector<float> paired_values(const store::AnalysisFile::Map& second, std::int64_t head, const Region& region,
                                 MapValues values, const MapPairs& pairs);

/// How many tokens were paired and how, in sentences; empty: the tokens are the same.
std::string pairs_note(const MapPairs& pairs);

}  // namespace headscope::figures
