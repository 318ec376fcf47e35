// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/head_kinds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/store/ask/ask_file.h"

namespace headscope::workspace {
namespace {

struct KindColumn {
    std::string name;
    std::vector<double> mean, deviation;  ///< by row of the table
};

/// Mean over texts of one head's score, and its deviation (divisor n - 1). Tables without texts have one value.
std::pair<double, double> over_texts(const store::AskRecord& record, const store::AskTable& table, const HeadRow& row) {
    const auto sites = record.size_of("/site"), heads = record.size_of("/head");
    const std::int64_t texts = table.dimensions.front() == "/sequence" ? record.size_of("/sequence") : 1;
    double sum = 0, squares = 0, count = 0;
    for (std::int64_t s = 0; s < texts; ++s) {
        const double value = table.values.at(static_cast<std::size_t>((s * sites + row.site) * heads + row.head));
        if (std::isnan(value)) continue;
        sum += value;
        squares += value * value;
        ++count;
    }
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    if (count == 0) return {none, none};
    const double mean = sum / count;
    return {mean, count > 1 ? std::sqrt(std::max(0.0, squares - count * mean * mean) / (count - 1)) : none};
}

}  // namespace

void add_head_kinds(HeadTable& table, const store::AskRecord& record) {
    if (record.tool != "kinds")
        throw Error(ErrorCode::usage, "table", "expected a file of headscope ask kinds",
                    "found one of ask " + escaped(record.tool));
    std::vector<KindColumn> found;
    for (const store::AskTable& scores : record.tables) {
        if (scores.dimensions.size() < 2 || scores.dimensions.back() != "/head") continue;
        KindColumn column{"kind_" + scores.path.substr(scores.path.rfind('/') + 1), {}, {}};
        for (const HeadRow& row : table.rows) {
            const bool known = row.site < std::ssize(record.sites) &&
                               record.sites[static_cast<std::size_t>(row.site)].layer == row.layer &&
                               row.head < record.sites[static_cast<std::size_t>(row.site)].heads;
            if (!known)
                throw Error(ErrorCode::mismatch, "table", "expected a file of the same model",
                            "found no head " + std::to_string(row.head) + " at site " + std::to_string(row.site));
            const auto [mean, deviation] = over_texts(record, scores, row);
            column.mean.push_back(mean);
            column.deviation.push_back(deviation);
        }
        found.push_back(std::move(column));
    }
    const std::size_t before = table.columns.size();
    const auto widened = [&](const std::vector<double>& values, auto member) {
        std::vector<double> wide;
        for (std::size_t row = 0; row < table.rows.size(); ++row) {
            const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * before);
            wide.insert(wide.end(), begin, begin + static_cast<std::ptrdiff_t>(before));
            for (const KindColumn& column : found) wide.push_back((column.*member)[row]);
        }
        return wide;
    };
    table.values = widened(table.values, &KindColumn::mean);
    if (!table.deviation.empty()) table.deviation = widened(table.deviation, &KindColumn::deviation);
    for (const KindColumn& column : found) table.columns.push_back(column.name);
}

}  // namespace headscope::workspace
