// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/figure_style.h"

#include <algorithm>
#include <array>

namespace headscope::figures {

std::span<const ColourMapInfo> colour_maps() {
    static const std::array<ColourMapInfo, 8> maps{{
        {"indigo", ColourMap::sequential, "the page's colour over yellow, green and blue to indigo; follows the theme"},
        {"viridis", ColourMap::sequential, "dark purple over green to yellow"},
        {"cividis", ColourMap::sequential, "dark blue to yellow; the same to the colour-blind"},
        {"magma", ColourMap::sequential, "black over purple and red to cream"},
        {"grey", ColourMap::sequential, "the page's colour to black, or to white; for print"},
        {"blue-red", ColourMap::diverging, "blue below, red above; follows the theme"},
        {"blue-orange", ColourMap::diverging, "blue below, orange above; follows the theme"},
        {"purple-green", ColourMap::diverging, "purple below, green above; follows the theme"},
    }};
    return maps;
}

const ColourMapInfo* find_colour_map(const std::string& name) {
    const auto maps = colour_maps();
    const auto found = std::find_if(maps.begin(), maps.end(), [&](const auto& map) { return map.name == name; });
    return found == maps.end() ? nullptr : &*found;
}

}  // namespace headscope::figures
