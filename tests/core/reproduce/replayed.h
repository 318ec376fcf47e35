// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "core/reproduce/report.h"

namespace headscope::test {

/// Each step of each model takes `step_seconds`.
inline reproduce::Pace calibration_of(const reproduce::Paper& paper, double step_seconds, double overhead,
                                      double spent) {
    reproduce::Pace calibration;
    calibration.size = paper.smallest();
    calibration.spent = spent;
    for (const auto& stage : paper.stages) {
        for (const auto& model : paper.models)
            calibration.step_seconds[paper.timed_key(model.timed_as(), stage)] = step_seconds;
        calibration.overhead[paper.overhead_key(stage)] = overhead;
    }
    return calibration;
}

inline reproduce::Plan plan_of(const std::string& name, double minutes, double step_seconds, double overhead,
                               double spent, std::int64_t workers = 2, std::int64_t seeds = 0) {
    const reproduce::Paper& paper = reproduce::paper(name);
    reproduce::Settings settings;
    settings.minutes = minutes;
    settings.workers = workers;
    settings.seeds = seeds;
    return reproduce::make_plan(paper, settings, calibration_of(paper, step_seconds, overhead, spent));
}

/// A printed number; NaN where there is none.
inline double printed(const reproduce::Paper& paper, const std::string& subject, const std::string& key) {
    return reproduce::Scope{reproduce::unplanned(paper, {}), {}, subject}.value("paper." + key);
}

inline reproduce::ReportInput report_input(const reproduce::Plan& plan, reproduce::Measured measured,
                                           const std::string& figure) {
    return {plan, std::move(measured), {{figure, "Caption"}}, {"Failed: x."}, "a machine", "headscope", "", 61};
}

/// By the begin of its title.
inline const reproduce::Claim* claim_of(const std::vector<reproduce::Claim>& claims, const std::string& words) {
    for (const auto& claim : claims)
        if (claim.title.starts_with(words)) return &claim;
    return nullptr;
}

}  // namespace headscope::test
