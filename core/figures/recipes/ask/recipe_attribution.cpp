// SPDX-License-Identifier: GPL-3.0-or-later
// Direct logit attribution: terms of heads as a heat map, of embeddings, attentions, feed-forwards and biases as dots.

#include <cmath>

#include "core/figures/recipes/ask/ask_panels.h"

namespace headscope::figures {
namespace {

FigureData attribution(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "attribution", "attribution");
    FigureData figure;
    figure.title = "Terms of the logit";
    const store::AskTable& heads = record.table("/attribution/head");
    const AskValues cells = ask_values(record, heads, options);
    Panel panel = ask_panel(cells, "logit", 0);
    panel.title = "heads";
    set_site_axis(panel.y, record);
    set_layer_axis(panel.x, cells.shape[1], "Head");
    figure.panels.push_back(std::move(panel));

    Panel layers;
    layers.title = "layers";
    layers.y.label = "logit";
    Curves curves;
    for (const auto& [path, name, colour] : {std::tuple("/attribution/attention", "attention", 0),
                                             std::tuple("/attribution/feed_forward", "feed-forward", 1)}) {
        const AskValues terms = ask_values(record, record.table(path), options);
        if (layers.x.ticks.empty()) set_layer_range(layers.x, std::ssize(terms.values));
        Curve curve;
        curve.name = name;
        curve.colour = colour;
        curve.points = true;
        for (std::size_t layer = 0; layer < terms.values.size(); ++layer) {
            if (std::isnan(terms.values[layer])) continue;
            curve.x.push_back(static_cast<double>(layer));
            curve.y.push_back(terms.values[layer]);
            curve.cells.push_back(of_layer(record, static_cast<std::int64_t>(layer)));
        }
        figure.legend.push_back({name, colour});
        curves.curves.push_back(std::move(curve));
    }
    layers.content = std::move(curves);
    figure.panels.push_back(std::move(layers));
    figure.columns = 2;
    figure.reflow = true;
    figure.narrowest_mm = 50;
    figure.notes = ask_notes(record, cells);
    TextTable terms{{"term", "logit"}, {}};
    for (const char* name :
         {"embedding", "position_embedding", "final_norm_bias", "unembedding_bias", "total", "logit"})
        terms.rows.push_back(
            {name, short_number(
                       ask_values(record, record.table(std::string("/attribution/") + name), options).values.at(0))});
    figure.text_table = std::move(terms);
    figure.table = [table = ask_table(record, heads)] { return table; };
    return figure;
}

}  // namespace

extern const Recipe kAttribution{
    .name = "attribution",
    .description = "terms of a logit or a difference of logits by head, attention, feed-forward, embedding and bias",
    .needs = "ask attribution",
    .of_others = attribution,
    .others = RecipeInputs::asks,
    .options = {"sequence"},
};

}  // namespace headscope::figures
