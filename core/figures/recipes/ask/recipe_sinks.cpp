// SPDX-License-Identifier: GPL-3.0-or-later
// Attention sinks, massive activations and norms of values of ask sinks.

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/figures/recipes/ask/ask_panels.h"
#include "core/figures/token_text.h"

namespace headscope::figures {
namespace {

constexpr std::size_t kMostMassive = 12;  // rows of a table that a page takes

double epsilon_of(const store::AskRecord& record) {
    const nlohmann::json settings = nlohmann::json::parse(record.settings_json, nullptr, false);
    if (settings.is_object() && settings.contains("epsilon") && settings["epsilon"].is_number())
        return settings["epsilon"].get<double>();
    return 0.3;
}

std::vector<std::string> record_notes(const store::AskRecord& record) {
    std::vector<std::string> notes{std::to_string(record.sequences.size()) +
                                   (record.sequences.size() == 1 ? " text, " : " texts, ") + record.model_name + "."};
    if (!record.complete) notes.emplace_back("Partial file: cells that are missing are not computed yet.");
    return notes;
}

Curve curve_of(const std::string& name, int colour, const std::vector<double>& values) {
    Curve curve;
    curve.name = name;
    curve.colour = colour;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(values[i])) continue;
        curve.x.push_back(static_cast<double>(i));
        curve.y.push_back(values[i]);
    }
    return curve;
}

/// Boundaries of the encoder of an encoder-decoder, the first ones; 0: one stack.
std::int64_t encoder_boundaries(const store::AskRecord& record) {
    std::int64_t last = -2;
    for (const Site& site : record.sites)
        if (site.stack == "encoder") last = std::max<std::int64_t>(last, site.layer);
    return last + 2;
}

FigureData sink_rate(const FigureInputs& inputs, const FigureOptions&) {
    const store::AskRecord& record = ask_record(inputs, "sink-rate", "sinks");
    FigureData figure;
    figure.title = "Attention sinks";
    Panel thresholds;
    thresholds.title = "first token";
    Curve curve;
    curve.name = "first token";
    curve.x = record.table("/sinks/threshold").values;
    curve.y = record.table("/sinks/rate_by_threshold").values;
    thresholds.content = Curves{{std::move(curve)}, {}};
    thresholds.x.label = "Threshold of the mean weight";
    thresholds.x.range = std::pair(0.0, 1.0);
    thresholds.y.label = "Sink rate";
    thresholds.y.range = std::pair(0.0, 1.0);
    const std::string epsilon = short_number(epsilon_of(record));
    thresholds.markers.push_back({true, epsilon_of(record), "epsilon"});
    figure.panels.push_back(std::move(thresholds));

    const store::AskTable& rates = record.table("/sinks/rate_by_site");
    AskValues cells;
    cells.shape = record.shape_of(rates);
    cells.values = rates.values;
    Panel panel = ask_panel(cells, "sink rate", std::nan(""));
    auto& colours = std::get<HeatMap>(panel.content).colours;
    colours.minimum = 0;
    colours.maximum = 1;
    panel.title = "by layer and position";
    panel.x.label = "Position";
    set_site_axis(panel.y, record);
    figure.panels.push_back(std::move(panel));
    figure.columns = 2;
    figure.reflow = true;
    figure.narrowest_mm = 50;
    figure.notes = record_notes(record);
    figure.notes.push_back(
        "Sink rate: share of heads whose mean weight on a key, over the queries from it on, is above " + epsilon +
        " (arXiv 2410.10781).");
    if (encoder_boundaries(record) > 0)
        figure.notes.emplace_back(
            "Keys of the encoder and of cross-attention are the source's, and all queries count.");
    figure.table = [table = ask_table(record, rates)] { return table; };
    return figure;
}

