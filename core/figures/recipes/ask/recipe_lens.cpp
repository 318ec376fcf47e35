// SPDX-License-Identifier: GPL-3.0-or-later
// Logit lens: boundaries between blocks x positions, the last boundary on top; a table of the likeliest tokens where
// the text is short.

#include <algorithm>
#include <cmath>

#include "core/figures/recipes/ask/ask_panels.h"
#include "core/figures/token_text.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kMostTokens = 12;  // columns of a table that a page takes

struct Shown {
    const char *name, *path, *label;
};
constexpr Shown kShown[] = {{"probability", "/lens/log_probability", "probability of the target"},
                            {"rank", "/lens/rank", "rank of the target"},
                            {"kl", "/lens/kl", "KL divergence from the output, nat"},
                            {"token", "/lens/top_probability", "probability of the likeliest token"}};

/// The likeliest token of each cell.
TextTable likeliest(const store::AskRecord& record, std::int64_t sequence) {
    const store::SequenceTokens& text = record.sequences.at(static_cast<std::size_t>(sequence)).predicted();
    const store::AskTable& ids = record.table("/lens/top_id");
    const std::vector<std::int64_t> shape = record.shape_of(ids);
    TextTable table{{"boundary"}, {}};
    for (const std::string& piece : text.pieces) table.header.push_back(visible_token(piece));
    table.words = table.header.size();
    for (std::int64_t b = shape[1]; b-- > 0;) {
        std::vector<std::string> row{std::to_string(b)};
        for (std::int64_t p = 0; p < std::ssize(text.ids); ++p) {
            const std::int64_t cell = ((sequence * shape[1] + b) * shape[2] + p) * shape[3];
            const double id = ids.values[static_cast<std::size_t>(cell)];
            row.push_back(id < 0 || std::isnan(id) ? "" : ask_word(record, id));
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

/// By the lens that the file was made with.
const char* title_of(const store::AskRecord& record) {
    const std::string kind = ask_setting(record, "kind", "logit");
    return kind == "tuned" ? "Tuned lens" : kind == "jacobian" ? "Jacobian lens" : "Logit lens";
}

FigureData lens(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "lens", "lens");
    const Shown& shown =
        *std::find_if(std::begin(kShown), std::end(kShown), [&](const Shown& one) { return options.show == one.name; });
    store::AskTable table = record.table(shown.path);
    AskValues cells = ask_values(record, table, options);
    if (cells.shape.size() > 2) {  // the first of the likeliest
        std::vector<double> first;
        for (std::size_t i = 0; i < cells.values.size(); i += static_cast<std::size_t>(cells.shape[2]))
            first.push_back(cells.values[i]);
        cells.values = std::move(first);
        cells.shape.pop_back();
    }
    const bool logarithm = options.show == std::string("probability");
    for (double& value : cells.values) {
        if (logarithm) value = std::exp(value);
        if (options.show == std::string("rank") && value < 0) value = std::nan("");
    }
    const std::int64_t columns = cells.shape[1];
    for (std::int64_t low = 0, high = cells.shape[0] - 1; low < high; ++low, --high)
        std::swap_ranges(cells.values.begin() + low * columns, cells.values.begin() + (low + 1) * columns,
                         cells.values.begin() + high * columns);
    Panel panel = ask_panel(cells, shown.label, std::nan(""));
    const store::SequenceTokens& text = record.sequences.at(static_cast<std::size_t>(cells.sequence)).predicted();
    set_token_axis(panel.x, text);
    panel.y.label = "Boundary";
    for (std::int64_t row = 0; row < cells.shape[0]; ++row)
        panel.y.ticks.push_back({static_cast<double>(row), std::to_string(cells.shape[0] - 1 - row)});
    FigureData figure;
    figure.title = title_of(record);
    figure.panels.push_back(std::move(panel));
    figure.panel_aspect = 0.6;
    figure.notes = ask_notes(record, cells);
    figure.notes.emplace_back("Boundary b: the input of block b; the last one is the output.");
    if (std::ssize(text.ids) <= kMostTokens) figure.text_table = likeliest(record, cells.sequence);
    figure.table = [made = ask_table(record, table)] { return made; };
    return figure;
}

}  // namespace

extern const Recipe kLens{
    .name = "lens",
    .description = "logit lens: probability, rank, divergence or likeliest token by boundary and position",
    .needs = "ask lens",
    .of_others = lens,
    .others = RecipeInputs::asks,
    .options = {"sequence", "show"},
};

}  // namespace headscope::figures
