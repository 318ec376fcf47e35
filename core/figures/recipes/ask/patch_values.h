// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/figures/recipes/ask/ask_panels.h"

namespace headscope::figures {

/// Tables of /patch/value whose rows are this dimension, of `site` alone if it is not empty. Throws usage for none.
std::vector<const store::AskTable*> patch_tables(const store::AskRecord& record, const std::string& site,
                                                 const std::string& rows);

struct PatchValues {
    AskValues cells;
    double centre = 0;  ///< the corrupted run's metric; 0 of shares
};
/// With FigureOptions::normalized (value - corrupted) / (clean - corrupted), text by text.
PatchValues patch_values(const store::AskRecord& record, const store::AskTable& table, const FigureOptions& options);

/// "/patch/value/attention_output" -> "attention output".
std::string point_title(const store::AskTable& table);
/// Rows and columns with the mean over all further axes.
AskValues mean_of_rest(const AskValues& cells);

std::string patch_note(const FigureOptions& options);

}  // namespace headscope::figures
