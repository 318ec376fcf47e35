// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Series of numbers as plots and figures draw them: means over neighbors, and the points that keep a curve's shape.
// Threads: any.

#include <cstddef>
#include <span>
#include <vector>

namespace headscope {

/// Mean of the finite values; NaN where there are none.
double finite_mean(std::span<const double> values);
/// The same of `count` of the values from `first` on, `step` apart.
double finite_mean(std::span<const double> values, std::size_t first, std::size_t count, std::size_t step);

/// Pearson's correlation of two series of one length; NaN where either is constant.
double correlation(std::span<const double> x, std::span<const double> y);

/// At each place the mean of `window` values, of which `behind` (fewer than `window`) follow it; fewer at the ends.
/// Values that are not finite are left out; NaN where none remain. Time does not depend on the window.
std::vector<double> running_mean(std::span<const double> values, std::size_t window, std::size_t behind = 0);

/// Exponentially weighted mean of all values up to each place: `weight` is that of a value relative to the next (0: the
/// values themselves). Weights are divided by their sum, so that the first value has no extra one. NaN values are left
/// out.
std::vector<double> smoothed(std::span<const double> values, double weight);

/// Ascending indices of points that keep a curve's peaks: all of up to `most`; of more, the least and the greatest
/// value in each of most / 2 equal stretches, and with `ends` the first and the last point, too.
std::vector<std::size_t> kept_points(std::span<const double> values, std::size_t most, bool ends);

}  // namespace headscope
