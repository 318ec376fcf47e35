// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "widgets/plots/figure/figure_layout.h"
#include "widgets/plots/qcp.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// A QCustomPlot that draws the figure when it is as large as the layout says, in units. Vector and pixel output and
/// the screen all draw this one. The figure that the layout was made of must outlive it.
std::unique_ptr<QCustomPlot> make_plot(const FigureLayout& layout, const Theme& theme);

}  // namespace headscope::widgets
