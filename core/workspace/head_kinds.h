// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Scores of `headscope ask kinds` as columns of a table of heads.

#include "core/workspace/head_table.h"

namespace headscope::store {
struct AskRecord;
}

namespace headscope::workspace {

/// Adds a column for every score of heads of the file, "kind_induction", as the mean over its texts, with its deviation
/// where the table has some. Throws mismatch for a file of a model with other sites, usage for another tool's.
void add_head_kinds(HeadTable& table, const store::AskRecord& record);

}  // namespace headscope::workspace
