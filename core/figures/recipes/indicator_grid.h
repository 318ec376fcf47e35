// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Indicators as grids layers x heads, for the recipes that draw or compare them.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/figures/recipe.h"

namespace headscope::figures {

/// One heat map: an indicator of one sequence, or the mean over several; for local focus one distance of it.
struct IndicatorGrid {
    std::string model, indicator, title, unit;
    bool from_zero = false;
    std::vector<std::int64_t> sites;
    std::vector<std::int32_t> layers;
    std::vector<std::string> labels;
    std::int64_t first_head = 0, columns = 0;
    bool per_layer = false;
    std::vector<double> values;     ///< [sites, columns]
    std::vector<double> deviation;  ///< over sequences
    std::vector<double> shares;     ///< what is drawn instead of values; empty: they are
};

/// Indicators to draw, in the order of the specification: the one asked for, or all. By name there are also what is
/// kept of the scores ("score_maximum", "above_10"), and one distance of local focus ("local_focus_2"). Throws Error
/// (usage) for one that the file does not have.
std::vector<std::string> chosen_indicators(const store::AnalysisFile& file, const FigureOptions& options);

/// "Sink" for "sink", "Local focus 2" for "local_focus_2"; its own name for an unknown one.
std::string indicator_title(const std::string& name);

/// Appends the grids of an indicator: one, for local focus one a distance.
void add_indicator_grids(std::vector<IndicatorGrid>& grids, const store::AnalysisFile& file, const std::string& model,
                         const std::string& name, const FigureOptions& options);

struct Extent {
    double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
};

/// Extent of one indicator over all models.
Extent indicator_extent(const std::vector<IndicatorGrid>& grids, const std::string& indicator);

}  // namespace headscope::figures
