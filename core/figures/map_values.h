// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The numbers of a recorded map that a figure draws: weights or logits, exact or several pairs to a cell.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/figures/head_weights.h"
#include "core/maps/pair_map.h"
#include "core/maps/value_map.h"

namespace headscope::figures {

/// [region.queries(), region.keys()] weights or logits; NaN: not allowed.
std::vector<float> exact_values(const store::AnalysisFile::Map& map, std::int64_t head, const Region& region,
                                MapValues values);

/// [rows, columns] cells; those of a query are i * rows / queries, of a key likewise. NaN: no pair under it is allowed.
/// Weights: the largest, or the mean, in which pairs that the mask forbids count as 0. Logits: that of greatest
/// magnitude, or the mean over allowed pairs.
std::vector<float> pooled_values(const store::AnalysisFile::Map& map, std::int64_t head, const Region& region,
                                 std::int64_t rows, std::int64_t columns, MapValues values, Pooling pooling);

/// The same of numbers that `read` gives for a band of queries, NaN for what there is not: the mean of those that
/// there are, or with the others as 0, or the one farthest from zero.
std::vector<float> pooled_bands(const Region& region, std::int64_t rows, std::int64_t columns, bool mean,
                                const std::function<std::vector<float>(const Region& band)>& read,
                                bool absent_as_zero = false);

/// The same of a head in the mean over sequences, or of words.
std::vector<float> pooled_values(const maps::PairMap& map, const Region& region, std::int64_t rows,
                                 std::int64_t columns, MapValues values, Pooling pooling);

/// The greatest magnitude of a head's logits, as the analysis measured it; 0: there are none.
double largest_logit(const store::AnalysisFile& file, std::int64_t s, std::int64_t site, std::int64_t head);

/// A map of norms or of rollout. `head`: of MapValues::norms. Throws Error (usage) that says what the file lacks.
std::shared_ptr<const maps::ValueMap> computed_map(const store::AnalysisFile& file, std::int64_t s, std::int64_t site,
                                                   std::int64_t head, MapValues values, const std::string& recipe);

/// Weights of such a map as pooled_values(): the largest, or the mean in which forbidden pairs count as 0. Of a rollout
/// of more than Rollout::kWhole tokens: of the mean of a cell's queries.
std::vector<float> pooled_values(const maps::ValueMap& map, const Region& region, std::int64_t rows,
                                 std::int64_t columns, Pooling pooling);

/// What a site's map is of where `asked` was said: of a recurrent layer its implicit matrix. Throws Error (usage) where
/// it has no such numbers.
MapValues values_of_site(const store::AnalysisFile& file, std::int64_t site, MapValues asked,
                         const std::string& recipe);

/// What norms and rollout are, in a sentence, with where they come from; empty for weights and scores.
std::string definition_note(MapValues values);

/// Throws Error (usage) where a head was chosen of what is of all heads, a mean over sequences of what is of one, or
/// words of other numbers than weights.
void check_one_map(const FigureOptions& options);

/// Label of a color scale: "attention weight", "score before the normalizer".
std::string values_label(MapValues values);
/// "weight", "score", "norm", "rollout".
std::string values_word(MapValues values);
/// A column of CSV: "weight", "largest_weight", "mean_weight", "logit", ...
std::string values_column(MapValues values, Pooling pooling, bool pooled);

}  // namespace headscope::figures
