// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Scores of heads in files of `headscope ask` as columns of a table of heads.

#include <string>
#include <string_view>

#include "core/workspace/head_table.h"

namespace headscope::store {
struct AnalysisHeader;
struct AskRecord;
}  // namespace headscope::store

namespace headscope::workspace {

/// True for kinds, ablate and corpus.
bool has_asked_columns(std::string_view tool);

/// True if both files are of one checkpoint: the same sites, and the same fingerprint, or the same name where one of
/// them stores no fingerprint.
bool of_same_model(const store::AnalysisHeader& header, const store::AskRecord& record);

/// Name of the column that matters most in a file: "kind_induction", "ablate_change_2", "corpus_induction_score".
/// Throws usage for a tool without columns.
std::string main_asked_column(const store::AskRecord& record, int number);

/// Adds a column for every score of heads, as the mean over the file's texts, with its deviation where the table has
/// some: of ask kinds "kind_induction" and so on, of ask ablate "ablate_change", the metric less the unedited run's,
/// and "ablate_importance", of ask corpus "corpus_qk_distance" and so on, and "corpus_mean_sink" of each indicator.
/// `path` is the file's. `number` counts a tool's files from 1; later ones end in "_2", "_3".
/// Throws mismatch for a file of a model with other sites, usage for another tool's.
void add_asked_columns(HeadTable& table, const store::AskRecord& record, const std::string& path, int number = 1);

}  // namespace headscope::workspace