/// Boundary, token, channel, value and ratio of the massive activations.
TextTable massive_table(const store::AskRecord& record, const AskValues& largest, const AskValues& channels,
                        const AskValues& medians) {
    struct Massive {
        std::int64_t boundary, position;
        double value, channel, ratio;
    };
    std::vector<Massive> all;
    for (std::size_t cell = 0; cell < largest.values.size(); ++cell) {
        const auto boundary = static_cast<std::int64_t>(cell) / largest.shape[1];
        const double value = largest.values[cell],
                     ratio = std::abs(value) / medians.values[static_cast<std::size_t>(boundary)];
        if (!(std::abs(value) > 100 && ratio >= 1000)) continue;
        all.push_back(
            {boundary, static_cast<std::int64_t>(cell) % largest.shape[1], value, channels.values[cell], ratio});
    }
    std::stable_sort(all.begin(), all.end(), [](const Massive& a, const Massive& b) { return a.ratio > b.ratio; });
    if (all.size() > kMostMassive) all.resize(kMostMassive);
    const store::SequenceTokens& text = record.sequences.at(static_cast<std::size_t>(largest.sequence));
    const std::int64_t encoder = encoder_boundaries(record);
    TextTable table{{"token", "position", "boundary", "channel", "activation", "over the median"}, {}};
    for (const Massive& one : all) {
        const auto position = static_cast<std::size_t>(one.position);
        const std::vector<std::string>& pieces = (one.boundary < encoder ? text : text.predicted()).pieces;
        table.rows.push_back({position < pieces.size() ? visible_token(pieces[position]) : "", std::to_string(position),
                              std::to_string(one.boundary), short_number(one.channel, 9), short_number(one.value, 4),
                              short_number(one.ratio, 4)});
    }
    return table;
}

FigureData massive_activations(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "massive-activations", "sinks");
    const store::AskTable& table = record.table("/sinks/token_maximum");
    const AskValues largest = ask_values(record, table, options);
    FigureOptions own = options;
    own.sequence = largest.sequence;
    const auto of_text = [&](const char* name) {
        return ask_values(record, record.table(std::string("/sinks/") + name), own);
    };
    const AskValues medians = of_text("activation_median");
    std::vector<double> tops = of_text("activation_maximum").values;
    for (double& top : tops) top = std::abs(top);
    FigureData figure;
    figure.title = "Massive activations";
    Panel curves;
    curves.title = "by boundary";
    curves.content = Curves{{curve_of("largest", 0, tops), curve_of("median", 1, medians.values)}, {}};
    set_layer_range(curves.x, std::ssize(tops));
    curves.x.label = "Boundary";
    curves.y.label = "Absolute activation";
    curves.y.scale = ScaleKind::logarithmic;
    figure.legend = {{"largest", 0}, {"median", 1}};
    figure.panels.push_back(std::move(curves));

    AskValues ratios = largest;
    for (std::size_t cell = 0; cell < ratios.values.size(); ++cell)
        ratios.values[cell] =
            std::abs(ratios.values[cell]) /
            medians.values[cell / static_cast<std::size_t>(std::max<std::int64_t>(1, ratios.shape[1]))];
    Panel panel = ask_panel(ratios, "largest activation over the median", std::nan(""));
    auto& colours = std::get<HeatMap>(panel.content).colours;
    colours.scale = ScaleKind::logarithmic;
    colours.minimum = std::max(colours.minimum, 1e-3);
    colours.maximum = std::max(colours.maximum, 10 * colours.minimum);
    panel.title = "by boundary and token";
    set_token_axis(panel.x, record, ratios.sequence);
    set_layer_axis(panel.y, ratios.shape[0], "Boundary");
    figure.panels.push_back(std::move(panel));
    figure.columns = 2;
    figure.reflow = true;
    figure.narrowest_mm = 50;
    figure.notes = ask_notes(record, largest);
    const std::int64_t encoder = encoder_boundaries(record);
    figure.notes.push_back(
        encoder > 0 ? "Boundaries 0 to " + std::to_string(encoder - 1) +
                          " are the encoder's: inputs of its blocks and its output; the decoder's follow."
                    : "Boundary b: the input of block b; the last one is the output, before the final norm.");
    TextTable massive = massive_table(record, largest, of_text("token_channel"), medians);
    figure.notes.emplace_back(massive.rows.empty()
                                  ? "No activation is above 100 and 1000 medians (arXiv 2402.17762)."
                                  : "Massive: above 100 and 1000 medians (arXiv 2402.17762); each token's largest.");
    if (!massive.rows.empty()) figure.text_table = std::move(massive);
    figure.table = [made = ask_table(record, table)] { return made; };
    return figure;
}

/// Mean norms of a site's values of all texts, at sinks of the value's query heads and elsewhere.
struct SinkNorms {
    std::vector<double> sinks, others;
};

