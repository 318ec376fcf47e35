// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/answers.h"

#include <algorithm>

#include "core/base/error.h"

namespace headscope::ask {

store::AskTable& answer_table(store::AskRecord& record, const std::string& path) {
    for (store::AskTable& table : record.tables)
        if (table.path == path) return table;
    throw Error(ErrorCode::internal, "ask " + record.tool, "expected " + path, "found no such table");
}

std::size_t cell_of(const store::AskRecord& record, const store::AskTable& table,
                    const std::vector<std::int64_t>& index) {
    std::int64_t cell = 0;
    for (std::size_t i = 0; i < index.size(); ++i) cell = cell * record.size_of(table.dimensions[i]) + index[i];
    return static_cast<std::size_t>(cell);
}

void put(store::AskRecord& record, const std::string& path, const std::vector<std::int64_t>& index, double value) {
    store::AskTable& table = answer_table(record, path);
    table.values[cell_of(record, table, index)] = value;
}

bool has_numbers(std::span<const double> values) {
    return std::any_of(values.begin(), values.end(), [](double one) { return !std::isnan(one); });
}

std::span<const double> values_of_text(const store::AskRecord& record, const store::AskTable& table, std::int64_t s) {
    const std::size_t size = table.values.size() / record.sequences.size();
    return std::span(table.values).subspan(static_cast<std::size_t>(s) * size, size);
}

double get(const store::AskRecord& record, const std::string& path, const std::vector<std::int64_t>& index) {
    const store::AskTable& table = record.table(path);
    return table.values[cell_of(record, table, index)];
}

}  // namespace headscope::ask
