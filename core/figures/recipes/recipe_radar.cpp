// SPDX-License-Identifier: GPL-3.0-or-later
// Radar plots of "Deconstructing Attention", Fig. 1, 7, 8, by their display rule: entropy, concentration and head
// diversity min-max normalised over all layers of all models in the figure; sink and local focus absolute, local focus
// drawn times two. Means over heads, or one head's values.

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/series.h"
#include "core/figures/recipe.h"
#include "core/figures/recipes/radar_rule.h"

namespace headscope::figures {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
using Raw = RadarValues;

/// Values of one sequence, or means over several: the mean over heads, or one head.
class Reader {
public:
    Reader(const store::AnalysisFile& file, std::vector<std::int64_t> sequences, std::optional<std::int64_t> head)
        : file_(file),
          sequences_(std::move(sequences)),
          head_(head),
          entropy_(file.indicator("entropy")),
          concentration_(file.indicator("concentration")),
          diversity_(file.indicator("head_diversity")),
          focus_(file.indicator("local_focus")),
          sink_(file.indicator("sink")) {}

    /// Means, and deviations over the sequences.
    std::pair<Raw, Raw> site(std::int64_t site) const {
        std::vector<Raw> all;
        for (const auto s : sequences_) all.push_back(of_sequence(s, site));
        std::pair<Raw, Raw> result;
        std::vector<double> values(all.size());
        for (std::size_t k = 0; k < kRadarSpokes; ++k) {
            for (std::size_t i = 0; i < all.size(); ++i) values[i] = all[i][k];
            const Moments over = moments(values);
            result.first[k] = over.mean;
            result.second[k] = over.deviation;
        }
        return result;
    }

private:
    Raw of_sequence(std::int64_t s, std::int64_t site) const {
        Raw raw;
        raw[0] = mean(entropy_, s, site, 1, 0);
        raw[1] = mean(concentration_, s, site, 1, 0);
        raw[2] = diversity_.data[static_cast<std::size_t>(s * diversity_.shape[1] + site)];
        for (std::size_t n = 0; n < kRadarFocus; ++n)
            raw[kRadarNormalised + n] = focus(s, site, static_cast<std::int64_t>(n));
        raw[kRadarSpokes - 1] = mean(sink_, s, site, 1, 0);
        return raw;
    }

    double focus(std::int64_t s, std::int64_t site, std::int64_t distance) const {
        const auto& distances = file_.header().local_distances;
        const auto at = std::find(distances.begin(), distances.end(), distance);
        if (at == distances.end()) return kNone;
        return mean(focus_, s, site, std::ssize(distances), at - distances.begin());
    }

    double mean(const store::Values& values, std::int64_t s, std::int64_t site, std::int64_t width,
                std::int64_t offset) const {
        const auto most = values.shape[2];
        const auto heads = std::min<std::int64_t>(most, file_.header().sites[static_cast<std::size_t>(site)].heads);
        const std::int64_t first = head_.value_or(0);
        if (first >= heads) return kNone;
        return finite_mean(values.data,
                           static_cast<std::size_t>(((s * values.shape[1] + site) * most + first) * width + offset),
                           static_cast<std::size_t>(head_ ? 1 : heads), static_cast<std::size_t>(width));
    }

