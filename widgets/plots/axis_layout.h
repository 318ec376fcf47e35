// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "widgets/plots/placed.h"

namespace headscope::widgets {

inline constexpr double kTickLength = 7, kTickPadding = 5, kLabelPadding = 9;  // units
inline constexpr double kSmallestToken = 4.5;                                  // points

/// Radars, texts and links: what is drawn is no matter of axes.
bool has_no_axes(const figures::Panel& panel);

/// Ends of an axis, in its scale or in cells.
struct AxisLimits {
    double low = 0, high = 1;
    bool cells = false;
    std::int64_t count = 0;  ///< cells
};

/// Looks at every number of the panel.
AxisLimits axis_limits(const figures::Panel& panel, bool horizontal);

/// Limits and ticks of one axis of a panel whose plot is `length` units long; labels that would collide are thinned.
/// token_labels: cells may be labelled with their tokens.
PlacedAxis place_axis(const figures::Panel& panel, const AxisLimits& limits, bool horizontal, double length,
                      double tick_points, double label_share, bool token_labels = true);

/// Units needed beside the plot for ticks, tick labels and the axis label.
double axis_margin(const PlacedAxis& placed, const figures::Axis& axis, bool horizontal, double tick_points);

/// How far tick labels of a horizontal axis stick out beyond the plot, to the left and to the right.
std::pair<double, double> overhang(const PlacedAxis& placed, double length, double tick_points);

}  // namespace headscope::widgets
