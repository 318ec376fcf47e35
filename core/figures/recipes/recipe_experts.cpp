// SPDX-License-Identifier: GPL-3.0-or-later
// The load of a mixture's experts: which share of the tokens goes through each of them, layer by layer, and how many of
// them that makes; of one layer also which share of the weight they have.

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Load of one layer, over all chosen sequences; empty for a layer without experts.
struct Load {
    std::int64_t layer = 0, tokens = 0;
    std::vector<std::int64_t> taken;  ///< [experts] tokens that go through each
    std::vector<double> weight;       ///< [experts] sums

    double share(std::size_t expert) const {
        return tokens > 0 ? static_cast<double>(taken[expert]) / static_cast<double>(tokens) : kNone;
    }
    double weight_share(std::size_t expert) const {
        double sum = 0;
        for (const double one : weight) sum += one;
        return sum > 0 ? weight[expert] / sum : kNone;
    }
    /// e to the entropy of the load: all experts where it is even, 1 where every token goes through the same one.
    double in_effect() const {
        std::int64_t sum = 0;
        for (const std::int64_t count : taken) sum += count;
        if (sum == 0) return kNone;
        double entropy = 0;
        for (const std::int64_t count : taken) {
            const double p = static_cast<double>(count) / static_cast<double>(sum);
            if (count > 0) entropy -= p * std::log(p);
        }
        return std::exp(entropy);
    }
};

struct Model {
    std::string name;
    std::int64_t experts = 0, per_token = 0;
    std::vector<Load> layers;

    double even() const { return static_cast<double>(per_token) / static_cast<double>(experts); }
};

void add(Load& load, const store::AnalysisFile& file, std::int64_t s) {
    const auto found = file.experts(s, load.layer);
    const auto each = static_cast<std::size_t>(file.header().experts_per_token);
    for (std::size_t i = 0; i < found->index.data.size(); ++i) {
        if (found->index.data[i] < 0) continue;
        const auto expert = static_cast<std::size_t>(found->index.data[i]);
        if (i % each == 0) ++load.tokens;
        ++load.taken[expert];
        if (std::isfinite(found->weight.data[i])) load.weight[expert] += found->weight.data[i];
    }
}

Model read(const store::AnalysisFile& file, const std::string& name, const FigureOptions& options) {
    const auto& header = file.header();
    if (!header.record.experts) {
        throw Error(ErrorCode::usage, "figure experts of " + file_name(file),
                    "expected a file with experts: analyze a mixture of experts with --record experts",
                    "found none recorded");
    }
    Model model{name, header.experts, header.experts_per_token, {}};
    const auto sequences = chosen_sequences(file, options);
    const auto count = std::ssize(header.mixers);
    if (options.layer && (*options.layer < 0 || *options.layer >= count)) {
        throw Error(ErrorCode::usage, "--layer",
                    "expected 0 to " + std::to_string(count - 1) + " of " + file_name(file),
                    "found " + std::to_string(*options.layer));
    }
    for (std::int64_t layer = 0; layer < count; ++layer) {
        if (options.layer && *options.layer != layer) continue;
        const auto experts = static_cast<std::size_t>(header.experts);
        Load load{layer, 0, std::vector<std::int64_t>(experts), std::vector<double>(experts)};
        for (const auto s : sequences) add(load, file, s);
        const bool measured =
            header.measured_layers.empty() || header.measured_layers.contains(static_cast<int>(layer));
        if (load.tokens > 0 || (measured && !options.layer)) model.layers.push_back(std::move(load));
    }
    if (model.layers.empty()) {
        throw Error(ErrorCode::usage, options.layer ? "--layer" : "figure experts of " + file_name(file),
                    "expected a layer with experts that was measured",
                    options.layer ? "found " + std::to_string(*options.layer) : "found none");
    }
    return model;
}

Panel load_panel(const Model& model, double highest, bool several) {
    Panel panel;
    if (several) panel.title = model.name;
    HeatMap map;
    map.rows = model.experts;
    map.columns = std::ssize(model.layers);
    map.write_values = true;
    map.pooling = Pooling::maximum;  // a busy expert among idle ones is what there is to see
    map.colours.label = "share of the tokens";
    map.colours.maximum = highest;
    map.colours.mark = Tick{model.even(), "even"};
    for (std::size_t expert = 0; expert < static_cast<std::size_t>(model.experts); ++expert) {
        panel.y.ticks.push_back({static_cast<double>(expert), std::to_string(expert)});
        for (const Load& load : model.layers) map.values.push_back(static_cast<float>(load.share(expert)));
    }
    for (std::size_t i = 0; i < model.layers.size(); ++i)
        panel.x.ticks.push_back({static_cast<double>(i), std::to_string(model.layers[i].layer)});
    panel.x.label = "layer";
    panel.y.label = "expert";
    panel.content = std::move(map);
    return panel;
}

/// Below the heat map, on the same layers: a place a column of it.
Panel effect_panel(const Model& model) {
    Panel panel;
    Curve line;
    line.name = model.name;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        line.x.push_back(static_cast<double>(i));
        line.y.push_back(model.layers[i].in_effect());
        panel.x.ticks.push_back({static_cast<double>(i), std::to_string(model.layers[i].layer)});
    }
    Curve dots = line;
    dots.points = true;
    const auto experts = static_cast<double>(model.experts);
    panel.x.range = std::pair(-0.5, static_cast<double>(model.layers.size()) - 0.5);
    panel.y.range = std::pair(0.0, experts * 1.15);
    panel.x.label = "layer";
    panel.y.label = "experts in effect";
    panel.markers.push_back({false, experts, "even load"});
    panel.content = Curves{{std::move(line), std::move(dots)}, {}};
    return panel;
}

