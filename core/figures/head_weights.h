// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Weights of one head from a recorded map, for the recipes that draw them: a part of it, exact or pooled, with NaN
// where the mask allows nothing.

#include <cstdint>
#include <string>
#include <vector>

#include "core/figures/recipe.h"

namespace headscope::figures {

/// Queries [first_query, end_query) by keys [first_key, end_key).
struct Region {
    std::int64_t first_query = 0, end_query = 0, first_key = 0, end_key = 0;
    std::int64_t queries() const { return end_query - first_query; }
    std::int64_t keys() const { return end_key - first_key; }
    /// Of rows cells along the queries, the first query of cell r; likewise of columns along the keys.
    std::int64_t query_of(std::int64_t r, std::int64_t rows) const {
        return first_query + (r * queries() + rows - 1) / rows;
    }
    std::int64_t key_of(std::int64_t c, std::int64_t columns) const {
        return first_key + (c * keys() + columns - 1) / columns;
    }
};

/// Whether the map of a site was recorded; the map. Throw Error (usage) that says what the file lacks.
void check_recorded(const store::AnalysisFile& file, std::int64_t s, std::int64_t site, const std::string& recipe);
store::AnalysisFile::Map recorded_map(const store::AnalysisFile& file, std::int64_t s, std::int64_t site,
                                      const std::string& recipe);

/// The layer that a figure of one layer shows where nothing was said: the first of those chosen that has a matrix.
std::int64_t first_layer_with_matrix(const store::AnalysisFile& file, const FigureOptions& options);

/// The part that the options ask for. Throws Error (usage) where it is empty or not inside the map.
Region chosen_region(const FigureOptions& options, std::int64_t queries, std::int64_t keys);

/// True when the options ask for less than all.
bool asks_for_part(const FigureOptions& options);

/// [region.queries(), region.keys()]; NaN: not allowed.
std::vector<float> exact_weights(const store::AnalysisFile::Map& map, std::int64_t head, const Region& region);

/// [rows, columns] cells, each the largest weight under it or the mean, in which pairs that are not allowed count as 0:
/// cell r has the queries first + i with i * rows / queries = r. NaN: no pair under it is allowed.
std::vector<float> pooled_weights(const store::AnalysisFile::Map& map, std::int64_t head, const Region& region,
                                  std::int64_t rows, std::int64_t columns, Pooling pooling = Pooling::maximum);

/// Pieces of the tokens of a stream ("tokens", "target"); empty where the file has none.
std::vector<std::string> stream_pieces(const store::AnalysisHeader& header, std::int64_t s, const std::string& stream);

/// Each value's share of the other values of its row that are smaller, ties counting half: 0 to 1. NaN stays NaN; a
/// value that is alone is 1.
std::vector<float> row_ranks(const std::vector<float>& values, std::int64_t rows, std::int64_t columns);

}  // namespace headscope::figures
