// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The recorded map that a recipe draws, and the part of it that the options ask for.

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/figures/recipe.h"
#include "core/maps/tile.h"

namespace headscope::figures {

/// Check that a site's map was recorded; read it. Throw Error (usage) that names what the file lacks.
void check_recorded(const store::AnalysisFile& file, std::int64_t s, std::int64_t site, const std::string& recipe);
store::AnalysisFile::Map recorded_map(const store::AnalysisFile& file, std::int64_t s, std::int64_t site,
                                      const std::string& recipe);

/// The refusal of a layer whose map was not recorded.
Error not_recorded(const store::AnalysisFile& file, std::int64_t site, const std::string& recipe);

/// The layer that a figure of one layer shows where nothing was said: the first of those chosen that has a matrix.
std::int64_t first_layer_with_matrix(const store::AnalysisFile& file, const FigureOptions& options);

/// The part that the options ask for. Throws Error (usage) where it is empty or not inside the map.
maps::Cells chosen_region(const FigureOptions& options, std::int64_t queries, std::int64_t keys);

/// True when the options ask for less than all.
bool asks_for_part(const FigureOptions& options);

/// Pieces of the tokens of a stream ("tokens", "target"); empty where the file has none.
std::vector<std::string> stream_pieces(const store::AnalysisHeader& header, std::int64_t s, const std::string& stream);

}  // namespace headscope::figures
