// SPDX-License-Identifier: GPL-3.0-or-later
// Where a row's weight goes (Lazy Attention, 5.2 and Table 2): the first key, the other keys, a learned sink, and what
// is released, as one stacked bar a head; beside it the share of weights that are exactly 0; and Table 2's columns.

#include <algorithm>
#include <array>
#include <cmath>

#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

enum Part : std::size_t { kSink, kDensity, kVirtual, kReleased, kZero, kParts };
constexpr std::array<const char*, kParts> kNames{"sink", "density", "virtual_sink", "released", "zero_fraction"};
constexpr std::array<const char*, 4> kTitles{"first key (sink)", "other keys (density)", "learned sink", "released"};
constexpr double kShown = 1e-6;  ///< rounding: less is not in the legend

using Parts = std::array<double, kParts>;

struct MassLayer {
    std::string label;
    std::int64_t site = 0, layer = 0;
    std::vector<Parts> heads;
};

struct MassModel {
    std::string name;
    std::vector<MassLayer> layers;
    double loss = 0;
};

template <class Values>
Parts mean_parts(const Values& all) {
    Parts mean{};
    for (std::size_t p = 0; p < kParts; ++p) {
        std::vector<double> values;
        for (const Parts& one : all) values.push_back(one[p]);
        mean[p] = moments(values).mean;
    }
    return mean;
}

Parts of_layers(const MassModel& model) {
    std::vector<Parts> heads;
    for (const auto& layer : model.layers) heads.insert(heads.end(), layer.heads.begin(), layer.heads.end());
    return mean_parts(heads);
}

MassModel read(const store::AnalysisFile& file, const std::string& name, const FigureOptions& options) {
    const auto& header = file.header();
    const auto sequences = chosen_sequences(file, options);
    const std::array<const char*, kParts> stored{"sink", "density", "virtual_sink", "sparsity", "zero_fraction"};
    std::array<store::Values, kParts> values;
    for (std::size_t p = 0; p < kParts; ++p) values[p] = file.indicator(stored[p]);
    MassModel model{name, {}, 0};
    for (const auto site : chosen_sites(file, options)) {
        const Site& about = header.sites[static_cast<std::size_t>(site)];
        check_head(file, site, options);
        MassLayer layer{site_label(file, site), site, about.layer, {}};
        const std::int64_t stored_heads = values[0].shape[2];
        for (std::int64_t h = 0; h < about.heads; ++h) {
            Parts parts{};
            for (std::size_t p = 0; p < kParts; ++p) {
                std::vector<double> each;
                for (const auto s : sequences)
                    each.push_back(
                        values[p].data[static_cast<std::size_t>((s * values[p].shape[1] + site) * stored_heads + h)]);
                parts[p] = moments(each).mean;
            }
            // A learned sink's share is released from keys, and shown separately.
            if (!std::isnan(parts[kVirtual])) parts[kReleased] -= parts[kVirtual];
            layer.heads.push_back(parts);
        }
        model.layers.push_back(std::move(layer));
    }
    std::vector<double> losses;
    for (const auto s : sequences) {
        const auto loss = file.loss(s);
        losses.insert(losses.end(), loss.data.begin(), loss.data.end());
    }
    model.loss = moments(losses).mean;
    return model;
}

/// Parts that have a share worth a place in the legend; those of a softmax alone are sink and density.
std::array<bool, 4> shown_parts(const std::vector<MassModel>& models) {
    std::array<bool, 4> shown{true, true, false, false};
    for (const auto& model : models)
        for (const auto& layer : model.layers)
            for (const Parts& parts : layer.heads)
                for (const Part p : {kVirtual, kReleased}) shown[p] |= std::abs(parts[p]) > kShown;
    return shown;
}

