// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/asked_columns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/figures/recipes/ask/ask_panels.h"
#include "core/store/analysis/analysis_header.h"
#include "core/store/ask/ask_file.h"
#include "core/workspace/measures.h"

namespace headscope::workspace {
namespace {

/// End of the names of the columns of a tool's later files.
std::string name_end(int number) {
    return number > 1 ? "_" + std::to_string(number) : std::string();
}

/// One table of heads, and what its column is called.
struct AskedScores {
    store::AskTable table;
    AddedColumn column;
    const store::AskTable* spread = nullptr;  ///< [n, H] deviations over texts; null: the table has the texts
};

/// Values of a column by row of the table of heads.
struct AskedValues {
    std::vector<double> mean, deviation;
};

/// [S, n, H] or [n, H], of the file's own texts, sites and heads.
bool is_of_heads(const store::AskRecord& record, const store::AskTable& table) {
    static const std::vector<std::string> by_text{"/sequence", "/site", "/head"}, all{"/site", "/head"};
    if (table.dimensions != by_text && table.dimensions != all) return false;
    const std::int64_t sites = record.size_of("/site"), heads = record.size_of("/head");
    const std::int64_t texts = table.dimensions == all ? 1 : record.size_of("/sequence");
    return sites == std::ssize(record.sites) && std::ssize(table.values) == texts * sites * heads &&
           std::all_of(record.sites.begin(), record.sites.end(), [&](const Site& one) { return one.heads <= heads; });
}

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

std::string upper_first(std::string words) {
    if (!words.empty() && words.front() >= 'a' && words.front() <= 'z')
        words.front() = static_cast<char>(words.front() - 'a' + 'A');
    return words;
}

/// "Share of the attention where a self head attends; mean over the 4 texts of the file".
std::string definition_of(const store::AskRecord& record, const store::AskTable& table, const std::string& about) {
    std::string words = upper_first(about);
    const auto texts = record.sequences.size();
    if (table.dimensions.front() == "/sequence" && texts > 1)
        words += "; mean over the " + std::to_string(texts) + " texts of the file";
    return record.complete ? words : words + "; the file is incomplete";
}

std::vector<AskedScores> scores_of_kinds(const store::AskRecord& record) {
    constexpr std::string_view absolute = "_absolute";
    std::vector<AskedScores> found;
    for (const store::AskTable& table : record.tables) {
        if (!is_of_heads(record, table)) continue;
        const std::string name = table.path.substr(table.path.rfind('/') + 1);
        const bool second = name.size() > absolute.size() && name.ends_with(absolute);
        AddedColumn column;
        column.name = "kind_" + name;
        column.title = upper_first(second ? name.substr(0, name.size() - absolute.size()) + ", absolute" : name);
        column.definition = definition_of(record, table, table.long_name);
        column.recipe = "head-kinds";
        column.minor = second;
        found.push_back({table, std::move(column)});
    }
    return found;
}

std::vector<AskedScores> scores_of_ablation(const store::AskRecord& record) {
    std::vector<AskedScores> found;
    const auto add = [&](store::AskTable table, const char* name, const std::string& title, const std::string& about,
                         bool minor) {
        if (!is_of_heads(record, table)) return;
        AddedColumn column;
        column.name = std::string("ablate_") + name;
        column.title = title;
        column.definition = definition_of(record, table, about);
        column.recipe = "ablation-heads";
        column.minor = minor;
        found.push_back({std::move(table), std::move(column)});
    };
    if (record.find("/ablate/head") && record.find("/ablate/baseline")) {
        const std::string label = figures::metric_label(record), metric = label.substr(0, label.find(','));
        const std::string how = figures::ask_setting(record, "how", "zero");
        const std::string other = how == "zero"        ? "zero"
                                  : how == "mean"      ? "its mean"
                                  : how == "reference" ? "the mean of reference texts"
                                                       : "that of a reference text";
        add(figures::ask_change(record, "/ablate/head", "/ablate/baseline"), "change", upper_first(metric) + " change",
            "change of " + metric + " with the head's output replaced by " + other, false);
        if (!found.empty() && label != metric) found.back().column.unit = label.substr(metric.size() + 2);
    }
    for (const auto& [name, title, minor] : {std::tuple("importance", "Importance", false),
                                             std::tuple("importance_normalized", "Normalized importance", true)})
        if (const store::AskTable* table = record.find(std::string("/ablate/") + name))
            add(*table, name, title, table->long_name, minor);
    return found;
}

/// "QK distance" of qk_distance.
std::string corpus_title(std::string name) {
    std::replace(name.begin(), name.end(), '_', ' ');
    return name.starts_with("qk ") ? "QK" + name.substr(2) : upper_first(std::move(name));
}

/// Measures over all texts, and the means of indicators over texts, which have deviations.
std::vector<AskedScores> scores_of_corpus(const store::AskRecord& record) {
    const std::string corpus = "/corpus/", mean = "mean/";
    std::vector<AskedScores> found;
    for (const store::AskTable& table : record.tables) {
        if (!figures::is_corpus_measure(table) || !is_of_heads(record, table)) continue;
        const std::string path = table.path.substr(corpus.size());
        const bool indicator = path.starts_with(mean);
        const std::string name = indicator ? path.substr(mean.size()) : path;
        if (name.find('/') != std::string::npos) continue;
        AddedColumn column;
        column.name = std::string("corpus_") + (indicator ? "mean_" : "") + name;
        const Measure* known = indicator ? find_measure(name) : nullptr;
        column.title = known ? std::string(known->title) : corpus_title(name);
        if (indicator) column.title += ", mean";
        column.unit = table.units;
        column.definition = definition_of(record, table, table.long_name);
        column.recipe = "corpus-scatter";
        column.minor = indicator;
        const store::AskTable* spread = indicator ? record.find(corpus + "std/" + name) : nullptr;
        if (spread && !is_of_heads(record, *spread)) spread = nullptr;
        found.push_back({table, std::move(column), spread});
    }
    return found;
}

/// A tool whose files add columns.
struct AskedTool {
    std::string_view name;
    const char* main_column;
    std::vector<AskedScores> (*scores)(const store::AskRecord&);
};
constexpr std::array kAskedTools{AskedTool{"kinds", "kind_induction", scores_of_kinds},
                                 AskedTool{"ablate", "ablate_change", scores_of_ablation},
                                 AskedTool{"corpus", "corpus_induction_score", scores_of_corpus}};

const AskedTool* find_asked_tool(std::string_view name) {
    const auto found =
        std::find_if(kAskedTools.begin(), kAskedTools.end(), [&](const AskedTool& one) { return one.name == name; });
    return found == kAskedTools.end() ? nullptr : &*found;
}

const AskedTool& asked_tool(std::string_view name) {
    if (const AskedTool* tool = find_asked_tool(name)) return *tool;
    throw Error(ErrorCode::usage, "table", "expected a file of headscope ask kinds, ask ablate or ask corpus",
                "found one of ask " + escaped(std::string(name)));
}

/// The file has that row's head, in the same layer.
bool has_row(const store::AskRecord& record, const HeadRow& row) {
    if (row.site < 0 || row.site >= std::ssize(record.sites)) return false;
    const Site& site = record.sites[static_cast<std::size_t>(row.site)];
    return site.layer == row.layer && row.head < site.heads;
}

std::vector<double> widened(const HeadTable& table, const std::vector<double>& values,
                            const std::vector<AskedValues>& added, std::vector<double> AskedValues::*member) {
    const std::size_t before = table.columns.size();
    std::vector<double> wide;
    wide.reserve(table.rows.size() * (before + added.size()));
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * before);
        wide.insert(wide.end(), begin, begin + static_cast<std::ptrdiff_t>(before));
        for (const AskedValues& column : added) wide.push_back((column.*member)[row]);
    }
    return wide;
}

}  // namespace