    const store::AnalysisFile& file_;
    std::vector<std::int64_t> sequences_;
    std::optional<std::int64_t> head_;
    store::Values entropy_, concentration_, diversity_, focus_, sink_;
};

struct Model {
    std::string name;
    std::vector<std::int64_t> sites;
    std::vector<std::string> labels, titles;
    std::vector<std::int32_t> layers;
    std::vector<Raw> raw, deviation;
    std::vector<std::string> nothing;  ///< why there are no values; empty: there are
};

/// Why a layer has none, in the polygon's place.
std::string nothing_of(const store::AnalysisFile& file, const std::vector<std::int64_t>& sequences, std::int64_t site) {
    const Site& about = file.header().sites[static_cast<std::size_t>(site)];
    if (!about.has_matrix && !about.has_implicit) return "no attention matrix";
    const bool done =
        std::any_of(sequences.begin(), sequences.end(), [&](std::int64_t s) { return file.site_done(s, site); });
    return done ? "" : "not computed";
}

/// Radar of one layer.
Radar chart(const Model& model, std::size_t i, int colour, const RadarExtents& extents, bool over_sequences) {
    Radar plot;
    plot.spokes.assign(kRadarSymbols.begin(), kRadarSymbols.end());
    if (i >= model.raw.size()) return plot;
    plot.nothing = model.nothing[i];
    Radar::Series series{model.name, {}, colour, {}};
    for (std::size_t k = 0; k < kRadarSpokes; ++k) {
        series.values.push_back(displayed(model.raw[i], k, extents));
        if (over_sequences) series.deviations.push_back(displayed_deviation(model.deviation[i][k], k, extents));
    }
    plot.series.push_back(std::move(series));
    return plot;
}

/// Blocks of columns side by side, so that the figure is about as high as wide; no more than twelve plots in a row.
std::size_t blocks_of(std::size_t rows, std::size_t models) {
    const auto square = std::ceil(std::sqrt(0.7 * static_cast<double>(rows) / static_cast<double>(models)));
    return std::clamp<std::size_t>(static_cast<std::size_t>(square), 1, std::max<std::size_t>(1, 12 / models));
}

Table radar_table(const std::vector<Model>& models, const RadarExtents& extents, bool over_sequences) {
    std::vector<std::string> model, site, indicator;
    std::vector<std::int64_t> layer;
    std::vector<double> raw, shown, deviation;
    for (const auto& m : models) {
        for (std::size_t i = 0; i < m.raw.size(); ++i) {
            for (std::size_t k = 0; k < kRadarSpokes; ++k) {
                model.push_back(m.name);
                layer.push_back(m.layers[i]);
                site.push_back(m.labels[i]);
                indicator.emplace_back(kRadarNames[k]);
                raw.push_back(m.raw[i][k]);
                deviation.push_back(m.deviation[i][k]);
                shown.push_back(displayed(m.raw[i], k, extents));
            }
        }
    }
    Table table{{{"model", std::move(model)},
                 {"layer", std::move(layer)},
                 {"site", std::move(site)},
                 {"indicator", std::move(indicator)},
                 {"value", std::move(raw)},
                 {"displayed", std::move(shown)}}};
    if (over_sequences) table.columns.push_back({"deviation", std::move(deviation)});
    return table;
}

FigureData radar(Files files, const FigureOptions& options) {
    const auto names = file_labels(files, options);
    std::vector<Model> models;
    RadarExtents extents;
    for (std::size_t f = 0; f < files.size(); ++f) {
        const auto& file = *files[f];
        const auto sequences = chosen_sequences(file, options);
        const Reader reader(file, sequences, options.head);
        const auto chosen = chosen_sites(file, options);
        Model model{names[f], chosen, {}, {}, {}, {}, {}, {}};
        for (std::int64_t site = 0; site < std::ssize(file.header().sites); ++site) {
            const auto [raw, deviation] = reader.site(site);
            extend(extents, raw);
            if (std::find(chosen.begin(), chosen.end(), site) == chosen.end()) continue;
            check_head(file, site, options);
            model.labels.push_back(site_label(file, site));
            model.titles.push_back(site_title(file, site));
            model.titles.back()[0] = static_cast<char>(std::toupper(model.titles.back()[0]));
            model.layers.push_back(file.header().sites[static_cast<std::size_t>(site)].layer);
            model.raw.push_back(raw);
            model.deviation.push_back(deviation);
            model.nothing.push_back(nothing_of(file, sequences, site));
        }
        models.push_back(std::move(model));
    }

    FigureData figure;
    figure.title = "Attention indicators by layer";
    if (options.head) figure.title += ", head " + std::to_string(*options.head);
    std::size_t rows = 0;
    for (const auto& model : models) rows = std::max(rows, model.raw.size());
    const bool several = models.size() > 1;
    // Models in columns; many layers continue in further blocks of columns.
    const std::size_t blocks =
        several ? blocks_of(rows, models.size())
                : (rows > 48 ? 10 : (rows > 12 ? 6 : (rows > 4 ? 4 : std::max<std::size_t>(1, rows))));
    const std::size_t lines = (rows + blocks - 1) / blocks;
    bool clipped = false;
    for (std::size_t line = 0; line < lines; ++line) {
        for (std::size_t block = 0; block < blocks; ++block) {
            const std::size_t i = line * blocks + block;
            for (std::size_t m = 0; m < models.size(); ++m) {
                if (i >= rows) break;
                Panel panel;
                if (i < models[m].raw.size()) {
                    panel.title = models[m].titles[i];
                    panel.subject = of_site(models[m].sites[i]).within(of_analysis(m));
                }
                Radar plot = chart(models[m], i, static_cast<int>(m), extents, options.all_sequences);
                for (const auto& drawn : plot.series)
                    clipped |= std::any_of(drawn.values.begin(), drawn.values.end(),
                                           [&](double value) { return value > plot.maximum; });
                panel.content = std::move(plot);
                figure.panels.push_back(std::move(panel));
            }
        }
    }
    figure.columns = static_cast<std::int64_t>(blocks * models.size());
    figure.reflow = true;
    figure.narrowest_mm = 12.5;
    // A page stays about as high as A4; a line is a plot and its title.
    figure.widest_mm =
        std::clamp(230.0 / static_cast<double>(std::max<std::size_t>(1, lines)) - 6.0, 12.5, several ? 40.0 : 52.0);
    if (several) {
        figure.block_columns = static_cast<std::int64_t>(models.size());
        for (const auto& model : models) figure.column_labels.push_back(model.name);
    }
    figure.notes = source_notes(files, options);
    figure.notes.push_back("H entropy, C concentration, HD head diversity: min–max over all layers" +
                           std::string(several ? " of all models here" : "") +
                           ". LF0–3 local focus at distance 0–3, times two; S sink: absolute, the rim is 1. " +
                           (options.head ? "HD belongs to the layer." : "Means over heads."));
    const bool recurrent = std::any_of(files.begin(), files.end(), [](const auto& file) {
        const auto& sites = file->header().sites;
        return std::any_of(sites.begin(), sites.end(), [](const Site& site) { return site.has_implicit; });
    });
    if (recurrent) figure.notes.emplace_back(kRecurrentRadar);
    if (options.all_sequences)
        figure.notes.emplace_back("Bars along the spokes: standard deviation over the sequences.");
    if (clipped) figure.notes.emplace_back("Values beyond the rim are drawn on it; the CSV has the true values.");
    figure.table = [models = std::move(models), extents, all = options.all_sequences] {
        return radar_table(models, extents, all);
    };
    return figure;
}

}  // namespace

extern const Recipe kRadar{
    .name = "radar",
    .description = "one polar plot per layer of the paper's indicators; models in columns",
    .needs = "indicators",
    .of_analyses = radar,
    .options = {"layer", "head", "sequence", "names"},
};

}  // namespace headscope::figures
