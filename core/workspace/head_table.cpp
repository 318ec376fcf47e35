// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/head_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/figures/recipe.h"
#include "core/store/analysis/analysis_file.h"
#include "core/workspace/measures.h"

namespace headscope::workspace {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// One column's source: a dataset of [S, n, H], [S, n] (a layer's) or [S, n, H, K] with K picked.
struct Source {
    std::string column;
    store::Values values;
    std::int64_t pick = 0;

    double at(std::int64_t s, std::int64_t site, std::int64_t head) const {
        const auto& shape = values.shape;
        std::int64_t place = s * shape[1] + site;
        if (shape.size() >= 3) place = place * shape[2] + head;
        if (shape.size() == 4) place = place * shape[3] + pick;
        return values.data[static_cast<std::size_t>(place)];
    }
};

std::vector<Source> read_sources(const store::AnalysisFile& file) {
    std::vector<Source> found;
    const auto there = file.indicators();
    const auto add = [&](const std::string& column, const store::Values& values, std::int64_t pick = 0) {
        found.push_back({column, values, pick});
    };
    for (const std::string& name : there) {
        if (name == "column_mass") continue;
        const store::Values values = file.indicator(name);
        if (values.shape.size() < 4) {
            add(name, values);
            continue;
        }
        const auto& distances = file.header().local_distances;
        for (std::int64_t k = 0; k < values.shape[3]; ++k)
            add(name + "_" + std::to_string(distances.at(static_cast<std::size_t>(k))), values, k);
    }
    for (const char* which : {"minimum", "maximum", "mean", "variance"})
        add(std::string("score_") + which, file.score_statistic(which));
    const store::Values above = file.score_statistic("above");
    if (const auto offsets = file.parameters("offset")) {  // of the model, so of every sequence
        store::Values all{{std::ssize(file.header().sequences), offsets->shape[0], offsets->shape[1]}, {}};
        for (std::int64_t s = 0; s < all.shape[0]; ++s)
            all.data.insert(all.data.end(), offsets->data.begin(), offsets->data.end());
        add("offset", all);
    }
    for (std::int64_t k = 0; k < 3; ++k) add("above_1" + std::string(static_cast<std::size_t>(k) + 1, '0'), above, k);
    // In the order of measures(); what that list does not know comes last, by name.
    const auto rank = [](const Source& source) {
        const Measure* measure = find_measure(source.column);
        return measure ? measure - measures().data() : std::ssize(measures());
    };
    std::stable_sort(found.begin(), found.end(), [&](const Source& a, const Source& b) { return rank(a) < rank(b); });
    return found;
}

/// Mean and deviation of what exists.
std::pair<double, double> over(const std::vector<double>& all) {
    double sum = 0, squares = 0;
    std::int64_t count = 0;
    for (const double v : all) {
        if (std::isnan(v)) continue;
        sum += v;
        ++count;
    }
    if (count == 0) return {kNone, kNone};
    const double mean = sum / static_cast<double>(count);
    for (const double v : all)
        if (!std::isnan(v)) squares += (v - mean) * (v - mean);
    return {mean, count > 1 ? std::sqrt(squares / static_cast<double>(count - 1)) : kNone};
}

std::size_t column_or_refuse(const HeadTable& table, const std::string& name) {
    if (const auto column = table.column(name)) return *column;
    throw Error(ErrorCode::usage, "table", "expected a column of the table", "found " + name);
}

std::string latex_text(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (std::string_view("_%&#${}").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

/// As short_number(), powers of ten as a reader of papers writes them. For math mode.
std::string latex_number(double value, int digits) {
    std::string text = figures::short_number(value, digits);
    const std::size_t e = text.find('e');
    if (e == std::string::npos) return std::isinf(value) ? (value < 0 ? "-\\infty" : "\\infty") : text;
    return text.substr(0, e) + " \\cdot 10^{" + std::to_string(std::stoi(text.substr(e + 1))) + "}";
}

}  // namespace

std::optional<std::size_t> HeadTable::column(const std::string& name) const {
    const auto found = std::find(columns.begin(), columns.end(), name);
    if (found == columns.end()) return std::nullopt;
    return static_cast<std::size_t>(found - columns.begin());
}

const AddedColumn* HeadTable::find_added(const std::string& name) const {
    const auto found =
        std::find_if(added.begin(), added.end(), [&](const AddedColumn& one) { return one.name == name; });
    return found == added.end() ? nullptr : &*found;
}

ColumnWords HeadTable::words(const std::string& name) const {
    if (const AddedColumn* one = find_added(name)) return {one->title, one->unit, one->definition, one->path, false};
    const Measure* measure = find_measure(name);
    if (!measure) return {name, {}, {}, {}, false};
    return {std::string(measure->title), std::string(measure->unit), std::string(measure->definition),
            std::string(measure->source), measure->of_layer};
}

HeadTable read_head_table(const store::AnalysisFile& file, std::optional<std::int64_t> sequence) {
    const store::AnalysisHeader& header = file.header();
    const auto all = std::ssize(header.sequences);
    if (sequence && (*sequence < 0 || *sequence >= all)) {
        throw Error(ErrorCode::usage, "sequence", "expected 0 to " + std::to_string(all - 1),
                    "found " + std::to_string(*sequence));
    }
    HeadTable table;
    table.sequences = sequence ? 1 : all;
    const std::vector<Source> sources = read_sources(file);
    for (const Source& source : sources) table.columns.push_back(source.column);
    for (std::size_t n = 0; n < header.sites.size(); ++n) {
        const Site& site = header.sites[n];
        const auto number = static_cast<std::int64_t>(n);
        const std::int32_t group = std::max(1, site.heads / std::max(1, site.key_value_heads));
        for (std::int32_t head = 0; head < site.heads; ++head) {
            table.rows.push_back({number, site.layer, head, head / group, figures::site_label(file, number),
                                  site_heading(file.header().sites, number)});
            for (const Source& source : sources) {
                if (sequence) {
                    table.values.push_back(source.at(*sequence, number, head));
                    continue;
                }
                std::vector<double> values;
                for (std::int64_t s = 0; s < all; ++s) values.push_back(source.at(s, number, head));
                const auto [mean, deviation] = over(values);
                table.values.push_back(mean);
                table.deviation.push_back(deviation);
            }
        }
    }
    return table;
}

figures::Table plain_table(const HeadTable& table, const std::vector<std::size_t>& rows,
                           const std::vector<std::string>& columns) {
    figures::Table plain;
    const auto numbers = [&](const std::string& name, auto value) {
        std::vector<std::int64_t> cells;
        for (const std::size_t row : rows) cells.push_back(value(table.rows.at(row)));
        plain.columns.push_back({name, std::move(cells)});
    };
    numbers("layer", [](const HeadRow& row) { return std::int64_t{row.layer}; });
    std::vector<std::string> sites;
    for (const std::size_t row : rows) sites.push_back(table.rows.at(row).site_name);
    plain.columns.push_back({"site", std::move(sites)});
    numbers("head", [](const HeadRow& row) { return std::int64_t{row.head}; });
    numbers("key_value_head", [](const HeadRow& row) { return std::int64_t{row.key_value_head}; });
    for (const std::string& name : columns) {
        const std::size_t column = column_or_refuse(table, name);
        std::vector<double> values, deviations;
        for (const std::size_t row : rows) {
            values.push_back(table.value(row, column));
            if (!table.deviation.empty()) deviations.push_back(table.deviation[row * table.columns.size() + column]);
        }
        plain.columns.push_back({name, std::move(values)});
        if (!deviations.empty()) plain.columns.push_back({name + "_deviation", std::move(deviations)});
    }
    return plain;
}

std::string latex_table(const HeadTable& table, const std::vector<std::size_t>& rows,
                        const std::vector<std::string>& columns, int digits) {
    std::string text = "\\begin{tabular}{lr" + std::string(columns.size(), 'r') + "}\n\\toprule\nLayer & Head";
    std::vector<std::size_t> places;
    for (const std::string& name : columns) {
        places.push_back(column_or_refuse(table, name));
        const ColumnWords words = table.words(name);
        text += " & " + latex_text(words.title);
        if (!words.unit.empty()) text += " (" + latex_text(words.unit) + ")";
    }
    text += " \\\\\n\\midrule\n";
    for (const std::size_t row : rows) {
        text += latex_text(table.rows.at(row).site_name) + " & " + std::to_string(table.rows[row].head);
        for (const std::size_t column : places) {
            const double value = table.value(row, column);
            if (std::isnan(value)) {
                text += " & --";
                continue;
            }
            text += " & $" + latex_number(value, digits);
            if (!table.deviation.empty()) {
                const double deviation = table.deviation[row * table.columns.size() + column];
                if (!std::isnan(deviation)) text += " \\pm " + latex_number(deviation, 2);
            }
            text += "$";
        }
        text += " \\\\\n";
    }
    return text + "\\bottomrule\n\\end{tabular}\n";
}

std::vector<std::size_t> sorted_rows(const HeadTable& table, const std::string& column, bool descending) {
    const std::size_t by = column_or_refuse(table, column);
    std::vector<std::size_t> rows(table.rows.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
        const double left = table.value(a, by), right = table.value(b, by);
        if (std::isnan(left) || std::isnan(right)) return !std::isnan(left) && std::isnan(right);
        return descending ? left > right : left < right;
    });
    return rows;
}

}  // namespace headscope::workspace