/// A bar an expert of the one layer.
Panel bar_panel(const Model& model, const std::string& title, double even, double (Load::*share)(std::size_t) const) {
    Panel panel;
    panel.title = title;
    Curve bars;
    bars.name = title;
    bars.filled = bars.thin = true;
    double highest = even;
    for (std::size_t expert = 0; expert < static_cast<std::size_t>(model.experts); ++expert) {
        const auto at = static_cast<double>(expert);
        const double value = (model.layers.front().*share)(expert);
        bars.x.insert(bars.x.end(), {at - 0.4, at - 0.4, at + 0.4, at + 0.4});
        bars.y.insert(bars.y.end(), {0.0, value, value, 0.0});
        highest = std::max(highest, value);
    }
    panel.x.range = std::pair(-0.6, static_cast<double>(model.experts) - 0.4);
    panel.y.range = std::pair(0.0, highest * 1.15);
    panel.x.label = "expert";
    panel.y.label = "share";
    panel.markers.push_back({false, even, "even load"});
    panel.content = Curves{{std::move(bars)}, {}};
    return panel;
}

Table experts_table(const std::vector<Model>& models) {
    std::vector<std::string> name;
    std::vector<std::int64_t> layer, expert, tokens;
    std::vector<double> share, weight;
    for (const auto& model : models) {
        for (const auto& load : model.layers) {
            for (std::size_t e = 0; load.tokens > 0 && e < load.taken.size(); ++e) {
                name.push_back(model.name);
                layer.push_back(load.layer);
                expert.push_back(static_cast<std::int64_t>(e));
                tokens.push_back(load.taken[e]);
                share.push_back(load.share(e));
                weight.push_back(load.weight_share(e));
            }
        }
    }
    return {{{"model", std::move(name)},
             {"layer", std::move(layer)},
             {"expert", std::move(expert)},
             {"tokens", std::move(tokens)},
             {"share", std::move(share)},
             {"weight", std::move(weight)}}};
}

FigureData experts(Files files, const FigureOptions& options) {
    const auto names = file_labels(files, options);
    std::vector<Model> models;
    for (std::size_t f = 0; f < files.size(); ++f) models.push_back(read(*files[f], names[f], options));
    const bool several = models.size() > 1;
    FigureData figure;
    figure.columns = std::ssize(models);
    figure.title = "Load of the experts";
    if (options.layer) {
        figure.title += ", layer " + std::to_string(*options.layer);
        figure.panel_height_mm = 32;
        for (const auto& model : models)
            figure.panels.push_back(bar_panel(model, several ? model.name + ": tokens" : "Share of the tokens",
                                              model.even(), &Load::share));
        for (const auto& model : models)
            figure.panels.push_back(bar_panel(model, several ? model.name + ": weight" : "Share of the weight",
                                              1 / static_cast<double>(model.experts), &Load::weight_share));
    } else {
        double highest = 0, layers = 1, experts = 1;
        for (const auto& model : models) {
            layers = std::max(layers, static_cast<double>(model.layers.size()));
            experts = std::max(experts, static_cast<double>(model.experts));
            highest = std::max(highest, model.even());
            for (const auto& load : model.layers)
                for (std::size_t e = 0; load.tokens > 0 && e < load.taken.size(); ++e)
                    highest = std::max(highest, load.share(e));
        }
        for (const auto& model : models) figure.panels.push_back(load_panel(model, highest, several));
        for (const auto& model : models) figure.panels.push_back(effect_panel(model));
        figure.panel_aspect = std::clamp(experts / std::max(layers, 4.0), 0.3, 0.6);
        if (!several) figure.widest_mm = std::max(60.0, layers * 14);
        figure.share_x = true;
    }
    figure.notes = source_notes(files, options);
    for (const auto& model : models) {
        figure.notes.push_back((several ? model.name + ": each" : std::string("Each")) + " token goes through " +
                               std::to_string(model.per_token) + " of " + std::to_string(model.experts) +
                               " experts of a layer; an even load is " + short_number(model.even()) +
                               " of the tokens for each of them.");
    }
    if (!options.layer) {
        figure.notes.emplace_back(
            "Effective experts: exp of the entropy of the load; equal to the number of experts where the load is even. "
            "Gray: no experts.");
    } else {
        figure.notes.emplace_back("Weight: factor of an expert's output, summed over the tokens.");
    }
    if (options.all_sequences) figure.notes.emplace_back("Counts over the tokens of all sequences.");
    figure.table = [models = std::move(models)] { return experts_table(models); };
    return figure;
}

}  // namespace

extern const Recipe kExperts{
    .name = "experts",
    .description =
        "load of a mixture's experts by layer, with an even load "
        "marked; --layer: shares of tokens and of weight",
    .needs = "experts (analyze --record experts)",
    .of_analyses = experts,
    .options = {"layer", "sequence", "names"},
};

}  // namespace headscope::figures