SinkNorms sink_norms(const store::AskRecord& record) {
    const store::AskTable& norms = record.table("/sinks/value_norm");
    const std::vector<double>& mass = record.table("/sinks/column_mass").values;
    const std::vector<std::int64_t> shape = record.shape_of(norms);  // texts, sites, key-value heads, tokens
    const std::int64_t heads = record.size_of("/head");
    const double epsilon = epsilon_of(record);
    SinkNorms found;
    for (std::int64_t site = 0; site < shape[1]; ++site) {
        const Site& own = record.sites[static_cast<std::size_t>(site)];
        const std::int64_t group = std::max(1, own.heads / std::max(1, own.key_value_heads));
        double sums[2] = {0, 0}, counts[2] = {0, 0};
        for (std::int64_t s = 0; s < shape[0]; ++s) {
            for (std::int64_t g = 0; g < shape[2]; ++g) {
                for (std::int64_t p = 0; p < shape[3]; ++p) {
                    const double norm =
                        norms.values[static_cast<std::size_t>(((s * shape[1] + site) * shape[2] + g) * shape[3] + p)];
                    if (std::isnan(norm)) continue;
                    bool sink = false;
                    for (std::int64_t h = g * group; h < std::min((g + 1) * group, heads); ++h)
                        sink =
                            sink || mass[static_cast<std::size_t>(((s * shape[1] + site) * heads + h) * shape[3] + p)] >
                                        epsilon;
                    sums[sink ? 0 : 1] += norm;
                    ++counts[sink ? 0 : 1];
                }
            }
        }
        found.sinks.push_back(counts[0] > 0 ? sums[0] / counts[0] : std::nan(""));
        found.others.push_back(counts[1] > 0 ? sums[1] / counts[1] : std::nan(""));
    }
    return found;
}

FigureData value_norms(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "value-norms", "sinks");
    const store::AskTable& table = record.table("/sinks/value_norm");
    FigureData figure;
    figure.title = "Norms of values at sinks";
    const SinkNorms means = sink_norms(record);
    Panel curves;
    curves.title = "all texts";
    curves.content = Curves{{curve_of("sinks", 0, means.sinks), curve_of("other tokens", 1, means.others)}, {}};
    for (Curve& curve : std::get<Curves>(curves.content).curves) curve.points = true;
    set_site_axis(curves.x, record);
    curves.x.range = std::pair(-0.5, static_cast<double>(record.sites.size()) - 0.5);
    curves.y.label = "Mean L2 norm of values";
    figure.legend = {{"sinks", 0}, {"other tokens", 1}};
    figure.panels.push_back(std::move(curves));

    const AskValues norms = ask_values(record, table, options);  // sites, key-value heads, tokens
    AskValues cells;
    cells.sequence = norms.sequence;
    cells.shape = {norms.shape[0], norms.shape[2]};
    for (std::int64_t site = 0; site < norms.shape[0]; ++site) {
        for (std::int64_t p = 0; p < norms.shape[2]; ++p) {
            double sum = 0, count = 0;
            for (std::int64_t g = 0; g < norms.shape[1]; ++g) {
                const double one =
                    norms.values[static_cast<std::size_t>((site * norms.shape[1] + g) * norms.shape[2] + p)];
                if (std::isnan(one)) continue;
                sum += one;
                ++count;
            }
            cells.values.push_back(count > 0 ? sum / count : std::nan(""));
        }
    }
    Panel panel = ask_panel(cells, "L2 norm, mean of the heads", std::nan(""));
    std::get<HeatMap>(panel.content).colours.minimum = 0;
    panel.title = "by layer and token";
    set_token_axis(panel.x, record, cells.sequence);
    set_site_axis(panel.y, record);
    figure.panels.push_back(std::move(panel));
    figure.columns = 2;
    figure.reflow = true;
    figure.narrowest_mm = 50;
    figure.notes = ask_notes(record, cells);
    figure.notes.push_back("Sinks: keys with a mean weight above " + short_number(epsilon_of(record)) +
                           " in a query head that reads the value.");
    figure.table = [made = ask_table(record, table)] { return made; };
    return figure;
}

}  // namespace

extern const Recipe kSinkRate{
    .name = "sink-rate",
    .description = "share of heads with a sink, by threshold and by layer and position",
    .needs = "ask sinks",
    .of_others = sink_rate,
    .others = RecipeInputs::asks,
};

extern const Recipe kMassiveActivations{
    .name = "massive-activations",
    .description = "largest activations of the residual stream and their ratio to the median, by boundary and token",
    .needs = "ask sinks",
    .of_others = massive_activations,
    .others = RecipeInputs::asks,
    .options = {"sequence"},
};

extern const Recipe kValueNorms{
    .name = "value-norms",
    .description = "norms of values at sinks and at other tokens",
    .needs = "ask sinks",
    .of_others = value_norms,
    .others = RecipeInputs::asks,
    .options = {"sequence"},
};

}  // namespace headscope::figures
