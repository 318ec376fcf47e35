// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Cells of the tables of an ask file, by table and index. Errors: Error(internal) for a table that was not added.

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "core/store/ask/ask_file.h"

namespace headscope::ask {

/// A table to be filled; it stays where it is until the next table is added.
store::AskTable& answer_table(store::AskRecord& record, const std::string& path);

/// Place of a cell in AskTable::values; the index counts in the order of the table's dimensions.
std::size_t cell_of(const store::AskRecord& record, const store::AskTable& table,
                    const std::vector<std::int64_t>& index);

void put(store::AskRecord& record, const std::string& path, const std::vector<std::int64_t>& index, double value);
double get(const store::AskRecord& record, const std::string& path, const std::vector<std::int64_t>& index);

/// True if a table, or a part of its values, has a number.
bool has_numbers(std::span<const double> values);
/// Values of a text in a table whose first dimension is /sequence.
std::span<const double> values_of_text(const store::AskRecord& record, const store::AskTable& table, std::int64_t s);

/// False: the cell has no number yet.
inline bool has(const store::AskRecord& record, const std::string& path, const std::vector<std::int64_t>& index) {
    return !std::isnan(get(record, path, index));
}

}  // namespace headscope::ask
