// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The two maps that figure `difference` subtracts, as `attention` draws them. For map_difference.cpp.

#include <string>
#include <vector>

#include "core/figures/map_pairs.h"
#include "core/figures/recipes/attention_map.h"

namespace headscope::figures {

/// Both maps: the part of options.from_query and so on, and the part of the second that lies on it. Their color scale
/// is that of the longer whole text.
std::vector<AttentionMap> read_sides(const MapPlace& first, const MapPlace& second, const MapPairs& pairs,
                                     const FigureOptions& options);

/// The panels of read_sides(), without titles; none of none. Maps of one kind share their colors.
std::vector<Panel> side_panels(const std::vector<AttentionMap>& sides);

/// Meaning of the colors of the sides of all sites, and the second map's part where it is not the first's.
std::vector<std::string> side_notes(const std::vector<AttentionMap>& sides, const FigureOptions& options);

}  // namespace headscope::figures