/// Bars of each layer's heads side by side; with one layer a bar a head.
struct Bars {
    explicit Bars(const MassModel& model, const FigureOptions& options) {
        if (options.layer && model.layers.size() == 1) {
            const auto& heads = model.layers.front().heads;
            for (std::size_t h = 0; h < heads.size(); ++h) {
                const bool out = options.head && *options.head != static_cast<std::int64_t>(h);
                if (out) continue;
                ticks.push_back({static_cast<double>(places.size()), std::to_string(h)});
                places.push_back({static_cast<double>(places.size()), 0.4, heads[h], subject(model.layers.front(), h)});
            }
            label = "head";
            count = places.size();
            return;
        }
        for (std::size_t l = 0; l < model.layers.size(); ++l) {
            const auto& layer = model.layers[l];
            ticks.push_back({static_cast<double>(l), layer.label});
            const auto heads = static_cast<double>(options.head ? 1 : layer.heads.size());
            for (std::size_t h = 0; h < layer.heads.size(); ++h) {
                if (options.head && *options.head != static_cast<std::int64_t>(h)) continue;
                const double at = options.head ? 0.5 : static_cast<double>(h) + 0.5;
                places.push_back({static_cast<double>(l) - 0.42 + 0.84 * at / heads, 0.36 / heads, layer.heads[h],
                                  subject(layer, h)});
            }
        }
        label = "layer";
        count = model.layers.size();
    }
    struct Place {
        double at, half;
        Parts parts;
        Subject subject;
    };
    static Subject subject(const MassLayer& layer, std::size_t head) {
        return of_head(static_cast<std::int64_t>(head)).within(of_site(layer.site));
    }
    std::vector<Place> places;
    std::vector<Tick> ticks;
    std::string label;
    std::size_t count = 0;
};

Panel bar_panel(const MassModel& model, const FigureOptions& options, const std::array<bool, 4>& shown, bool several) {
    Panel panel;
    panel.title = several ? model.name : "Mass of a row";
    const Bars bars(model, options);
    double highest = 1;
    Curves curves;
    // The whole first: each lower part is drawn over it.
    for (std::size_t p = shown.size(); p-- > 0;) {
        if (!shown[p]) continue;
        Curve curve;
        curve.name = kTitles[p];
        curve.filled = curve.thin = true;
        curve.points_per_cell = 4;
        curve.colour = static_cast<int>(p);
        for (const auto& bar : bars.places) {
            double top = 0;
            for (std::size_t below = 0; below <= p; ++below)
                top += std::isnan(bar.parts[below]) ? 0 : std::max(0.0, bar.parts[below]);
            highest = std::max(highest, top);
            curve.x.insert(curve.x.end(), {bar.at - bar.half, bar.at - bar.half, bar.at + bar.half, bar.at + bar.half});
            curve.y.insert(curve.y.end(), {0.0, top, top, 0.0});
            curve.cells.push_back(bar.subject);
        }
        curves.curves.push_back(std::move(curve));
    }
    panel.x.range = std::pair(-0.5, static_cast<double>(bars.count) - 0.5);
    panel.x.ticks = bars.ticks;
    panel.x.label = bars.label;
    panel.y.range = std::pair(0.0, highest);
    panel.y.label = "mean share of a row";
    panel.content = std::move(curves);
    return panel;
}

/// Mean over heads of each layer, with a dot for each head.
Panel zero_panel(const MassModel& model, const FigureOptions& options, bool several) {
    Panel panel;
    panel.title = several ? "Zeros · " + model.name : "Weights that are exactly 0";
    const Bars bars(model, options);
    Curve dots, mean;
    dots.name = "heads";
    dots.points = true;
    dots.dot = 0.5;
    mean.name = "mean over heads";
    for (const auto& bar : bars.places) {
        dots.x.push_back(bar.at);
        dots.y.push_back(bar.parts[kZero]);
        dots.cells.push_back(bar.subject);
    }
    if (!(options.layer && model.layers.size() == 1) && !options.head) {
        for (std::size_t l = 0; l < model.layers.size(); ++l) {
            mean.x.push_back(static_cast<double>(l));
            mean.y.push_back(mean_parts(model.layers[l].heads)[kZero]);
            mean.cells.push_back(of_site(model.layers[l].site));
        }
    }
    panel.x.range = std::pair(-0.5, static_cast<double>(bars.count) - 0.5);
    panel.x.ticks = bars.ticks;
    panel.x.label = bars.label;
    panel.y.range = std::pair(0.0, 1.0);
    panel.y.label = "share of the pairs";
    panel.content = Curves{{std::move(mean), std::move(dots)}, {}};
    return panel;
}

std::string percent(double share) {
    return std::isnan(share) ? "–" : short_number(100 * share, 4);
}

