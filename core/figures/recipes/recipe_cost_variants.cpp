// SPDX-License-Identifier: GPL-3.0-or-later
// Weights of the variants of multi-head attention without their output projections (the thesis): of a sublayer against
// its heads (Fig. 3.1, 3.3), of stacks (Fig. 3.4). The models that the figure is made of are marked by their heads.

#include <algorithm>
#include <array>
#include <map>

#include "core/cost/cost_table.h"
#include "core/cost/thesis.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kHeadSize = 64;
constexpr std::array<std::int64_t, 8> kHeads{1, 2, 4, 8, 16, 32, 64, 128};
constexpr std::array<std::int64_t, 2> kHeadsOfStacks{32, 64};
constexpr std::array<std::int64_t, 3> kStacks{12, 24, 48};

struct Count {
    std::int64_t heads, layers;
    std::string variant;  ///< as files call it
    double weights;
};

double weights_of(const cost::HeadVariant& variant, std::int64_t heads, std::int64_t layers) {
    return cost::variant_parameters(variant, heads, kHeadSize, layers, false);
}

Table table_of(const std::vector<Count>& counts) {
    std::vector<std::string> variant;
    std::vector<std::int64_t> heads, layers;
    std::vector<double> weights;
    for (const Count& count : counts) {
        variant.push_back(count.variant);
        heads.push_back(count.heads);
        layers.push_back(count.layers);
        weights.push_back(count.weights);
    }
    return {{{"mixer", std::move(variant)},
             {"heads", std::move(heads)},
             {"layers", std::move(layers)},
             {"parameters", std::move(weights)}}};
}

/// A line a variant through its counts, against heads or layers.
Panel panel_of(const std::vector<Count>& counts, bool by_layers) {
    const auto& variants = cost::head_variants();
    Panel panel;
    Curves curves;
    for (std::size_t i = 0; i < variants.size(); ++i) {
        Curve line, dots;
        for (const Count& count : counts) {
            if (count.variant != variants[i].name) continue;
            line.x.push_back(static_cast<double>(by_layers ? count.layers : count.heads));
            line.y.push_back(count.weights);
        }
        line.name = variants[i].label;
        colour_member(line, i, variants.size());
        // MHE-ADD and MHE-MUL have as many, and SHA almost: later lines are narrower, so that all are seen.
        line.width = 2.4 - 1.6 * static_cast<double>(i) / static_cast<double>(variants.size() - 1);
        dots = line;
        dots.points = true;
        dots.dot = 0.7;
        curves.curves.push_back(std::move(line));
        curves.curves.push_back(std::move(dots));
    }
    panel.content = std::move(curves);
    panel.x.label = by_layers ? "layers" : "heads";
    panel.y.label = "weights without output projection";
    panel.x.scale = panel.y.scale = ScaleKind::logarithmic;
    return panel;
}

/// One axis of weights for all panels, for only the left one's has numbers.
void share_weights(std::vector<Panel>& panels, const std::vector<Count>& counts) {
    std::vector<double> weights;
    for (const Count& count : counts) weights.push_back(count.weights);
    const auto range = padded_range(weights, ScaleKind::logarithmic);
    for (Panel& panel : panels) {
        panel.y.range = range;
        for (double power = 1e3; power <= 1e12; power *= 10)
            if (power >= range.first && power <= range.second) panel.y.ticks.push_back({power, short_count(power)});
    }
}

/// The counts as text: a column a variant, whose names are short, a row for each number of heads or layers.
TextTable text_of(const std::vector<Count>& counts, bool by_layers) {
    TextTable text;
    text.header = {"weights"};
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::string>> rows;
    for (const auto& variant : cost::head_variants()) text.header.push_back(variant.label);
    for (const Count& count : counts) {
        auto& row = rows[{count.heads, count.layers}];
        if (row.empty())
            row.push_back((by_layers ? std::to_string(count.layers) + " layers, " : std::string()) +
                          std::to_string(count.heads) + (count.heads == 1 ? " head" : " heads"));
        row.push_back(short_count(count.weights));
    }
    for (auto& [place, row] : rows) text.rows.push_back(std::move(row));
    return text;
}

/// The models by their heads.
void mark_models(Panel& panel, const std::vector<CostModel>& models) {
    std::map<std::int64_t, std::string> names;
    for (const CostModel& model : models) {
        const std::int64_t heads = model.table->setting.heads;
        if (heads < kHeads.front() || heads > kHeads.back()) continue;
        std::string& name = names[heads];
        name += (name.empty() ? "" : ", ") + model.name;
    }
    for (const auto& [heads, name] : names) panel.markers.push_back({true, static_cast<double>(heads), name});
}

}  // namespace

FigureData variant_costs(const FigureInputs& inputs, const FigureOptions& options) {
    const bool stacks = options.cost_of == CostOf::stacks;
    FigureData figure;
    std::vector<Count> all;
    const auto add_panel = [&](const std::string& title, const std::vector<Count>& counts, const auto& places) {
        Panel panel = panel_of(counts, stacks);
        panel.title = title;
        for (const auto place : places) panel.x.ticks.push_back({static_cast<double>(place), std::to_string(place)});
        panel.x.range =
            std::pair(static_cast<double>(places.front()) / 1.15, static_cast<double>(places.back()) * 1.15);
        figure.panels.push_back(std::move(panel));
        all.insert(all.end(), counts.begin(), counts.end());
    };
    if (stacks) {
        figure.title = "Weights of attention in a stack";
        for (const std::int64_t heads : kHeadsOfStacks) {
            std::vector<Count> counts;
            for (const auto& variant : cost::head_variants())
                for (const std::int64_t layers : kStacks)
                    counts.push_back({heads, layers, variant.name, weights_of(variant, heads, layers)});
            add_panel(std::to_string(heads) + " heads", counts, kStacks);
        }
    } else {
        figure.title = "Weights of an attention sublayer";
        std::vector<Count> counts;
        for (const auto& variant : cost::head_variants())
            for (const std::int64_t heads : kHeads)
                counts.push_back({heads, 1, variant.name, weights_of(variant, heads, 1)});
        add_panel("", counts, kHeads);
        mark_models(figure.panels.front(), inputs.models);
    }
    share_weights(figure.panels, all);
    figure.columns = std::ssize(figure.panels);
    figure.reflow = true;
    figure.share_y = true;
    figure.narrowest_mm = 40;
    figure.widest_mm = 110;
    figure.panel_aspect = 0.75;
    for (std::size_t i = 0; i < cost::head_variants().size(); ++i) {
        Curve curve;
        colour_member(curve, i, cost::head_variants().size());
        figure.legend.push_back({cost::head_variants()[i].label, curve.colour, curve.shade});
    }
    figure.text_table = text_of(all, stacks);
    figure.notes.push_back("Heads of " + std::to_string(kHeadSize) +
                           " numbers each, which make up the hidden size; without biases and output projections.");
    figure.notes.emplace_back("MHE-ADD and MHE-MUL have the same curve.");
    figure.table = [table = table_of(all)] { return table; };
    return figure;
}

}  // namespace headscope::figures
