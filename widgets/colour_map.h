// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <array>

#include "core/figures/figure.h"

namespace headscope::widgets {

inline constexpr int kMapColours = 256;
using ColourTable = std::array<QRgb, kMapColours>;

/// 256 colours, perceptually uniform (equal steps in OKLab: Ottosson 2020, bottosson.github.io/posts/oklab), made from
/// a formula. The low end of the sequential map and the middle of the diverging map are close to the page, so that
/// nothing looks like nothing: on a light page light to dark, on a dark page dark to light.
const ColourTable& colour_table(figures::ColourMap map, bool dark);

/// 0..1 in the colour scale: 0 at minimum, 1 at maximum, clamped; NaN stays NaN.
double fraction(const figures::ColourScale& scale, double value);

QRgb colour_of(const ColourTable& table, double fraction, QRgb none);

}  // namespace headscope::widgets
