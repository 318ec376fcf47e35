// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The numbers of a recorded map that a figure draws: weights or logits, exact or several pairs to a cell.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/figures/head_weights.h"
#include "core/maps/pooled_map.h"
#include "core/maps/value_map.h"

namespace headscope::figures {

/// [region.queries(), region.keys()] weights or logits; NaN: not allowed.
std::vector<float> exact_values(const store::AnalysisFile::Map& map, std::int64_t head, const maps::Cells& region,
                                MapValues values);

/// [rows, columns] cells of weights or logits, as core/maps/pooled_map.h pools them.
std::vector<float> pooled_values(const store::AnalysisFile::Map& map, std::int64_t head, const maps::Cells& region,
                                 std::int64_t rows, std::int64_t columns, MapValues values, Pooling pooling);

/// The greatest magnitude of a head's logits, as the analysis measured it; 0: there are none.
double largest_logit(const store::AnalysisFile& file, std::int64_t s, std::int64_t site, std::int64_t head);

/// A map of norms or of rollout. `head`: of MapValues::norms. Throws Error (usage) that says what the file lacks.
std::shared_ptr<const maps::ValueMap> computed_map(const store::AnalysisFile& file, std::int64_t s, std::int64_t site,
                                                   std::int64_t head, MapValues values, const std::string& recipe);

/// Values of a site's map for a request: a recurrent layer has its implicit matrix. Throws Error (usage) if the site
/// has no such numbers.
MapValues values_of_site(const store::AnalysisFile& file, std::int64_t site, MapValues asked,
                         const std::string& recipe);

/// Definition of norms and rollout in a sentence, with its source; empty for weights and scores.
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
