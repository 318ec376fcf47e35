// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Changes of each head between two analyses of the same heads: before and after one was switched off, two models of
// one shape, two texts. Values only; threads: any.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/workspace/head_table.h"

namespace headscope::store {
class AnalysisFile;
}

namespace headscope::workspace {

/// Differences are after - before, in the measures' own units; NaN where either does not exist.
struct HeadChanges {
    std::vector<std::string> measures;  ///< columns that both tables have, in the order of the first
    std::vector<double> difference;     ///< [rows, measures], row-major
    /// Per measure: standard deviation (divisor n - 1) over all heads of both tables; 0: constant but for rounding,
    /// NaN: fewer than two heads have it. Such measures do not count in scores.
    std::vector<double> deviation;
    /// Per row: Euclidean norm, over the measures that count, of difference / deviation; NaN for a head of which
    /// nothing exists in both tables.
    std::vector<double> score;
    /// Per row: the measure (index) that contributes most to the score; kNoMeasure when the score is 0 or NaN.
    std::vector<std::size_t> largest;
    /// Rows by score, largest first; ties in the order of the tables, NaN last.
    std::vector<std::size_t> ranking;
    std::optional<double> loss_before, loss_after;  ///< mean next-token loss in nats, where it was given

    static constexpr std::size_t kNoMeasure = std::numeric_limits<std::size_t>::max();
    double change(std::size_t row, std::size_t measure) const { return difference[row * measures.size() + measure]; }
};

/// Throws Error usage unless both tables have the same heads at the same sites, row by row.
HeadChanges head_changes(const HeadTable& before, const HeadTable& after, std::optional<double> loss_before = {},
                         std::optional<double> loss_after = {});

/// Mean loss over the tokens of one sequence or, token by token, of all; empty where there is none (encoders, a partial
/// file). Throws Error as AnalysisFile does.
std::optional<double> mean_loss(const store::AnalysisFile& file, std::optional<std::int64_t> sequence);

}  // namespace headscope::workspace
