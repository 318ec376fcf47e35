// SPDX-License-Identifier: GPL-3.0-or-later
// Circuits of weights: eigenvalue and copying scores of heads with spectra by layer, or composition between all heads.

#include <cmath>

#include "core/base/error.h"
#include "core/figures/recipes/ask/ask_panels.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kMostLegend = 12;  // layers that a legend names each

AskValues site_head_cells(const store::AskRecord& record, const store::AskTable& table) {
    AskValues cells;
    cells.shape = record.shape_of(table);
    cells.values = table.values;
    return cells;
}

Panel score_panel(const store::AskRecord& record, const std::string& path, const std::string& title) {
    const AskValues cells = site_head_cells(record, record.table(path));
    Panel panel = ask_panel(cells, "score", 0);
    auto& colours = std::get<HeatMap>(panel.content).colours;
    colours.minimum = -1;
    colours.maximum = 1;
    panel.title = title;
    set_site_axis(panel.y, record);
    set_layer_axis(panel.x, cells.shape.at(1), "Head");
    return panel;
}

/// Mean singular value over the heads of a site, by its place.
Curve mean_spectrum(const store::AskRecord& record, const store::AskTable& table, std::int64_t site) {
    const std::vector<std::int64_t> shape = record.shape_of(table);
    Curve curve;
    for (std::int64_t i = 0; i < shape[2]; ++i) {
        double sum = 0, count = 0;
        for (std::int64_t head = 0; head < shape[1]; ++head) {
            const double value = table.values[static_cast<std::size_t>((site * shape[1] + head) * shape[2] + i)];
            if (std::isnan(value)) continue;
            sum += value;
            ++count;
        }
        if (count == 0 || sum <= 0) continue;
        curve.x.push_back(static_cast<double>(i));
        curve.y.push_back(sum / count);
    }
    return curve;
}

Panel spectra(const store::AskRecord& record, const std::string& matrix, std::vector<LegendEntry>& legend) {
    const store::AskTable& table = record.table("/circuits/" + matrix + "_singular_values");
    const std::int64_t sites = std::ssize(record.sites);
    Curves curves;
    for (std::int64_t site = 0; site < sites; ++site) {
        Curve curve = mean_spectrum(record, table, site);
        if (curve.x.empty()) continue;
        curve.name = "layer " + site_label(std::span<const Site>(record.sites), site);
        curve.shade = sites > 1 ? static_cast<double>(site) / static_cast<double>(sites - 1) : 0;
        curve.thin = sites > kMostLegend;
        if (sites <= kMostLegend || site == 0 || site + 1 == sites) legend.push_back({curve.name, 0, curve.shade});
        curves.curves.push_back(std::move(curve));
    }
    Panel panel;
    panel.title = "singular values";
    panel.content = std::move(curves);
    panel.x.label = "Place in descending order";
    panel.y.label = "singular value, mean of heads";
    panel.y.scale = ScaleKind::logarithmic;
    return panel;
}

/// Earlier heads x later heads.
Panel composition_panel(const store::AskRecord& record, const store::AskTable& table) {
    AskValues cells = site_head_cells(record, table);
    const std::int64_t heads = cells.shape.at(1), all = cells.shape.at(0) * heads;
    cells.shape = {all, all};
    for (std::int64_t row = 0; row < all; ++row)
        for (std::int64_t column = 0; column < all; ++column)
            if (row / heads >= column / heads)
                cells.values[static_cast<std::size_t>(row * all + column)] = std::nan("");
    Panel panel = ask_panel(cells, "composition score", std::nan(""));
    std::get<HeatMap>(panel.content).colours.minimum = 0;
    panel.y.label = "Layer of the earlier head";
    panel.x.label = "Layer of the later head";
    for (std::int64_t site = 0; site < std::ssize(record.sites); ++site) {
        const Tick tick{static_cast<double>(site * heads) + static_cast<double>(heads - 1) / 2,
                        site_label(std::span<const Site>(record.sites), site)};
        panel.x.ticks.push_back(tick);
        panel.y.ticks.push_back(tick);
    }
    return panel;
}

FigureData circuits(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "circuits", "circuits");
    const std::string& matrix = options.matrix;
    FigureData figure;
    const store::AskTable* shown = nullptr;
    if (matrix == "qk" || matrix == "ov") {
        const std::string path = "/circuits/" + matrix + "_eigenvalue_score";
        shown = &record.table(path);
        figure.title = matrix == "qk" ? "Query-key products of heads" : "Output-value products of heads";
        figure.panels.push_back(score_panel(record, path, "positive eigenvalues"));
        if (matrix == "ov" && record.find("/circuits/copying_score")) {
            figure.panels.push_back(score_panel(record, "/circuits/copying_score", "copying"));
            shown = &record.table("/circuits/copying_score");
        }
        figure.panels.push_back(spectra(record, matrix, figure.legend));
        figure.columns = std::ssize(figure.panels);
        figure.notes.emplace_back(
            "Scores: sum of the real parts of the eigenvalues over the sum of their absolute values; copying: those of "
            "the product from token to token.");
    } else {
        shown = &record.table("/circuits/" + matrix);
        const std::string reads = matrix == "composition_q" ? "queries" : matrix == "composition_k" ? "keys" : "values";
        figure.title = "Composition of heads through " + reads;
        figure.panels.push_back(composition_panel(record, *shown));
        figure.notes.emplace_back("||OV M|| / (||OV|| ||M||), Frobenius norms; M is the later head's product.");
    }
    figure.reflow = true;
    figure.narrowest_mm = 45;
    figure.notes.insert(figure.notes.begin(), record.model_name + ".");
    if (!record.complete) figure.notes.emplace_back("Partial file: cells that are missing are not computed yet.");
    figure.table = [table = ask_table(record, *shown)] { return table; };
    return figure;
}

}  // namespace

extern const Recipe kCircuits{
    .name = "circuits",
    .description = "eigenvalue and copying scores with spectra of QK and OV, or composition between heads",
    .needs = "ask circuits",
    .of_others = circuits,
    .others = RecipeInputs::asks,
    .options = {"matrix"},
};

}  // namespace headscope::figures
