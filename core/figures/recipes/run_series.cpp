// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/recipes/run_series.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"

namespace headscope::figures {

std::vector<std::string> run_labels(Runs runs, const FigureOptions& options) {
    if (!options.names.empty()) {
        if (options.names.size() == runs.size()) {
            FigureOptions usual;
            std::vector<std::string> names = run_labels(runs, usual);
            for (std::size_t r = 0; r < runs.size(); ++r)
                if (!options.names[r].empty()) names[r] = options.names[r];
            return names;
        }
        throw Error(ErrorCode::usage, "--names",
                    "expected a name for each of the " + std::to_string(runs.size()) + " runs",
                    "found " + std::to_string(options.names.size()));
    }
    const auto folder = [](const store::RunRecord& run) { return run.name.empty() ? "run" : run.name; };
    std::map<std::string, int> titles, seen, count;
    for (const auto& run : runs) ++titles[run->title];
    std::vector<std::string> labels;
    for (const auto& run : runs) {
        const std::string& title = run->title;
        if (title.empty())
            labels.push_back(folder(*run));
        else
            labels.push_back(titles[title] == 1 || title == run->name ? title : title + " (" + folder(*run) + ")");
        ++count[labels.back()];
    }
    for (std::string& label : labels)
        if (count[label] > 1) label += " (" + std::to_string(++seen[label]) + ")";
    return labels;
}

RunAxis::RunAxis(Runs runs, Against against) : against_(against) {
    if (against == Against::step) label_ = "step";
    if (against == Against::tokens) label_ = "tokens";
    if (against != Against::time) return;
    double longest = 0;
    for (const auto& run : runs) {
        if (!run->training.seconds.empty()) longest = std::max(longest, run->training.seconds.back());
    }
    unit_ = longest > 3 * 3600 ? 3600 : longest > 180 ? 60 : 1;
    label_ = unit_ == 1 ? "training time (s)" : unit_ == 60 ? "training time (min)" : "training time (h)";
}

double RunAxis::place(const store::RunRecord& run, std::int64_t step) const {
    if (against_ == Against::step) return static_cast<double>(step);
    const auto& steps = run.training.step;
    const auto after = std::upper_bound(steps.begin(), steps.end(), step) - steps.begin();
    if (after == 0) return 0;
    const auto at = static_cast<std::size_t>(after - 1);
    return against_ == Against::tokens ? static_cast<double>(run.training.tokens[at])
                                       : run.training.seconds[at] / unit_;
}

std::vector<double> RunAxis::places(const store::RunRecord& run, std::span<const std::int64_t> steps) const {
    std::vector<double> all;
    all.reserve(steps.size());
    for (const auto step : steps) all.push_back(place(run, step));
    return all;
}

Curve known_points(std::span<const double> x, std::span<const double> y) {
    Curve curve;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
        if (!std::isfinite(y[i])) continue;
        curve.x.push_back(x[i]);
        curve.y.push_back(y[i]);
    }
    return curve;
}

}  // namespace headscope::figures
