// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Probes of a run as curves against the step and as radars of one step.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/figures/figure_data.h"
#include "core/workspace/live_run.h"

namespace headscope::workspace {

/// Names that can be drawn, of what the last probe has, in the order of measures(): local_focus as its four distances.
std::vector<std::string> probe_indicators(const LiveRun& record);

struct ProbeSeries {
    struct Line {
        std::int64_t site = 0;
        std::int64_t head = -1;      ///< -1: the mean over heads
        std::vector<double> values;  ///< by probe; NaN: not measured
    };
    std::vector<double> steps;
    std::vector<Line> lines;
};

/// Means over the heads of each site, or with `site` its heads. head_diversity has one line a site in either case.
ProbeSeries probe_series(const LiveRun& record, const std::string& indicator, std::optional<std::int64_t> site);

/// One value of a probe, or with head -1 the mean over heads; NaN: there is none.
double probe_value(const training::ProbeResult& probe, std::int64_t sites, std::int64_t heads,
                   const std::string& indicator, std::int64_t site, std::int64_t head);

/// A radar for each site at one probe, as the recipe `radar` draws them; entropy, concentration and head diversity are
/// normalised by their range over all layers and all probes of the run, so that steps can be compared.
figures::FigureData probe_radars(const LiveRun& record, std::size_t probe, std::optional<std::int64_t> head);

/// The probe at a step, or the last one before it; empty: none.
std::optional<std::size_t> probe_at(const LiveRun& record, std::optional<std::int64_t> step);

/// Most heads that a site of the run has.
std::int64_t most_heads(const LiveRun& record);

}  // namespace headscope::workspace
