// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// How a figure is drawn, as the command line's options and the export page say it. Plain values: the painter
// (widgets/) makes fonts and colours of them.

#include <span>
#include <string>

#include "core/figures/figure_data.h"

namespace headscope::figures {

struct FigureStyle {
    double width_mm = 180;  ///< two columns of a paper; 85: one column
    double height_mm = 0;   ///< 0: follows from the panels
    bool dark = false;
    double font_points = 8;
    bool title = true;
    double dpi = 300;  ///< PNG only; vector output is true to size
    std::string font_family = "Noto Sans";
    std::string sequential_map = "indigo", diverging_map = "blue-red";  ///< names of colour_maps()
    bool labels = true;                                                 ///< token labels; positions without
    std::string title_text;                                             ///< empty: the figure's own

    bool operator==(const FigureStyle&) const = default;
};

struct ColourMapInfo {
    std::string name;
    ColourMap kind = ColourMap::sequential;
    std::string description;
};

/// The colour maps that there are, the default of each kind first.
std::span<const ColourMapInfo> colour_maps();

/// Null for an unknown name.
const ColourMapInfo* find_colour_map(const std::string& name);

}  // namespace headscope::figures
