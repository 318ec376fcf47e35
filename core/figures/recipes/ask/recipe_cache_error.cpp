// SPDX-License-Identifier: GPL-3.0-or-later
// Errors of smaller key-value caches of ask cache: by share of removed keys, by layer, and by head.

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/figures/recipes/ask/ask_panels.h"

namespace headscope::figures {
namespace {

constexpr const char* kErrorLabel = "Relative error of the outputs";

/// "h2o" of "/cache/h2o/error"; empty: another table.
std::string scorer_of(const store::AskTable& table) {
    const std::string begin = "/cache/", end = "/error";
    if (!table.path.starts_with(begin) || !table.path.ends_with(end)) return {};
    return table.path.substr(begin.size(), table.path.size() - begin.size() - end.size());
}

std::string scorer_title(std::string scorer) {
    if (scorer == "h2o") return "H2O";
    if (scorer == "snapkv") return "SnapKV";
    if (scorer == "tova") return "TOVA";
    if (scorer == "streaming_llm") return "StreamingLLM";
    std::replace(scorer.begin(), scorer.end(), '_', ' ');
    return scorer;
}

/// Mean over the cells of `part` parts of equal size that lie one behind the other; NaN where a part has none.
std::vector<double> means_of_parts(const std::vector<double>& values, std::size_t parts) {
    std::vector<double> means;
    const std::size_t size = parts > 0 ? values.size() / parts : 0;
    for (std::size_t part = 0; part < parts; ++part) {
        double sum = 0, count = 0;
        for (std::size_t i = part * size; i < (part + 1) * size; ++i) {
            if (std::isnan(values[i])) continue;
            sum += values[i];
            ++count;
        }
        means.push_back(count > 0 ? sum / count : std::nan(""));
    }
    return means;
}

FigureData cache_error(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "cache-error", "cache");
    const std::vector<double>& ratios = record.table("/cache/ratio").values;
    const auto last = static_cast<std::size_t>(std::max_element(ratios.begin(), ratios.end()) - ratios.begin());
    const std::size_t sites = record.sites.size();
    FigureData figure;
    figure.title = "Outputs with a smaller key-value cache";
    Curves by_ratio, by_site;
    std::vector<Panel> heads;
    const store::AskTable* first = nullptr;
    for (const store::AskTable& table : record.tables) {
        const std::string scorer = scorer_of(table);
        if (scorer.empty()) continue;
        const AskValues errors = ask_values(record, table, options);  // ratios, sites, heads
        if (!first) figure.notes = ask_notes(record, errors);
        if (!first) first = &table;
        const auto colour = static_cast<int>(by_ratio.curves.size());
        const std::string title = scorer_title(scorer);
        figure.legend.push_back({title, colour});
        std::vector<std::pair<double, double>> points;
        const std::vector<double> means = means_of_parts(errors.values, ratios.size());
        for (std::size_t r = 0; r < ratios.size(); ++r) points.emplace_back(ratios[r], means[r]);
        std::sort(points.begin(), points.end());
        Curve line, layers;
        line.name = layers.name = title;
        line.colour = layers.colour = colour;
        for (const auto& [x, y] : points) {
            line.x.push_back(x);
            line.y.push_back(y);
        }
        by_ratio.curves.push_back(std::move(line));
        const std::size_t size = errors.values.size() / std::max<std::size_t>(1, ratios.size());
        const auto begin = errors.values.begin() + static_cast<std::ptrdiff_t>(last * size);
        AskValues cells;
        cells.sequence = errors.sequence;
        cells.shape = {static_cast<std::int64_t>(sites), record.size_of("/head")};
        cells.values.assign(begin, begin + static_cast<std::ptrdiff_t>(size));
        const std::vector<double> of_sites = means_of_parts(cells.values, sites);
        for (std::size_t site = 0; site < sites; ++site) {
            if (std::isnan(of_sites[site])) continue;
            layers.x.push_back(static_cast<double>(site));
            layers.y.push_back(of_sites[site]);
        }
        layers.points = true;
        by_site.curves.push_back(std::move(layers));
        Panel panel = ask_panel(cells, "relative error", std::nan(""));
        std::get<HeatMap>(panel.content).colours.minimum = 0;
        panel.title = title;
        set_site_axis(panel.y, record);
        set_layer_axis(panel.x, cells.shape[1], "Head");
        heads.push_back(std::move(panel));
    }
    if (!first) throw Error(ErrorCode::format, "ask file", "expected errors of a scorer", "found none");
    double largest = 0;
    for (const Panel& panel : heads) largest = std::max(largest, std::get<HeatMap>(panel.content).colours.maximum);
    for (Panel& panel : heads) std::get<HeatMap>(panel.content).colours.maximum = largest;
    const std::string share = short_number(ratios.at(last));
    Panel ratio;
    ratio.title = "mean of all heads";
    ratio.content = std::move(by_ratio);
    ratio.x.label = "Share of the keys that is removed";
    ratio.x.range = std::pair(0.0, 1.0);
    ratio.y.label = kErrorLabel;
    Panel layers;
    layers.title = "by layer, " + share + " removed";
    layers.content = std::move(by_site);
    set_site_axis(layers.x, record);
    layers.x.range = std::pair(-0.5, static_cast<double>(sites) - 0.5);
    layers.y.label = kErrorLabel;
    figure.panels.push_back(std::move(ratio));
    figure.panels.push_back(std::move(layers));
    for (Panel& panel : heads) figure.panels.push_back(std::move(panel));
    figure.columns = 2;
    figure.reflow = true;
    figure.narrowest_mm = 50;
    figure.panel_aspect = 0.7;
    figure.notes.push_back(
        "Frobenius norm of the outputs' change behind the context over that of the outputs; each "
        "layer alone. Maps: heads with " +
        share + " of the keys removed.");
    figure.table = [table = ask_table(record, *first)] { return table; };
    return figure;
}

}  // namespace

extern const Recipe kCacheError{
    .name = "cache-error",
    .description = "error of the outputs with a smaller key-value cache, by scorer, share of removed keys and head",
    .needs = "ask cache",
    .of_others = cache_error,
    .others = RecipeInputs::asks,
    .options = {"sequence"},
};

}  // namespace headscope::figures
