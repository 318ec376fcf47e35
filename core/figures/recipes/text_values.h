// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Values of a text's tokens for the recipe text: weights of a query or key, column mass, or losses. Errors: Error.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/figures/recipe.h"

namespace headscope::figures {

/// One text and a value for each of its tokens.
struct Coloured {
    std::string model;
    std::shared_ptr<const store::SequenceTokens> tokens;  ///< the file's, or its words
    std::vector<double> values;
    std::vector<float> shown;  ///< what is drawn: the values, or their ranks
    std::int64_t first = 0, end = 0;
    std::int64_t chosen = -1;  ///< the token that looks or is looked at, where it is of this text
    std::string token;         ///< it as a reader would write it; empty: none
    bool implicit = false;     ///< coefficients with signs
};
/// The color that the options choose; automatic: by their query or key.
TextColour colour_of(const FigureOptions& options);
/// True if the colors are of a chosen query or key.
bool of_token(TextColour colour);
/// The chosen query or key. Throws Error (usage) without one.
std::int64_t chosen_token(const FigureOptions& options, TextColour colour);

Coloured read_coloured(const store::AnalysisFile& file, const std::string& name, const FigureOptions& options);

}  // namespace headscope::figures
