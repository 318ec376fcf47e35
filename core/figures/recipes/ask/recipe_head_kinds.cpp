// SPDX-License-Identifier: GPL-3.0-or-later
// Kinds of heads: a heat map of layers x heads for each, and all of their scores as a table.

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/figures/recipes/ask/ask_panels.h"

namespace headscope::figures {
namespace {

struct HeadKind {
    const char *name, *title;
};
constexpr HeadKind kShownKinds[] = {{"previous", "previous token"},
                                    {"duplicate", "duplicate token"},
                                    {"induction", "induction"},
                                    {"self", "the token itself"},
                                    {"retrieval", "retrieval"}};

/// Layers x heads of a table, over texts where it has them.
AskValues kind_cells(const store::AskRecord& record, const store::AskTable& table, const FigureOptions& options) {
    if (table.dimensions.front() == "/sequence") return ask_values(record, table, options);
    AskValues cells;
    cells.shape = record.shape_of(table);
    cells.values = table.values;
    return cells;
}

/// A row a head, a column a score.
Table kinds_table(const store::AskRecord& record, const FigureOptions& options) {
    std::vector<std::int64_t> sites, layers, heads;
    std::vector<Table::Column> scores;
    const std::int64_t most = record.size_of("/head");
    for (std::int64_t site = 0; site < std::ssize(record.sites); ++site)
        for (std::int64_t head = 0; head < record.sites[static_cast<std::size_t>(site)].heads; ++head) {
            sites.push_back(site);
            layers.push_back(record.sites[static_cast<std::size_t>(site)].layer);
            heads.push_back(head);
        }
    for (const store::AskTable& table : record.tables) {
        const std::size_t axes = table.dimensions.size();
        if (axes < 2 || table.dimensions[axes - 1] != "/head") continue;
        const AskValues cells = kind_cells(record, table, options);
        std::vector<double> column;
        for (std::size_t row = 0; row < sites.size(); ++row)
            column.push_back(cells.values.at(static_cast<std::size_t>(sites[row] * most + heads[row])));
        scores.push_back({table.path.substr(table.path.rfind('/') + 1), std::move(column)});
    }
    Table made{{{"site", std::move(sites)}, {"layer", std::move(layers)}, {"head", std::move(heads)}}};
    for (auto& column : scores) made.columns.push_back(std::move(column));
    return made;
}

FigureData head_kinds(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "head-kinds", "kinds");
    FigureData figure;
    figure.title = "Kinds of heads";
    for (const HeadKind& kind : kShownKinds) {
        const store::AskTable* table = record.find(std::string("/kinds/") + kind.name);
        if (!table) continue;
        const AskValues cells = kind_cells(record, *table, options);
        const bool copies = kind.name == std::string("retrieval");
        Panel panel = ask_panel(cells, copies ? "share of the needle" : "share of the attention", std::nan(""));
        std::get<HeatMap>(panel.content).colours.minimum = 0;
        panel.title = kind.title;
        set_site_axis(panel.y, record);
        set_layer_axis(panel.x, cells.shape.at(1), "Head");
        if (figure.panels.empty()) figure.notes = ask_notes(record, cells);
        figure.panels.push_back(std::move(panel));
    }
    if (figure.panels.empty())
        throw Error(ErrorCode::format, "figure head-kinds", "expected scores of heads", "found none");
    figure.columns = std::min<std::int64_t>(5, std::ssize(figure.panels));
    figure.reflow = true;
    figure.narrowest_mm = 34;
    figure.share_y = true;
    figure.notes.emplace_back(
        "Share of a head's attention on the previous token, earlier equal tokens, tokens behind "
        "earlier equal ones, and the token itself.");
    figure.table = [table = kinds_table(record, options)] { return table; };
    return figure;
}

}  // namespace

extern const Recipe kHeadKindsFigure{
    .name = "head-kinds",
    .description = "scores of previous-token, duplicate-token, induction, self and retrieval heads: layers x heads",
    .needs = "ask kinds",
    .of_others = head_kinds,
    .others = RecipeInputs::asks,
    .options = {"sequence"},
};

}  // namespace headscope::figures
