// SPDX-License-Identifier: GPL-3.0-or-later
// Activation patching by head: a panel per point that ask patch swept. Of tables by position, the mean over positions.

#include <cmath>

#include "core/figures/recipes/ask/ask_panels.h"
#include "core/figures/recipes/ask/patch_values.h"

namespace headscope::figures {
namespace {

FigureData patch_heads(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "patch-heads", "patch");
    FigureData figure;
    figure.title =
        options.normalized ? "Heads patched, as a share of the clean run's effect" : "Metric with heads patched";
    const store::AskTable* first = nullptr;
    for (const store::AskTable* table : patch_tables(record, options.site, "/site")) {
        PatchValues patched = patch_values(record, *table, options);
        const bool by_head = table->dimensions.size() > 2 && table->dimensions[2] != "/token";
        AskValues& cells = patched.cells;
        if (cells.shape.size() > 2) cells = mean_of_rest(cells);
        Panel panel = ask_panel(cells, options.normalized ? "share" : metric_label(record), patched.centre);
        panel.title = point_title(*table);
        set_site_axis(panel.y, record);
        if (by_head)
            set_layer_axis(panel.x, cells.shape[1], "Head");
        else
            set_token_axis(panel.x, record, cells.sequence);
        if (!first) figure.notes = ask_notes(record, cells);
        if (!first) first = table;
        figure.panels.push_back(std::move(panel));
    }
    figure.notes.push_back(patch_note(options));
    figure.columns = std::min<std::int64_t>(4, std::ssize(figure.panels));
    figure.reflow = true;
    figure.narrowest_mm = 34;
    figure.share_y = true;
    figure.table = [table = ask_table(record, *first)] { return table; };
    return figure;
}

}  // namespace

extern const Recipe kPatchHeads{
    .name = "patch-heads",
    .description = "activation patching of heads' outputs, patterns, queries, keys and values: layers x heads",
    .needs = "ask patch with --sites such as head_output,pattern",
    .of_others = patch_heads,
    .others = RecipeInputs::asks,
    .options = {"sequence", "site", "normalize"},
};

}  // namespace headscope::figures
