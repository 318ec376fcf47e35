// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Numbers of a part of a map, as pages draw them: exact, or in any number of rows and columns of cells. Cell (r, c) has
// the queries q_begin + i with i * rows / queries = r, and keys likewise. NaN: the mask allows no pair. Any thread.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/maps/value_map.h"
#include "core/store/analysis/analysis_file.h"

namespace headscope::maps {

std::vector<float> exact_weights(const store::AnalysisFile::Map& map, std::int64_t head, const Cells& part);
std::vector<float> exact_scores(const store::AnalysisFile::Map& map, std::int64_t head, const Cells& part);

/// The largest weight, or the mean, in which forbidden pairs count as 0.
std::vector<float> pooled_weights(const store::AnalysisFile::Map& map, std::int64_t head, const Cells& part,
                                  std::int64_t rows, std::int64_t columns, bool mean);

/// Pools the numbers that `read` returns for a band of queries (NaN: none) to the one farthest from zero, or to the mean
/// of those that exist, or with the others as 0.
std::vector<float> pooled_bands(const Cells& part, std::int64_t rows, std::int64_t columns, bool mean,
                                const std::function<std::vector<float>(const Cells& band)>& read,
                                bool absent_as_zero = false);

/// Weights as pooled_weights(), or scores: the mean is over allowed pairs. Of a rollout of more than Rollout::kWhole
/// tokens: of the mean of a cell's queries.
std::vector<float> pooled_map(const PairMap& map, const Cells& part, std::int64_t rows, std::int64_t columns, bool mean,
                              bool scores = false);

}  // namespace headscope::maps