TextTable table_two(const std::vector<MassModel>& models, const std::array<bool, 4>& shown) {
    TextTable table;
    table.header = {"model", "loss", "density (%)", "sink (%)", "released (%)"};
    if (shown[kVirtual]) table.header.emplace_back("learned sink (%)");
    table.header.emplace_back("zeros (%)");
    for (const auto& model : models) {
        const Parts all = of_layers(model);
        std::vector<std::string> row{model.name, short_number(model.loss, 4), percent(all[kDensity]),
                                     percent(all[kSink]), percent(all[kReleased])};
        if (shown[kVirtual]) row.push_back(percent(all[kVirtual]));
        row.push_back(percent(all[kZero]));
        table.rows.push_back(std::move(row));
    }
    return table;
}

/// Head -1: the mean over a layer's heads; layer -1: over all, with the loss.
Table mass_table(const std::vector<MassModel>& models) {
    std::vector<std::string> name, site;
    std::vector<std::int64_t> layer, head;
    std::array<std::vector<double>, kParts> values;
    std::vector<double> loss;
    const auto add = [&](const MassModel& model, const std::string& label, std::int64_t l, std::int64_t h,
                         const Parts& parts) {
        name.push_back(model.name);
        site.push_back(label);
        layer.push_back(l);
        head.push_back(h);
        for (std::size_t p = 0; p < kParts; ++p) values[p].push_back(parts[p]);
        loss.push_back(l < 0 ? model.loss : std::nan(""));
    };
    for (const auto& model : models) {
        add(model, "", -1, -1, of_layers(model));
        for (const auto& one : model.layers) {
            add(model, one.label, one.layer, -1, mean_parts(one.heads));
            for (std::size_t h = 0; h < one.heads.size(); ++h)
                add(model, one.label, one.layer, static_cast<std::int64_t>(h), one.heads[h]);
        }
    }
    Table table{{{"model", std::move(name)},
                 {"layer", std::move(layer)},
                 {"site", std::move(site)},
                 {"head", std::move(head)},
                 {"loss", std::move(loss)}}};
    for (std::size_t p = 0; p < kParts; ++p) table.columns.push_back({kNames[p], std::move(values[p])});
    return table;
}

FigureData mass(Files files, const FigureOptions& options) {
    const auto names = file_labels(files, options);
    std::vector<MassModel> models;
    for (std::size_t f = 0; f < files.size(); ++f) models.push_back(read(*files[f], names[f], options));
    const auto shown = shown_parts(models);
    FigureData figure;
    figure.title = "Mass of attention rows";
    if (options.layer) figure.title += ", layer " + std::to_string(*options.layer);
    if (options.head) figure.title += ", head " + std::to_string(*options.head);
    for (std::size_t m = 0; m < models.size(); ++m) {
        figure.panels.push_back(bar_panel(models[m], options, shown, files.size() > 1));
        figure.panels.back().subject = of_analysis(m);
        figure.panels.push_back(zero_panel(models[m], options, files.size() > 1));
        figure.panels.back().subject = of_analysis(m);
    }
    figure.columns = 2;
    figure.reflow = true;
    figure.narrowest_mm = 60;
    figure.panel_aspect = 0.5;
    for (std::size_t p = 0; p < shown.size(); ++p)
        if (shown[p]) figure.legend.push_back({kTitles[p], static_cast<int>(p)});
    figure.text_table = table_two(models, shown);
    figure.notes = source_notes(files, options);
    figure.notes.emplace_back(
        "One bar per head, heads of a layer side by side: mean over queries of the weight on the first key, on other "
        "keys" +
        std::string(shown[kVirtual] ? ", on a learned sink" : "") +
        (shown[kReleased] ? ", and the rest up to 1." : "; the sum is 1.") +
        " Zeros: unmasked pairs whose weight is below the smallest normal float32. Table: means over layers and heads; "
        "loss in nats per token.");
    figure.table = [models = std::move(models)] { return mass_table(models); };
    return figure;
}

}  // namespace

extern const Recipe kMass{
    .name = "mass",
    .description =
        "how a row's weight is divided, a stacked bar per head: "
        "first key, other keys, learned sink, released; the share "
        "of exact zeros; a table of loss, density and sink",
    .needs = "indicators",
    .of_analyses = mass,
    .options = {"layer", "head", "sequence", "names"},
};

}  // namespace headscope::figures
