// SPDX-License-Identifier: GPL-3.0-or-later
// Change of the metric when one head, attention or feed-forward is replaced.

#include "core/figures/recipes/ask/ask_panels.h"

namespace headscope::figures {
namespace {

FigureData ablation_heads(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "ablation-heads", "ablate");
    FigureData figure;
    figure.title = "Change of the metric without each head";
    const store::AskTable heads = ask_change(record, "/ablate/head", "/ablate/baseline");
    const AskValues cells = ask_values(record, heads, options);
    const std::string label = "change of " + metric_label(record);
    Panel panel = ask_panel(cells, label, 0);
    panel.title = "heads";
    set_site_axis(panel.y, record);
    set_layer_axis(panel.x, cells.shape[1], "Head");
    figure.panels.push_back(std::move(panel));
    for (const auto& [path, title] :
         {std::pair("/ablate/attention", "attention"), std::pair("/ablate/feed_forward", "feed-forward")}) {
        const store::AskTable change = ask_change(record, path, "/ablate/baseline");
        const AskValues layers = ask_values(record, change, options);
        const bool by_site = change.dimensions.at(1) == "/site";  // of a decoder with two attentions a layer
        Curve curve;
        curve.name = title;
        for (std::size_t i = 0; i < layers.values.size(); ++i) {
            const auto row = static_cast<std::int64_t>(i);
            curve.x.push_back(static_cast<double>(i));
            curve.y.push_back(layers.values[i]);
            curve.cells.push_back(by_site ? of_site(row) : of_layer(record, row));
        }
        curve.points = true;
        Panel side;
        side.title = title;
        side.content = Curves{{std::move(curve)}, {}};
        set_layer_range(side.x, std::ssize(layers.values));
        if (by_site) {
            side.x.ticks.clear();
            set_site_axis(side.x, record);
        }
        side.y.label = label;
        figure.panels.push_back(std::move(side));
    }
    figure.columns = 3;
    figure.reflow = true;
    figure.narrowest_mm = 40;
    figure.notes = ask_notes(record, cells);
    figure.table = [table = ask_table(record, heads)] { return table; };
    return figure;
}

}  // namespace

extern const Recipe kAblationHeads{
    .name = "ablation-heads",
    .description = "change of the metric with one head, attention or feed-forward replaced",
    .needs = "ask ablate",
    .of_others = ablation_heads,
    .others = RecipeInputs::asks,
    .options = {"sequence"},
};

}  // namespace headscope::figures
