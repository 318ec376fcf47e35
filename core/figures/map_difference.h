// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/figures/recipe.h"

namespace headscope::figures {

/// The refusal of two files that cannot be compared. Error (mismatch).
[[noreturn]] void not_alike(const std::string& expected, const std::string& found);

/// The attention maps of the head of options.layer and options.head: the second file's minus the first's, or that of
/// options.other_sequence, other_layer and other_head where those are given; laid out as the first, cells paired by
/// their tokens (map_pairs.h). The files may be one, twice. With options.sides three panels: both maps, as `attention`
/// draws them, and the difference. Everything but the titles.
FigureData map_difference(Files files, const FigureOptions& options);

}  // namespace headscope::figures
