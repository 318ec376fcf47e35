// SPDX-License-Identifier: GPL-3.0-or-later
// Steering: change of the metric by layer and factor, and the length of each layer's vector.

#include <cmath>

#include "core/figures/recipes/ask/ask_panels.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kMostCurves = 8;  // layers as curves against the factor; more are a heat map

Curve vector_lengths(const store::AskRecord& record) {
    const store::AskTable& vectors = record.table("/steer/vector");
    const std::vector<std::int64_t> shape = record.shape_of(vectors);
    Curve curve;
    for (std::int64_t layer = 0; layer < shape[0]; ++layer) {
        double sum = 0;
        for (std::int64_t i = 0; i < shape[1]; ++i)
            sum += std::pow(vectors.values[static_cast<std::size_t>(layer * shape[1] + i)], 2);
        if (std::isnan(sum)) continue;
        curve.x.push_back(static_cast<double>(layer));
        curve.y.push_back(std::sqrt(sum));
    }
    return curve;
}

Panel map_of_factors(const AskValues& changes, const std::vector<double>& factors, const std::string& label) {
    Panel panel = ask_panel(changes, label, 0);
    set_layer_axis(panel.y, changes.shape[0]);
    panel.x.label = "Factor";
    for (std::size_t f = 0; f < factors.size(); ++f)
        panel.x.ticks.push_back({static_cast<double>(f), short_number(factors[f])});
    return panel;
}

Panel curves_of_layers(const AskValues& changes, const std::vector<double>& factors, const std::string& label) {
    Curves curves;
    for (std::int64_t layer = 0; layer < changes.shape[0]; ++layer) {
        Curve curve;
        curve.name = "layer " + std::to_string(layer);
        curve.shade = changes.shape[0] > 1 ? static_cast<double>(layer) / static_cast<double>(changes.shape[0] - 1) : 0;
        for (std::size_t f = 0; f < factors.size(); ++f) {
            const double value = changes.values[static_cast<std::size_t>(layer) * factors.size() + f];
            if (std::isnan(value)) continue;
            curve.x.push_back(factors[f]);
            curve.y.push_back(value);
        }
        if (!curve.x.empty()) curves.curves.push_back(std::move(curve));
    }
    Panel panel;
    panel.content = std::move(curves);
    panel.x.label = "Factor";
    panel.y.label = label;
    panel.markers.push_back({false, 0, "not steered"});
    return panel;
}

FigureData steering(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "steering", "steer");
    const store::AskTable changes = ask_change(record, "/steer/value", "/steer/baseline");
    const AskValues cells = ask_values(record, changes, options);
    const std::vector<double>& factors = record.table("/steer/factor").values;
    const std::string label = "change of " + metric_label(record);
    FigureData figure;
    figure.title = "Change of the metric when a layer is steered";
    figure.panels.push_back(map_of_factors(cells, factors, label));
    set_layer_subjects(figure.panels.back().y, record);
    if (cells.shape[0] <= kMostCurves && factors.size() > 1) {
        figure.panels.push_back(curves_of_layers(cells, factors, label));
        for (const Curve& curve : std::get<Curves>(figure.panels.back().content).curves)
            figure.legend.push_back({curve.name, 0, curve.shade});
    }
    Panel lengths;
    lengths.content = Curves{{vector_lengths(record)}, {}};
    set_layer_range(lengths.x, record.size_of("/layer"));
    lengths.y.label = "L2 norm of the vector";
    figure.panels.push_back(std::move(lengths));
    figure.columns = std::ssize(figure.panels);
    figure.reflow = true;
    figure.narrowest_mm = 45;
    figure.notes = ask_notes(record, cells);
    figure.notes.emplace_back("Factor times the layer's vector is added to its output at all positions.");
    figure.table = [table = ask_table(record, changes)] { return table; };
    return figure;
}

}  // namespace

extern const Recipe kSteering{
    .name = "steering",
    .description = "change of the metric with a vector added to a layer's output, by layer and factor",
    .needs = "ask steer",
    .of_others = steering,
    .others = RecipeInputs::asks,
    .options = {"sequence"},
};

}  // namespace headscope::figures
