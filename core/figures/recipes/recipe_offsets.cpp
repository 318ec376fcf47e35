// SPDX-License-Identifier: GPL-3.0-or-later
// Offsets of Elastic-Softmax (Lazy Attention, Fig. 5 and 10): a violin of each layer's heads with their mean, and a
// heat map of layers and heads.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/error.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

constexpr std::size_t kSteps = 100;  ///< of a violin's outline
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

struct OffsetLayer {
    std::string label;
    std::int64_t site = 0, layer = 0;
    std::vector<double> offsets;  ///< of its heads
};

struct OffsetModel {
    std::string name;
    std::vector<OffsetLayer> layers;
};

OffsetModel read(const store::AnalysisFile& file, const std::string& name, const FigureOptions& options) {
    OffsetModel model{name, {}};
    const auto stored = file.parameters("offset");
    for (const auto site : chosen_sites(file, options)) {
        if (!stored) break;
        const Site& about = file.header().sites[static_cast<std::size_t>(site)];
        OffsetLayer layer{site_label(file, site), site, about.layer, {}};
        for (std::int64_t h = 0; h < about.heads; ++h)
            layer.offsets.push_back(stored->data[static_cast<std::size_t>(site * stored->shape[1] + h)]);
        const bool measured =
            std::any_of(layer.offsets.begin(), layer.offsets.end(), [](double offset) { return !std::isnan(offset); });
        if (measured) model.layers.push_back(std::move(layer));
    }
    if (model.layers.empty()) {
        throw Error(ErrorCode::usage, "figure offsets of " + file_name(file),
                    "expected a model whose normaliser is elastic, with an offset of each head",
                    stored ? "found none in the layers that were measured" : "found none");
    }
    return model;
}

/// The density of a few values by Gaussian kernels of Scott's width, n^(-1/5) standard deviations, as matplotlib's
/// violins have it, from the least to the greatest value.
void set_density(Ridge& ridge, const std::vector<double>& values) {
    const Moments spread = moments(values);
    const auto count = static_cast<double>(values.size());
    const double width = spread.deviation * std::pow(count, -0.2);
    if (!(width > 0) || !(ridge.maximum > ridge.minimum)) return;
    for (std::size_t k = 0; k <= kSteps; ++k)
        ridge.edges.push_back(ridge.minimum +
                              (ridge.maximum - ridge.minimum) * static_cast<double>(k) / static_cast<double>(kSteps));
    for (std::size_t k = 0; k < kSteps; ++k) {
        const double at = (ridge.edges[k] + ridge.edges[k + 1]) / 2;
        double sum = 0;
        for (const double value : values) sum += std::exp(-0.5 * (at - value) / width * (at - value) / width);
        ridge.heights.push_back(sum / (count * width * std::sqrt(2 * std::numbers::pi)));
    }
}

/// Room at the ends of the values of all models; the axis is one.
std::pair<double, double> offset_range(const std::vector<OffsetModel>& models) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const auto& model : models) {
        for (const auto& layer : model.layers) {
            for (const double offset : layer.offsets) {
                if (!std::isfinite(offset)) continue;
                low = std::min(low, offset);
                high = std::max(high, offset);
            }
        }
    }
    if (!(low <= high)) return {-1.0, 0.0};
    const double room = high > low ? (high - low) * 0.04 : std::max(0.5, std::abs(high) * 0.5);
    return {low - room, high + room};
}

Panel violin_panel(const OffsetModel& model, std::pair<double, double> range, bool several) {
    Panel panel;
    panel.title = several ? model.name : "By layer";
    Ridges violins;
    violins.mirrored = true;
    violins.overlap = 0.86;
    for (const auto& layer : model.layers) {
        Ridge ridge;
        ridge.name = layer.label;
        ridge.subject = of_site(layer.site);
        ridge.minimum = *std::min_element(layer.offsets.begin(), layer.offsets.end());
        ridge.maximum = *std::max_element(layer.offsets.begin(), layer.offsets.end());
        ridge.mean = moments(layer.offsets).mean;
        set_density(ridge, layer.offsets);
        violins.ridges.push_back(std::move(ridge));
    }
    panel.x.label = "offset";
    panel.x.range = range;
    panel.y.label = "layer";
    panel.content = std::move(violins);
    return panel;
}

