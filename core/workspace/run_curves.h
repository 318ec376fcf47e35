// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A run's columns as curves for a screen: smoothed, over the chosen axis, thinned to what pixels can show.

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/workspace/live_run.h"

namespace headscope::workspace {

struct PlainCurve {
    std::vector<double> x, y;
};

/// The kept_points() (core/base/series.h), ends included, of the part of a curve between low and high and of one point
/// beyond each.
PlainCurve thinned_between(std::span<const double> x, std::span<const double> y,
                           const std::optional<std::pair<double, double>>& range, std::size_t most);

enum class RunAxis { step, tokens, seconds };

struct RunCurveOptions {
    RunAxis axis = RunAxis::step;
    double smoothing = 0.9;                          ///< weight of smoothed() (core/base/series.h)
    std::optional<std::pair<double, double>> range;  ///< of the axis; empty: all
    std::size_t most = 1600;                         ///< points a curve
    bool perplexity = false;                         ///< exp of the losses, of smoothed ones after smoothing

    bool operator==(const RunCurveOptions&) const = default;
};

struct RunCurves {
    PlainCurve loss, smooth_loss, validation, learning_rate, gradient_norm, smooth_norm, speed, smooth_speed, memory;
    PlainCurve accuracy, smooth_accuracy, validation_accuracy;  ///< empty where none was measured
};

RunCurves run_curves(const LiveRun& record, const RunCurveOptions& options);

/// Place of a step on the axis: interpolated between steps; before the first 0, after the last its place.
double axis_place(const LiveRun& record, RunAxis axis, double step);
/// The step there, rounded.
std::int64_t step_at(const LiveRun& record, RunAxis axis, double place);

}  // namespace headscope::workspace
