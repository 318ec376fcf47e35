// SPDX-License-Identifier: GPL-3.0-or-later
// Any indicator as a heat map layers x heads; all of them as small multiples when none is named.

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/text/text.h"
#include "core/figures/recipe.h"
#include "core/figures/recipes/indicator_grid.h"

namespace headscope::figures {
namespace {

constexpr double kRounding = 1e-6;  ///< sparsity of a softmax is 0 but for this
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

/// True for indicators that are 0 with a softmax: released mass, vanishing weights.
bool all_zero(const IndicatorGrid& grid) {
    return std::all_of(grid.values.begin(), grid.values.end(),
                       [](double v) { return std::isnan(v) || std::abs(v) < kRounding; });
}

bool all_missing(const IndicatorGrid& grid) {
    return std::all_of(grid.values.begin(), grid.values.end(), [](double v) { return std::isnan(v); });
}

/// Shares of the range, from 0 to 1; what has no range is in the middle.
void add_shares(std::vector<IndicatorGrid>& grids, Normalise normalise) {
    if (normalise == Normalise::absolute) return;
    for (auto& grid : grids) {
        const Extent all = indicator_extent(grids, grid.indicator);
        const auto columns = static_cast<std::size_t>(grid.columns);
        for (std::size_t i = 0; i < grid.values.size(); ++i) {
            Extent range = all;
            if (normalise == Normalise::layer && !grid.per_layer) {
                range = {};
                for (std::size_t c = i / columns * columns; c < (i / columns + 1) * columns; ++c) {
                    if (!std::isfinite(grid.values[c])) continue;
                    range.low = std::min(range.low, grid.values[c]);
                    range.high = std::max(range.high, grid.values[c]);
                }
            }
            const double value = grid.values[i];
            grid.shares.push_back(!std::isfinite(value)    ? std::numeric_limits<double>::quiet_NaN()
                                  : range.high > range.low ? (value - range.low) / (range.high - range.low)
                                                           : 0.5);
        }
    }
}

ColourScale colour_scale(const IndicatorGrid& grid, Extent all) {
    ColourScale scale;
    if (!grid.shares.empty()) return scale;
    if (!(all.low <= all.high)) return scale;
    if (all.low < -kRounding && all.high > kRounding) {
        scale.map = ColourMap::diverging;
        scale.maximum = std::max(-all.low, all.high);
        scale.minimum = -scale.maximum;
        return scale;
    }
    scale.minimum = grid.from_zero ? std::min(0.0, all.low < -kRounding ? all.low : 0.0) : all.low;
    scale.maximum = all.high;
    if (scale.maximum - scale.minimum < kRounding * std::max(1.0, std::abs(scale.maximum))) {
        scale.maximum = scale.minimum + (grid.from_zero ? 1.0 : std::max(1.0, std::abs(scale.minimum)));
    }
    return scale;
}

Panel panel(const IndicatorGrid& grid, const std::vector<IndicatorGrid>& grids, bool several_models, bool several) {
    Panel drawn;
    const bool shares = !grid.shares.empty();
    const std::string name = grid.title + (grid.unit.empty() || shares ? "" : " (" + grid.unit + ")");
    if (several) drawn.title = name;
    if (several_models) drawn.title = several ? name + " · " + grid.model : grid.model;
    HeatMap map;
    map.rows = std::ssize(grid.sites);
    map.columns = grid.columns;
    map.write_values = true;
    map.pooling = Pooling::mean;
    map.colours = colour_scale(grid, indicator_extent(grids, grid.indicator));
    if (shares)
        map.colours.label = "share of the range";
    else if (!several)
        map.colours.label = name;
    for (const double value : shares ? grid.shares : grid.values)
        map.values.push_back(std::isfinite(value) ? static_cast<float>(value) : kNone);
    for (std::int64_t r = 0; r < map.rows; ++r) {
        drawn.y.ticks.push_back({static_cast<double>(r), grid.labels[static_cast<std::size_t>(r)]});
    }
    if (!grid.per_layer) {
        for (std::int64_t c = 0; c < map.columns; ++c) {
            drawn.x.ticks.push_back({static_cast<double>(c), std::to_string(grid.first_head + c)});
        }
        drawn.x.label = "head";
    }
    drawn.y.label = "layer";
    drawn.content = std::move(map);
    return drawn;
}

Table indicators_table(const std::vector<IndicatorGrid>& grids, bool over_sequences) {
    std::vector<std::string> model, site, indicator;
    std::vector<std::int64_t> layer, head;
    std::vector<double> value, deviation, share;
    for (const auto& grid : grids) {
        for (std::size_t r = 0; r < grid.sites.size(); ++r) {
            for (std::int64_t c = 0; c < grid.columns; ++c) {
                model.push_back(grid.model);
                layer.push_back(grid.layers[r]);
                site.push_back(grid.labels[r]);
                head.push_back(grid.per_layer ? -1 : grid.first_head + c);
                indicator.push_back(grid.indicator);
                const auto at = r * static_cast<std::size_t>(grid.columns) + static_cast<std::size_t>(c);
                value.push_back(grid.values[at]);
                deviation.push_back(grid.deviation[at]);
                if (!grid.shares.empty()) share.push_back(grid.shares[at]);
            }
        }
    }
    const bool shares = !share.empty();
    Table table{{{"model", std::move(model)},
                 {"layer", std::move(layer)},
                 {"site", std::move(site)},
                 {"head", std::move(head)},
                 {"indicator", std::move(indicator)},
                 {"value", std::move(value)}}};
    if (over_sequences) table.columns.push_back({"deviation", std::move(deviation)});
    if (shares) table.columns.push_back({"share_of_range", std::move(share)});
    return table;
}

std::string scale_note(Normalise normalise, bool several, bool several_models) {
    switch (normalise) {
        case Normalise::minmax:
            return std::string("Min–max: each value as its share of the indicator's range over all layers and heads") +
                   (several_models ? " of all models here" : "") + ". Grey: none.";
        case Normalise::layer:
            return "Per layer: each value as its share of the range within its layer, so that only heads of one layer "
                   "compare; what a layer has one of, by its range over layers. Grey: none.";
        case Normalise::absolute:
            break;
    }
    return several ? "Raw values; each indicator has its own linear colour scale."
                   : "Raw values, linear colour scale. Grey: none.";
}

FigureData indicators(Files files, const FigureOptions& options) {
    const auto labels = file_labels(files, options);
    std::vector<IndicatorGrid> grids;
    for (std::size_t f = 0; f < files.size(); ++f) {
        for (const auto& name : chosen_indicators(*files[f], options))
            add_indicator_grids(grids, *files[f], labels[f], name, options);
    }
    add_shares(grids, options.normalise);
    const bool one_wish = !options.indicator.empty();
    std::vector<IndicatorGrid> shown;
    std::vector<std::string> missing, zero;
    for (const auto& grid : grids) {
        // A model that lacks an indicator has no values beside the others.
        const auto of_all = [&](bool (*property)(const IndicatorGrid&)) {
            return std::all_of(grids.begin(), grids.end(), [&](const IndicatorGrid& other) {
                return other.indicator != grid.indicator || property(other);
            });
        };
        const bool none = of_all(all_missing);
        if (one_wish || !(none || of_all(all_zero))) {
            shown.push_back(grid);
            continue;
        }
        auto& left_out = none ? missing : zero;
        if (std::find(left_out.begin(), left_out.end(), grid.title) == left_out.end()) left_out.push_back(grid.title);
    }
    if (shown.empty()) shown = grids;
    // The same indicator of all models side by side.
    std::stable_sort(shown.begin(), shown.end(), [&](const IndicatorGrid& a, const IndicatorGrid& b) {
        const auto rank = [&](const IndicatorGrid& g) {
            return std::find_if(grids.begin(), grids.end(),
                                [&](const IndicatorGrid& o) { return o.indicator == g.indicator; }) -
                   grids.begin();
        };
        return rank(a) < rank(b);
    });

    FigureData figure;
    figure.title = one_wish ? (indicator_title(options.indicator)) : "Indicators by layer and head";
    const auto different = std::count_if(
        shown.begin(), shown.end(), [&](const IndicatorGrid& g) { return g.indicator != shown.front().indicator; });
    const bool several = different > 0;
    const bool several_models = files.size() > 1;
    std::int64_t rows = 1, columns = 1;
    for (const auto& grid : shown) {
        figure.panels.push_back(panel(grid, shown, several_models, several));
        rows = std::max(rows, std::ssize(grid.sites));
        columns = std::max(columns, grid.columns);
    }
    figure.columns = several ? (several_models ? std::ssize(files) : 4) : std::ssize(shown);
    figure.reflow = true;
    figure.narrowest_mm = several ? 24 : 40;
    figure.panel_aspect = std::clamp(
        static_cast<double>(rows) / static_cast<double>(std::max<std::int64_t>(columns, 4)), several ? 0.55 : 0.3, 1.5);
    if (std::ssize(shown) == 1) figure.widest_mm = std::max(40.0, static_cast<double>(columns) * 14);
    // One indicator: one scale for all models. Shares: one for all.
    figure.shared_colours = !several || options.normalise != Normalise::absolute;
    figure.share_y = std::all_of(shown.begin(), shown.end(),
                                 [&](const IndicatorGrid& g) { return g.labels == shown.front().labels; });
    figure.share_x = std::all_of(shown.begin(), shown.end(),
                                 [&](const IndicatorGrid& g) { return g.per_layer || g.columns == columns; });
    figure.notes = source_notes(files, options);
    figure.notes.push_back(scale_note(options.normalise, several, several_models));
    if (!missing.empty())
        figure.notes.push_back("Left out, as not defined for this model: " + joined_text(missing, "; ") + ".");
    if (!zero.empty()) figure.notes.push_back("Left out, as zero everywhere: " + joined_text(zero, "; ") + ".");
    figure.table = [grids = std::move(grids), all = options.all_sequences] { return indicators_table(grids, all); };
    return figure;
}

}  // namespace

extern const Recipe kIndicators{
    .name = "indicators",
    .description = "heat map layers x heads of --indicator, or of every indicator",
    .needs = "indicators",
    .of_analyses = indicators,
    .options = {"layer", "head", "sequence", "names", "indicator", "normalise"},
};

}  // namespace headscope::figures
