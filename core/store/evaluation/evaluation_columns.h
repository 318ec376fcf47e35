// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The columns of an evaluation's tables: one list for the file, its reader and the CSV.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/store/evaluation/evaluation_file.h"

namespace headscope::store {

/// A member of a table's row: the dataset's name and the values' place.
template <class Row>
struct Column {
    const char* name;
    const char* long_name;
    std::variant<std::string Row::*, std::int64_t Row::*, double Row::*, bool Row::*> member;
    std::int32_t since = 1;  ///< version of the first files that have it
};

const std::vector<Column<EvaluatedModel>>& model_columns();
const std::vector<Column<EvaluationResult>>& result_columns();

}  // namespace headscope::store
