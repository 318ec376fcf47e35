// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview_files.h"

#include <variant>

#include "core/base/output_file.h"
#include "core/figures/table.h"

namespace headscope::widgets {
namespace {

/// For spreadsheets: the same fields as CSV; names of sites hold no tabs.
std::string tab_separated(const figures::Table& table) {
    std::string text;
    for (std::size_t c = 0; c < table.columns.size(); ++c) text += (c > 0 ? "\t" : "") + table.columns[c].name;
    text += '\n';
    for (std::size_t row = 0; row < table.rows(); ++row) {
        for (std::size_t c = 0; c < table.columns.size(); ++c) {
            if (c > 0) text += '\t';
            const auto& values = table.columns[c].values;
            if (const auto* numbers = std::get_if<std::vector<double>>(&values))
                text += figures::csv_number((*numbers)[row]);
            else if (const auto* whole = std::get_if<std::vector<std::int64_t>>(&values))
                text += std::to_string((*whole)[row]);
            else
                text += std::get<std::vector<std::string>>(values)[row];
        }
        text += '\n';
    }
    return text;
}

}  // namespace

std::string TableCut::text(TableFormat format) const {
    if (format == TableFormat::latex) return workspace::latex_table(*table, rows, columns);
    const figures::Table plain = workspace::plain_table(*table, rows, columns);
    return format == TableFormat::csv ? figures::csv(plain) : tab_separated(plain);
}

void TableCut::write(const std::filesystem::path& path, TableFormat format) const {
    OutputFile file(path, {}, "table");
    file.append(text(format));
    file.publish();
}

}  // namespace headscope::widgets
