// SPDX-License-Identifier: GPL-3.0-or-later
// Heads over a corpus, of ask corpus: all heads by two measures, and one head with the texts that it keeps.

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/figures/recipes/ask/ask_panels.h"
#include "core/figures/token_text.h"

namespace headscope::figures {
namespace {

constexpr std::size_t kNamedHeads = 6, kShownTexts = 12, kContext = 6;

/// "/corpus/qk_distance" of qk_distance, "/corpus/mean/sink" of sink.
const store::AskTable& measure_of(const store::AskRecord& record, const std::string& option, const std::string& name) {
    for (const char* folder : {"/corpus/", "/corpus/mean/"})
        if (const store::AskTable* found = record.find(folder + name); found && is_corpus_measure(*found))
            return *found;
    std::string known;
    for (const store::AskTable& table : record.tables) {
        if (!is_corpus_measure(table) || table.path.starts_with("/corpus/mean/")) continue;
        known += (known.empty() ? "" : ", ") + table.path.substr(std::string("/corpus/").size());
    }
    throw Error(ErrorCode::usage, option, "expected a measure of heads: " + known + ", or an indicator",
                "found " + escaped(name));
}

std::string axis_label(const store::AskTable& table) {
    return table.units.empty() ? table.long_name : table.long_name + ", " + table.units;
}

std::vector<std::string> corpus_notes(const store::AskRecord& record) {
    const std::vector<double>& counts = record.table("/corpus/progress").values;
    // HeadVis's trees of other programs may lack these.
    const double texts = counts.at(1), tokens = counts.at(2);
    std::vector<std::string> notes{(texts >= 0 ? short_count(texts) + " texts" : std::string("Texts")) +
                                   (tokens >= 0 ? " with " + short_count(tokens) + " tokens, " : ", ") +
                                   record.model_name + "."};
    if (!record.complete) notes.emplace_back("Partial file: measures are computed at the end.");
    return notes;
}

FigureData corpus_scatter(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "corpus-scatter", "corpus");
    const store::AskTable& x = measure_of(record, "--x", options.x.empty() ? "qk_distance" : options.x);
    const store::AskTable& y = measure_of(record, "--y", options.y.empty() ? "induction_score" : options.y);
    const bool spread = y.path.starts_with("/corpus/mean/");
    const std::vector<double>* deviations = nullptr;
    if (spread) deviations = &record.table("/corpus/std/" + y.path.substr(std::string("/corpus/mean/").size())).values;
    const auto heads = static_cast<std::size_t>(record.size_of("/head"));
    Curves curves;
    std::vector<std::string> names;
    std::vector<std::size_t> cells;
    for (std::size_t site = 0; site < record.sites.size(); ++site) {
        Curve curve;
        curve.name = site_label(std::span<const Site>(record.sites), static_cast<std::int64_t>(site));
        curve.points = true;
        for (std::size_t cell = site * heads; cell < (site + 1) * heads; ++cell) {
            if (std::isnan(x.values[cell]) || std::isnan(y.values[cell])) continue;
            curve.x.push_back(x.values[cell]);
            curve.y.push_back(y.values[cell]);
            if (spread) curve.error.push_back((*deviations)[cell]);
            curve.cells.push_back(of_site(static_cast<std::int64_t>(site))
                                      .within(of_head(static_cast<std::int64_t>(cell - site * heads))));
            cells.push_back(cell);
        }
        if (curve.x.empty()) continue;
        names.push_back(curve.name);
        curves.curves.push_back(std::move(curve));
    }
    for (std::size_t i = 0; i < curves.curves.size(); ++i) colour_member(curves.curves[i], i, curves.curves.size());
    std::stable_sort(cells.begin(), cells.end(),
                     [&](std::size_t a, std::size_t b) { return y.values[a] > y.values[b]; });
    for (std::size_t i = 0; i < std::min(kNamedHeads, cells.size()); ++i)
        curves.labels.push_back(
            {x.values[cells[i]], y.values[cells[i]],
             std::to_string(record.sites[cells[i] / heads].layer) + "." + std::to_string(cells[i] % heads)});
    FigureData figure;
    figure.title = "Heads over a corpus";
    Panel panel;
    panel.content = std::move(curves);
    panel.x.label = axis_label(x);
    panel.y.label = axis_label(y);
    figure.panels.push_back(std::move(panel));
    figure.legend = member_legend(names);
    figure.panel_aspect = 0.7;
    figure.notes = corpus_notes(record);
    figure.notes.emplace_back(spread ? "A dot is a head, colored by layer; bars are standard deviations over texts."
                                     : "A dot is a head, colored by layer; labels are layer.head.");
    Table numbers;
    std::vector<std::int64_t> sites, own;
    for (std::size_t cell = 0; cell < x.values.size(); ++cell) {
        sites.push_back(static_cast<std::int64_t>(cell / heads));
        own.push_back(static_cast<std::int64_t>(cell % heads));
    }
    numbers.columns = {{"site", std::move(sites)}, {"head", std::move(own)}, {"x", x.values}, {"y", y.values}};
    figure.table = [numbers = std::move(numbers)] { return numbers; };
    return figure;
}

/// One head's row of a table [site, head, n].
std::vector<double> row_of_head(const store::AskRecord& record, const std::string& path, std::size_t cell) {
    const std::vector<double>& values = record.table(path).values;
    const std::size_t size = values.size() / (record.sites.size() * static_cast<std::size_t>(record.size_of("/head")));
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(cell * size);
    return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

std::size_t chosen_cell(const store::AskRecord& record, const FigureOptions& options) {
    const std::int64_t layer = options.layer.value_or(0), head = options.head.value_or(0);
    std::string known;
    for (std::size_t site = 0; site < record.sites.size(); ++site) {
        const Site& one = record.sites[site];
        if (!one.has_matrix) continue;
        known += (known.empty() ? "" : ", ") + std::to_string(one.layer);
        if (one.layer != layer) continue;
        if (head < 0 || head >= one.heads)
            throw Error(ErrorCode::usage, "--head", "expected a head from 0 to " + std::to_string(one.heads - 1),
                        "found " + std::to_string(head));
        return site * static_cast<std::size_t>(record.size_of("/head")) + static_cast<std::size_t>(head);
    }
    throw Error(ErrorCode::usage, "--layer", "expected a layer with weights: " + known,
                "found " + std::to_string(layer));
}

Panel token_panel(const store::AskRecord& record, std::size_t cell, const char* title, const char* ids,
                  const char* masses) {
    const std::vector<double> tokens = row_of_head(record, ids, cell), weights = row_of_head(record, masses, cell);
    TextBlock block;
    block.colours.label = "weight";
    block.colours.maximum = weights.empty() || std::isnan(weights.front()) ? 1 : weights.front();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (!(tokens[i] >= 0)) continue;
        TextBlock::Chip chip;
        chip.text = ask_word(record, tokens[i]);
        chip.values = {static_cast<float>(weights[i])};
        chip.space_before = i > 0;
        block.chips.push_back(std::move(chip));
    }
    Panel panel;
    panel.title = title;
    panel.content = std::move(block);
    return panel;
}

/// Kept texts by largest weight, with the words around the query.
TextTable kept_table(const store::AskRecord& record, std::size_t cell) {
    const auto row = [&](const char* name) { return row_of_head(record, std::string("/corpus/") + name, cell); };
    const auto maxima = row("kept_maximum"), places = row("kept_sequence"), queries = row("kept_query"),
               keys = row("kept_key"), documents = row("kept");
    std::vector<std::size_t> order;
    for (std::size_t slot = 0; slot < places.size(); ++slot)
        if (places[slot] >= 0) order.push_back(slot);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return maxima[a] > maxima[b]; });
    if (order.size() > kShownTexts) order.resize(kShownTexts);
    TextTable table{{"key", "query", "text before the query", "weight", "distance", "document"}, {}};
    table.words = 3;
    for (const std::size_t slot : order) {
        const auto& pieces = record.sequences.at(static_cast<std::size_t>(places[slot])).predicted().pieces;
        const auto query = static_cast<std::size_t>(queries[slot]), key = static_cast<std::size_t>(keys[slot]);
        if (query >= pieces.size() || key >= pieces.size()) continue;
        std::string before;
        for (std::size_t i = query - std::min(query, kContext); i <= query; ++i) before += pieces[i];
        table.rows.push_back({visible_token(pieces[key]), visible_token(pieces[query]), visible_token(before),
                              short_number(maxima[slot]), short_number(queries[slot] - keys[slot], 9),
                              short_number(documents[slot], 9)});
    }
    return table;
}

