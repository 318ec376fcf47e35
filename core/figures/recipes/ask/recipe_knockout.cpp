// SPDX-License-Identifier: GPL-3.0-or-later
// Change of the metric when attention between positions is forbidden: by window of layers, and in all layers.

#include <nlohmann/json.hpp>

#include "core/figures/recipes/ask/ask_panels.h"

namespace headscope::figures {
namespace {

std::string knockout_note(const store::AskRecord& record) {
    const nlohmann::json settings = nlohmann::json::parse(record.settings_json, nullptr, false);
    const auto text = [&](const char* key) {
        const bool has = settings.is_object() && settings.contains(key) && settings[key].is_string();
        return has ? settings[key].get<std::string>() : std::string();
    };
    const std::string heads = text("heads");
    return "Queries " + text("queries") + " do not attend to keys " + text("keys") +
           (heads.empty() ? "." : " in heads " + heads + ".");
}

/// Changes of each text in all layers, as dots.
Panel knockout_by_text(const store::AskRecord& record, const store::AskTable& changes, const std::string& label) {
    Curve curve;
    curve.points = true;
    Panel panel;
    for (std::size_t s = 0; s < changes.values.size(); ++s) {
        curve.x.push_back(static_cast<double>(s));
        curve.y.push_back(changes.values[s]);
    }
    panel.title = "all layers";
    set_layer_range(panel.x, std::ssize(record.sequences));
    panel.x.label = "Text";
    panel.y.label = label;
    panel.content = Curves{{std::move(curve)}, {}};
    panel.markers.push_back({false, 0, "no change"});
    return panel;
}

FigureData knockout(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "knockout", "knockout");
    const std::string label = "change of " + metric_label(record);
    FigureData figure;
    figure.title = "Change of the metric without the attention";
    const store::AskTable all = ask_change(record, "/knockout/value", "/knockout/baseline");
    const AskValues whole = ask_values(record, all, options);
    if (record.find("/knockout/by_layer")) {
        const store::AskTable layers = ask_change(record, "/knockout/by_layer", "/knockout/baseline");
        const AskValues changes = ask_values(record, layers, options);
        Curve curve;
        for (std::size_t layer = 0; layer < changes.values.size(); ++layer) {
            curve.x.push_back(static_cast<double>(layer));
            curve.y.push_back(changes.values[layer]);
        }
        Panel panel;
        panel.title = "windows of layers";
        set_layer_range(panel.x, std::ssize(changes.values));
        panel.x.label = "Layer in the middle of the window";
        panel.y.label = label;
        panel.content = Curves{{std::move(curve)}, {}};
        panel.markers.push_back({false, whole.values.at(0), "all layers"});
        figure.panels.push_back(std::move(panel));
        figure.table = [table = ask_table(record, layers)] { return table; };
    } else {
        figure.table = [table = ask_table(record, all)] { return table; };
    }
    if (figure.panels.empty() || record.sequences.size() > 1)
        figure.panels.push_back(knockout_by_text(record, all, label));
    figure.columns = std::ssize(figure.panels);
    figure.reflow = true;
    figure.narrowest_mm = 50;
    figure.panel_aspect = 0.7;
    figure.notes = ask_notes(record, whole);
    figure.notes.push_back(knockout_note(record));
    return figure;
}

}  // namespace

extern const Recipe kKnockout{
    .name = "knockout",
    .description = "change of the metric with attention between positions forbidden, by window of layers and by text",
    .needs = "ask knockout",
    .of_others = knockout,
    .others = RecipeInputs::asks,
    .options = {"sequence"},
};

}  // namespace headscope::figures