Panel map_panel(const OffsetModel& model, std::pair<double, double> range, bool several) {
    Panel panel;
    panel.title = several ? model.name : "By layer and head";
    HeatMap map;
    map.rows = std::ssize(model.layers);
    for (const auto& layer : model.layers) map.columns = std::max(map.columns, std::ssize(layer.offsets));
    map.write_values = true;
    map.pooling = Pooling::mean;
    map.colours.label = "offset";
    map.colours.minimum = range.first;
    map.colours.maximum = range.second;
    if (range.first < 0 && range.second > 0) {
        map.colours.map = ColourMap::diverging;
        map.colours.maximum = std::max(-range.first, range.second);
        map.colours.minimum = -map.colours.maximum;
    }
    for (std::int64_t r = 0; r < map.rows; ++r) {
        const auto& layer = model.layers[static_cast<std::size_t>(r)];
        panel.y.ticks.push_back({static_cast<double>(r), layer.label, of_site(layer.site)});
        for (std::int64_t c = 0; c < map.columns; ++c)
            map.values.push_back(
                c < std::ssize(layer.offsets) ? static_cast<float>(layer.offsets[static_cast<std::size_t>(c)]) : kNone);
    }
    for (std::int64_t c = 0; c < map.columns; ++c)
        panel.x.ticks.push_back({static_cast<double>(c), std::to_string(c), of_head(c)});
    panel.x.label = "head";
    panel.y.label = "layer";
    panel.content = std::move(map);
    return panel;
}

Table offsets_table(const std::vector<OffsetModel>& models) {
    std::vector<std::string> name, site;
    std::vector<std::int64_t> layer, head;
    std::vector<double> offset;
    for (const auto& model : models) {
        for (const auto& one : model.layers) {
            for (std::size_t h = 0; h < one.offsets.size(); ++h) {
                name.push_back(model.name);
                layer.push_back(one.layer);
                site.push_back(one.label);
                head.push_back(static_cast<std::int64_t>(h));
                offset.push_back(one.offsets[h]);
            }
        }
    }
    return {{{"model", std::move(name)},
             {"layer", std::move(layer)},
             {"site", std::move(site)},
             {"head", std::move(head)},
             {"offset", std::move(offset)}}};
}

FigureData offsets(Files files, const FigureOptions& options) {
    const auto names = file_labels(files, options);
    std::vector<OffsetModel> models;
    for (std::size_t f = 0; f < files.size(); ++f) models.push_back(read(*files[f], names[f], options));
    FigureData figure;
    figure.title = "Offsets of Elastic-Softmax";
    const auto range = offset_range(models);
    std::int64_t rows = 1, heads = 1;
    for (std::size_t m = 0; m < models.size(); ++m) {
        const OffsetModel& model = models[m];
        for (auto* panel : {violin_panel, map_panel}) {
            figure.panels.push_back(panel(model, range, files.size() > 1));
            figure.panels.back().subject = of_analysis(m);
        }
        rows = std::max(rows, std::ssize(model.layers));
        for (const auto& layer : model.layers) heads = std::max(heads, std::ssize(layer.offsets));
    }
    figure.columns = 2;
    figure.reflow = true;
    figure.narrowest_mm = 40;
    figure.panel_height_mm = std::clamp(6.0 * static_cast<double>(rows), 24.0, 110.0);
    figure.notes.emplace_back("Parameters of ");
    for (std::size_t f = 0; f < names.size(); ++f) figure.notes.back() += (f > 0 ? "; " : "") + names[f];
    figure.notes.back() += ".";
    figure.notes.emplace_back(
        "Violins: Gaussian kernel density of a layer's heads (Scott's bandwidth), all of the same width; line: "
        "smallest "
        "to largest offset; dot: mean.");
    figure.table = [models = std::move(models)] { return offsets_table(models); };
    return figure;
}

}  // namespace

extern const Recipe kOffsets{
    .name = "offsets",
    .description =
        "offsets of Elastic-Softmax: a violin a layer with its "
        "mean, and a heat map layers x heads",
    .needs = "a model with an elastic normalizer",
    .of_analyses = offsets,
    .options = {"layer", "sequence", "names"},
};

}  // namespace headscope::figures
