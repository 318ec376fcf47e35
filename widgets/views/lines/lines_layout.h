// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>

namespace headscope::widgets {

// Measures of a LinesCanvas, in pixels unless said otherwise.
inline constexpr int kRegionWidth = 3;  ///< of the coloured edge of a pair's texts
inline constexpr int kEdge = 8, kLabelEdge = 6, kNumberWidth = 60, kWidestGap = 460;
inline constexpr std::size_t kMostLines = 8000, kMostPointed = 250;  ///< lines drawn: all, of the token pointed at
inline constexpr double kWeakest = 0.005;                            ///< weight of a line of the token pointed at
inline constexpr int kSliceMilliseconds = 6;                         ///< of drawing in one turn of the event loop

}  // namespace headscope::widgets
