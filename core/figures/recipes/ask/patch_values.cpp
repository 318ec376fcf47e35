// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/recipes/ask/patch_values.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace headscope::figures {
namespace {

const std::string kPatched = "/patch/value/";

}  // namespace

std::vector<const store::AskTable*> patch_tables(const store::AskRecord& record, const std::string& site,
                                                 const std::string& rows) {
    std::vector<const store::AskTable*> found;
    std::string known;
    for (const store::AskTable& table : record.tables) {
        if (!table.path.starts_with(kPatched) || table.dimensions.at(1) != rows) continue;
        const std::string name = table.path.substr(kPatched.size());
        known += (known.empty() ? "" : ", ") + name;
        if (site.empty() || site == name) found.push_back(&table);
    }
    if (found.empty())
        throw Error(
            ErrorCode::usage, "--site",
            known.empty() ? "expected a file of ask patch with --sites of this figure" : "expected one of " + known,
            "found " + (site.empty() ? "none" : escaped(site)));
    return found;
}

PatchValues patch_values(const store::AskRecord& record, const store::AskTable& table, const FigureOptions& options) {
    const std::vector<double>& clean = record.table("/patch/clean").values;
    const std::vector<double>& corrupted = record.table("/patch/corrupted").values;
    store::AskTable shown = table;
    const std::size_t size = clean.empty() ? 0 : shown.values.size() / clean.size();
    for (std::size_t i = 0; options.normalized && i < shown.values.size(); ++i) {
        const std::size_t text = i / size;
        shown.values[i] = (shown.values[i] - corrupted[text]) / (clean[text] - corrupted[text]);
    }
    PatchValues found{ask_values(record, shown, options), 0};
    if (options.normalized) return found;
    if (found.cells.sequence >= 0) {
        found.centre = corrupted.at(static_cast<std::size_t>(found.cells.sequence));
    } else {
        for (const double value : corrupted) found.centre += value / static_cast<double>(corrupted.size());
    }
    if (std::isnan(found.centre)) found.centre = 0;
    return found;
}

std::string point_title(const store::AskTable& table) {
    std::string title = table.path.substr(kPatched.size());
    std::replace(title.begin(), title.end(), '_', ' ');
    return title;
}

AskValues mean_of_rest(const AskValues& cells) {
    AskValues found;
    found.sequence = cells.sequence;
    found.shape = {cells.shape[0], cells.shape[1]};
    std::size_t rest = 1;
    for (std::size_t i = 2; i < cells.shape.size(); ++i) rest *= static_cast<std::size_t>(cells.shape[i]);
    for (std::size_t first = 0; first < cells.values.size(); first += rest) {
        double sum = 0, count = 0;
        for (std::size_t i = first; i < first + rest; ++i) {
            if (std::isnan(cells.values[i])) continue;
            sum += cells.values[i];
            ++count;
        }
        found.values.push_back(count > 0 ? sum / count : std::nan(""));
    }
    return found;
}

std::string patch_note(const FigureOptions& options) {
    return options.normalized ? "0: as the corrupted run; 1: as the clean run."
                              : "Colors are centered on the corrupted run.";
}

}  // namespace headscope::figures
