// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// How the weights after the normaliser are distributed, from recorded maps: what the histograms of scores become.

#include <array>
#include <cstdint>
#include <vector>

#include "core/store/analysis/analysis_file.h"

namespace headscope::figures {

/// Weights of sampled queries, in bins of equal ratio.
struct WeightSpread {
    static constexpr int kDecades = 10, kBinsPerDecade = 12;
    static constexpr std::array<double, 3> kThresholds{0.01, 0.1, 0.5};

    std::vector<double> counts = std::vector<double>(kDecades * kBinsPerDecade, 0.0);
    double below = 0;  ///< weights under 10^-kDecades
    double pairs = 0, sum = 0, queries = 0;
    double minimum = 2, maximum = 0;       ///< of those that are drawn
    std::array<double, 3> above{0, 0, 0};  ///< weights above the thresholds
    std::int64_t row_step = 1;             ///< every row_step-th query was taken

    void add(const WeightSpread& other);
    /// Left edge of a bin; edge(counts.size()) is 1.
    static double edge(std::size_t bin);
};

/// Spread of one head. Takes at most some hundred queries, evenly spread.
WeightSpread weight_spread(const store::AnalysisFile::Map& map, std::int64_t head);

}  // namespace headscope::figures
