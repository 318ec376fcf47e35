// SPDX-License-Identifier: GPL-3.0-or-later
// Curves of layers or heads: number of points, and distinct looks.

#include <algorithm>

#include "core/base/series.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

constexpr std::size_t kCategorical = 7;     ///< colours that a theme has
constexpr std::size_t kLegendEntries = 10;  ///< more would not be readable

}  // namespace

Curve thinned(Curve curve, std::size_t most, std::size_t most_errors) {
    const std::size_t count = std::min(curve.x.size(), curve.y.size());
    const auto kept = kept_points(std::span(curve.y).first(count), most, false);
    Curve fewer = curve;
    fewer.x.clear();
    fewer.y.clear();
    fewer.error.clear();
    const std::size_t step = (kept.size() + most_errors - 1) / std::max<std::size_t>(1, most_errors);
    for (std::size_t k = 0; k < kept.size(); ++k) {
        fewer.x.push_back(curve.x[kept[k]]);
        fewer.y.push_back(curve.y[kept[k]]);
        if (!curve.error.empty()) fewer.error.push_back(k % step == 0 ? curve.error[kept[k]] : kNoShade);
    }
    return fewer;
}

void colour_member(Curve& curve, std::size_t index, std::size_t count) {
    curve.colour = static_cast<int>(index);
    if (count > kCategorical) curve.shade = static_cast<double>(index) / static_cast<double>(count - 1);
}

std::vector<LegendEntry> member_legend(const std::vector<std::string>& names) {
    std::vector<LegendEntry> legend;
    if (names.size() < 2) return legend;
    const std::size_t shown = std::min(names.size(), kLegendEntries);
    for (std::size_t k = 0; k < shown; ++k) {
        const std::size_t i = shown < 2 ? 0 : k * (names.size() - 1) / (shown - 1);
        Curve coloured;
        colour_member(coloured, i, names.size());
        legend.push_back({names[i], coloured.colour, coloured.shade});
    }
    return legend;
}

}  // namespace headscope::figures