bool has_asked_columns(std::string_view tool) {
    return find_asked_tool(tool) != nullptr;
}

bool of_same_model(const store::AnalysisHeader& header, const store::AskRecord& record) {
    const bool known = !header.model_sha256.empty() && !record.model_sha256.empty();
    if (known ? header.model_sha256 != record.model_sha256
              : header.model_name.empty() || header.model_name != record.model_name)
        return false;
    const auto same = [](const Site& a, const Site& b) {
        return a.layer == b.layer && a.stack == b.stack && a.kind == b.kind && a.branch == b.branch &&
               a.heads == b.heads;
    };
    return std::equal(header.sites.begin(), header.sites.end(), record.sites.begin(), record.sites.end(), same);
}

std::string main_asked_column(const store::AskRecord& record, int number) {
    return asked_tool(record.tool).main_column + name_end(number);
}

void add_asked_columns(HeadTable& table, const store::AskRecord& record, const std::string& path, int number) {
    const AskedTool& tool = asked_tool(record.tool);
    for (const HeadRow& row : table.rows)
        if (!has_row(record, row))
            throw Error(ErrorCode::mismatch, "table", "expected a file of the same model",
                        "found no head " + std::to_string(row.head) + " at site " + std::to_string(row.site));
    std::vector<AskedScores> found = tool.scores(record);
    std::vector<AskedValues> added;
    for (const AskedScores& scores : found) {
        AskedValues& column = added.emplace_back();
        for (const HeadRow& row : table.rows) {
            const auto [mean, deviation] = over_texts(record, scores.table, row);
            column.mean.push_back(mean);
            column.deviation.push_back(scores.spread ? over_texts(record, *scores.spread, row).first : deviation);
        }
    }
    table.values = widened(table, table.values, added, &AskedValues::mean);
    if (!table.deviation.empty()) table.deviation = widened(table, table.deviation, added, &AskedValues::deviation);
    const std::string which = number > 1 ? " #" + std::to_string(number) : std::string();
    for (AskedScores& scores : found) {
        AddedColumn& column = scores.column;
        column.name += name_end(number);
        column.title += " (" + record.tool + which + ")";
        column.path = path;
        table.columns.push_back(column.name);
        table.added.push_back(std::move(column));
    }
}

}  // namespace headscope::workspace
