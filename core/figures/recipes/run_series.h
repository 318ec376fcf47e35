// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Shared by recipes of runs.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/figures/figure_options.h"
#include "core/store/run/run_record.h"

namespace headscope::figures {

using Runs = std::span<const std::shared_ptr<const store::RunRecord>>;

/// A unique name for each run: its job's, with the folder's if two are alike; the folder's alone if the job has none.
std::vector<std::string> run_labels(Runs runs, const FigureOptions& options);

/// Steps as places on the axis that the options ask for: steps, tokens or minutes of training. `steps` rise; those
/// that the run did not train itself take the place of the last one before.
class RunAxis {
public:
    RunAxis(Runs runs, Against against);

    std::vector<double> places(const store::RunRecord& run, std::span<const std::int64_t> steps) const;
    double place(const store::RunRecord& run, std::int64_t step) const;
    double unit() const { return unit_; }  ///< seconds of one unit of the axis; 1: of steps and tokens
    const std::string& label() const noexcept { return label_; }

private:
    Against against_;
    double unit_ = 1;  ///< seconds
    std::string label_;
};

/// A curve without the places whose value is NaN: a gap in records is no gap in a line.
Curve known_points(std::span<const double> x, std::span<const double> y);

}  // namespace headscope::figures
