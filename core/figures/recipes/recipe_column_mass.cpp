// SPDX-License-Identifier: GPL-3.0-or-later
// Mean weight on each key by its position (Lazy Attention, Fig. 2a): a curve a model on a logarithmic axis.

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

constexpr std::size_t kMostMassPoints = 1200;

/// Mean over heads, sites and sequences for each key position.
struct ColumnModel {
    std::string name;
    std::vector<double> mass;
};

std::vector<std::int64_t> sites_of_one_text(const store::AnalysisFile& file, const FigureOptions& options) {
    std::vector<std::int64_t> sites = chosen_sites(file, options);
    const auto& all = file.header().sites;
    const bool cross = std::any_of(sites.begin(), sites.end(),
                                   [&](std::int64_t site) { return all[static_cast<std::size_t>(site)].is_cross(); });
    if (cross && options.tower == Tower::any)
        throw Error(ErrorCode::usage, "--tower",
                    "expected encoder, decoder or cross, whose keys are of one text, for " + file_name(file),
                    "found none");
    return sites;
}

ColumnModel read_columns(const store::AnalysisFile& file, const std::string& name, const FigureOptions& options) {
    std::vector<double> sums;
    std::vector<std::int64_t> counts;
    for (const std::int64_t site : sites_of_one_text(file, options)) {
        check_head(file, site, options);
        const std::int64_t heads = file.header().sites[static_cast<std::size_t>(site)].heads;
        for (const std::int64_t s : chosen_sequences(file, options)) {
            if (!file.site_done(s, site)) continue;
            const store::Values stored = file.column_mass(s, site);
            const auto length = static_cast<std::size_t>(stored.shape.back());
            if (sums.size() < length) {
                sums.resize(length, 0.0);
                counts.resize(length, 0);
            }
            for (std::int64_t h = 0; h < heads; ++h) {
                if (options.head && *options.head != h) continue;
                for (std::size_t j = 0; j < length; ++j) {
                    const double value = stored.data[static_cast<std::size_t>(h) * length + j];
                    if (std::isnan(value)) continue;
                    sums[j] += value;
                    ++counts[j];
                }
            }
        }
    }
    ColumnModel model{name, {}};
    // Files pad texts to the longest one.
    while (!counts.empty() && counts.back() == 0) counts.pop_back();
    sums.resize(counts.size());
    for (std::size_t j = 0; j < sums.size(); ++j)
        model.mass.push_back(counts[j] > 0 ? sums[j] / static_cast<double>(counts[j]) : std::nan(""));
    if (std::all_of(model.mass.begin(), model.mass.end(), [](double value) { return std::isnan(value); }))
        throw Error(ErrorCode::usage, "figure column-mass of " + file_name(file),
                    "expected layers with weights of each query and key", "found none that were measured");
    return model;
}

Table column_mass_table(const std::vector<ColumnModel>& models) {
    std::vector<std::string> name;
    std::vector<std::int64_t> position;
    std::vector<double> mass;
    for (const ColumnModel& model : models) {
        for (std::size_t j = 0; j < model.mass.size(); ++j) {
            name.push_back(model.name);
            position.push_back(static_cast<std::int64_t>(j));
            mass.push_back(model.mass[j]);
        }
    }
    return {{{"model", std::move(name)}, {"position", std::move(position)}, {"mass", std::move(mass)}}};
}

FigureData column_mass(Files files, const FigureOptions& options) {
    const auto names = file_labels(files, options);
    std::vector<ColumnModel> models;
    for (std::size_t f = 0; f < files.size(); ++f) models.push_back(read_columns(*files[f], names[f], options));
    FigureData figure;
    figure.title = "Weight on a key by its position";
    if (options.layer) figure.title += ", layer " + std::to_string(*options.layer);
    if (options.head) figure.title += ", head " + std::to_string(*options.head);
    Panel panel;
    Curves curves;
    for (std::size_t m = 0; m < models.size(); ++m) {
        Curve curve;
        curve.name = models[m].name;
        curve.subject = of_analysis(m);
        for (std::size_t j = 0; j < models[m].mass.size(); ++j) {
            if (std::isnan(models[m].mass[j])) continue;
            curve.x.push_back(static_cast<double>(j + 1));  // position 0 has no place on a logarithmic axis
            curve.y.push_back(models[m].mass[j]);
        }
        colour_member(curve, m, models.size());
        if (models.size() > 1) figure.legend.push_back({curve.name, curve.colour, curve.shade});
        curves.curves.push_back(thinned(std::move(curve), kMostMassPoints));
    }
    panel.x.label = "key, from 1";
    panel.x.scale = ScaleKind::logarithmic;
    panel.y.label = "mean weight";
    panel.content = std::move(curves);
    figure.panels.push_back(std::move(panel));
    figure.panel_aspect = 0.55;
    figure.notes = source_notes(files, options);
    figure.notes.emplace_back(
        "Mean over heads and layers of the weight that a key has from the queries that see it. The last keys are seen "
        "by few. Positions of the table count from 0.");
    figure.table = [models = std::move(models)] { return column_mass_table(models); };
    return figure;
}

}  // namespace

extern const Recipe kColumnMass{
    .name = "column-mass",
    .description = "mean weight on each key by its position, a curve a model",
    .needs = "indicators",
    .of_analyses = column_mass,
    .options = {"layer", "head", "sequence", "tower", "names"},
};

}  // namespace headscope::figures
