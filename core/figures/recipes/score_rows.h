// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Scores of layers or heads as the figure `logits` draws them: histograms, extremes, outlier counts, and what becomes
// of them after the normaliser.

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/figures/recipe.h"
#include "core/figures/weight_spread.h"

namespace headscope::figures {

inline constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

/// One row of the figure: a layer (all heads together) or a head.
struct ScoreRow {
    std::int64_t site = 0, layer = 0, head = -1;
    std::string name;
    std::vector<double> counts;
    double minimum = kNoScore, maximum = kNoScore, mean = kNoScore;
    double deviation = kNoScore;  ///< of the means of several sequences
    std::array<double, 3> above{0, 0, 0};
    double total = 0;
    bool undefined = false;  ///< some scores are infinite or NaN
    std::optional<WeightSpread> after;
};

struct ScoreModel {
    std::string name;
    std::vector<double> edges;
    std::int64_t row_step = 1;
    std::vector<ScoreRow> rows;
};

/// Rows of the chosen layers and heads, sequences together. Throws Error (usage) where weights are asked for of a file
/// without maps.
ScoreModel read_scores(const store::AnalysisFile& file, const std::string& name, const FigureOptions& options);

}  // namespace headscope::figures
