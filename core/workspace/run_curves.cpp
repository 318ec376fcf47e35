// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/run_curves.h"

#include <algorithm>
#include <cmath>

#include "core/base/series.h"

namespace headscope::workspace {
namespace {

std::vector<double> column(const store::RunSteps& steps, RunAxis axis) {
    if (axis == RunAxis::seconds) return steps.seconds;
    const std::vector<std::int64_t>& whole = axis == RunAxis::tokens ? steps.tokens : steps.step;
    return {whole.begin(), whole.end()};
}

/// y at `place` of a curve with ascending x that begins at (0, 0).
template <class X, class Y>
double interpolated(const std::vector<X>& x, const std::vector<Y>& y, double place) {
    if (x.empty()) return place;
    const auto above =
        std::lower_bound(x.begin(), x.end(), place, [](X a, double b) { return static_cast<double>(a) < b; });
    if (above == x.end()) return static_cast<double>(y.back());
    const auto at = static_cast<std::size_t>(above - x.begin());
    const double x0 = at == 0 ? 0 : static_cast<double>(x[at - 1]), y0 = at == 0 ? 0 : static_cast<double>(y[at - 1]);
    const double x1 = static_cast<double>(x[at]), y1 = static_cast<double>(y[at]);
    const double share = x1 > x0 ? (place - x0) / (x1 - x0) : 1;
    return y0 + std::clamp(share, 0.0, 1.0) * (y1 - y0);
}

bool measured(const std::vector<double>& values, std::size_t rows) {
    return values.size() == rows && std::any_of(values.begin(), values.end(), [](double v) { return !std::isnan(v); });
}

}  // namespace

PlainCurve thinned_between(std::span<const double> x, std::span<const double> y,
                           const std::optional<std::pair<double, double>>& range, std::size_t most) {
    std::size_t begin = 0, end = std::min(x.size(), y.size());
    if (range) {
        const auto all = x.first(end);
        begin = static_cast<std::size_t>(std::lower_bound(all.begin(), all.end(), range->first) - all.begin());
        const auto last =
            static_cast<std::size_t>(std::upper_bound(all.begin(), all.end(), range->second) - all.begin());
        begin -= begin > 0 ? 1 : 0;
        end = std::min(end, last + 1);
    }
    PlainCurve curve;
    if (begin >= end) return curve;
    for (const std::size_t i : kept_points(y.subspan(begin, end - begin), most, true)) {
        curve.x.push_back(x[begin + i]);
        curve.y.push_back(y[begin + i]);
    }
    return curve;
}

RunCurves run_curves(const LiveRun& record, const RunCurveOptions& options) {
    const auto& steps = record.steps;
    const std::vector<double> x = column(steps, options.axis), numbers = column(steps, RunAxis::step);
    const auto thin = [&](const std::vector<double>& y) { return thinned_between(x, y, options.range, options.most); };
    RunCurves curves;
    curves.loss = thin(steps.loss);
    curves.smooth_loss = thin(smoothed(steps.loss, options.smoothing));
    curves.learning_rate = thin(steps.learning_rate);
    curves.gradient_norm = thin(steps.gradient_norm);
    curves.smooth_norm = thin(smoothed(steps.gradient_norm, options.smoothing));
    curves.speed = thin(steps.tokens_per_second);
    curves.smooth_speed = thin(smoothed(steps.tokens_per_second, options.smoothing));
    curves.memory = thin(steps.memory);
    std::vector<double> places;
    for (const std::int64_t step : record.validations.step) {
        const auto place = static_cast<double>(step);
        places.push_back(options.axis == RunAxis::step ? place : interpolated(numbers, x, place));
    }
    curves.validation = thinned_between(places, record.validations.loss, options.range, options.most);
    if (measured(steps.accuracy, x.size())) {
        curves.accuracy = thin(steps.accuracy);
        curves.smooth_accuracy = thin(smoothed(steps.accuracy, options.smoothing));
    }
    if (measured(record.validations.accuracy, places.size()))
        curves.validation_accuracy = thinned_between(places, record.validations.accuracy, options.range, options.most);
    if (options.perplexity)
        for (PlainCurve* curve : {&curves.loss, &curves.smooth_loss, &curves.validation})
            for (double& y : curve->y) y = std::exp(y);
    return curves;
}

double axis_place(const LiveRun& record, RunAxis axis, double step) {
    const store::RunSteps& steps = record.steps;
    switch (axis) {
        case RunAxis::tokens:
            return interpolated(steps.step, steps.tokens, step);
        case RunAxis::seconds:
            return interpolated(steps.step, steps.seconds, step);
        default:
            return step;
    }
}

std::int64_t step_at(const LiveRun& record, RunAxis axis, double place) {
    const store::RunSteps& steps = record.steps;
    switch (axis) {
        case RunAxis::tokens:
            return std::llround(interpolated(steps.tokens, steps.step, place));
        case RunAxis::seconds:
            return std::llround(interpolated(steps.seconds, steps.step, place));
        default:
            return std::llround(place);
    }
}

}  // namespace headscope::workspace
