// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <array>

#include "core/figures/figure_data.h"
#include "widgets/theme.h"

namespace headscope::widgets {

inline constexpr int kMapColours = 256;
using ColourTable = std::array<QRgb, kMapColours>;

/// 256 colours, perceptually uniform (equal steps in OKLab: Ottosson 2020, bottosson.github.io/posts/oklab), of one of
/// figures::colour_maps(). Our own are made from a formula: the low end of the sequential maps and the middle of the
/// diverging ones are close to the page, so that nothing looks like nothing: on a light page light to dark, on a dark
/// page dark to light. viridis, cividis and magma go through ten published colours each (matplotlib; CC0) and are the
/// same on both pages. Unknown names give the default of the sequential maps.
const ColourTable& colour_table(const std::string& name, bool dark);

/// The theme's choice for this kind of values.
const ColourTable& colour_table(figures::ColourMap map, const Theme& theme);

/// The colour of a curve or an entry of the legend: a categorical one, or with a shade one of the sequential map,
/// without the end that is close to the page.
QColor member_colour(const Theme& theme, int colour, double shade);

/// Our own of this kind.
const ColourTable& colour_table(figures::ColourMap map, bool dark);

/// 0..1 in the colour scale: 0 at minimum, 1 at maximum, clamped; NaN stays NaN.
double fraction(const figures::ColourScale& scale, double value);

QRgb colour_of(const ColourTable& table, double fraction, QRgb none);

}  // namespace headscope::widgets
