// SPDX-License-Identifier: GPL-3.0-or-later
// Activation patching by layer and position: a panel per point that ask patch swept.

#include <cmath>

#include "core/base/error.h"
#include "core/figures/recipes/ask/ask_panels.h"
#include "core/figures/recipes/ask/patch_values.h"

namespace headscope::figures {
namespace {

FigureData patch_layers(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "patch-layers", "patch");
    FigureData figure;
    figure.title = options.normalized ? "Patched, as a share of the clean run's effect" : "Metric of the patched runs";
    const store::AskTable* first = nullptr;
    for (const store::AskTable* table : patch_tables(record, options.site, "/layer")) {
        const PatchValues patched = patch_values(record, *table, options);
        Panel panel = ask_panel(patched.cells, options.normalized ? "share" : metric_label(record), patched.centre);
        panel.title = point_title(*table);
        set_token_axis(panel.x, record, patched.cells.sequence);
        set_layer_axis(panel.y, patched.cells.shape[0]);
        set_layer_subjects(panel.y, record);
        if (!first) figure.notes = ask_notes(record, patched.cells);
        if (!first) first = table;
        figure.panels.push_back(std::move(panel));
    }
    figure.notes.push_back(patch_note(options));
    figure.columns = std::min<std::int64_t>(3, std::ssize(figure.panels));
    figure.reflow = true;
    figure.narrowest_mm = 40;
    figure.panel_aspect = 0.6;
    figure.share_y = true;
    figure.table = [table = ask_table(record, *first)] { return table; };
    return figure;
}

}  // namespace

extern const Recipe kPatchLayers{
    .name = "patch-layers",
    .description = "activation patching of the residual stream, attention and feed-forward: layers x positions",
    .needs = "ask patch with --sites such as hidden,attention_output",
    .of_others = patch_layers,
    .others = RecipeInputs::asks,
    .options = {"sequence", "site", "normalize"},
};

}  // namespace headscope::figures