FigureData corpus_head(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "corpus-head", "corpus");
    const std::size_t cell = chosen_cell(record, options);
    FigureData figure;
    figure.title = "Head " + std::to_string(options.layer.value_or(0)) + "." +
                   std::to_string(options.head.value_or(0)) + " over a corpus";
    Panel maxima;
    maxima.title = "largest weight of each text";
    Curve histogram;
    histogram.name = "texts";
    histogram.y = row_of_head(record, "/corpus/maximum_histogram", cell);
    for (std::size_t i = 0; i < histogram.y.size(); ++i)
        histogram.x.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(histogram.y.size()));
    histogram.filled = true;
    maxima.content = Curves{{std::move(histogram)}, {}};
    maxima.x.label = "Largest weight but for the first query and key";
    maxima.x.range = std::pair(0.0, 1.0);
    maxima.y.label = "Texts";
    figure.panels.push_back(std::move(maxima));

    Panel distances;
    distances.title = "distances in kept texts";
    Curve weights;
    weights.name = "weight";
    weights.y = row_of_head(record, "/corpus/distance_histogram", cell);
    double all = 0;
    for (const double one : weights.y) all += one;
    for (std::size_t bin = 0; bin < weights.y.size(); ++bin) {
        weights.x.push_back(static_cast<double>(bin));
        if (all > 0) weights.y[bin] /= all;
        distances.x.ticks.push_back(
            {static_cast<double>(bin), short_number(record.table("/corpus/distance").values.at(bin), 9)});
    }
    weights.points = true;
    distances.content = Curves{{std::move(weights)}, {}};
    distances.x.label = "Distance of query and key from, tokens";
    distances.y.label = "Share of the weight";
    figure.panels.push_back(std::move(distances));
    figure.panels.push_back(
        token_panel(record, cell, "tokens of queries", "/corpus/query_token", "/corpus/query_mass"));
    figure.panels.push_back(token_panel(record, cell, "tokens of keys", "/corpus/key_token", "/corpus/key_mass"));
    figure.columns = 2;
    figure.reflow = true;
    figure.narrowest_mm = 60;
    figure.panel_aspect = 0.6;
    figure.notes = corpus_notes(record);
    if (record.find("/corpus/interval_count"))  // not of a tree, whose writer chose
        figure.notes.emplace_back(
            "Kept texts: the 10 with the largest weights, and 3 of each lower interval by chance.");
    if (TextTable kept = kept_table(record, cell); !kept.rows.empty()) figure.text_table = std::move(kept);
    figure.table = [table = ask_table(record, record.table("/corpus/distance_histogram"))] { return table; };
    return figure;
}

}  // namespace

extern const Recipe kCorpusScatter{
    .name = "corpus-scatter",
    .description = "all heads by two measures over a corpus",
    .needs = "ask corpus",
    .of_others = corpus_scatter,
    .others = RecipeInputs::asks,
    .options = {"x", "y"},
};

extern const Recipe kCorpusHead{
    .name = "corpus-head",
    .description = "one head over a corpus: largest weights, distances, tokens and the texts that it keeps",
    .needs = "ask corpus",
    .of_others = corpus_head,
    .others = RecipeInputs::asks,
    .options = {"layer", "head"},
};

}  // namespace headscope::figures
