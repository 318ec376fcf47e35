// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <vector>

#include "core/figures/figure_data.h"

namespace headscope::widgets {

/// Round values in [low, high] (either order), at most about `wanted`, evenly spread in scaled(); ascending.
std::vector<double> round_ticks(figures::ScaleKind scale, double low, double high, int wanted,
                                double linear_range = 1.0);

/// 0.25, 12, 1.5·10⁻⁵; with a proper minus sign.
QString number_label(double value);

/// The smallest of 1, 2, 4, 5, 8, 10, 16, 20, ... that is at least `least`: every how manieth label is drawn.
std::int64_t round_stride(double least);

}  // namespace headscope::widgets
