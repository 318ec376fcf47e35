// SPDX-License-Identifier: GPL-3.0-or-later
// Tokens left (queries) and right (keys) with a line for each weight, as in BertViz's head view: the mean of a layer's
// heads, one head, or several in colours of their own.

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/figures/head_weights.h"
#include "core/figures/map_values.h"
#include "core/figures/recipe.h"
#include "core/figures/token_text.h"
#include "core/figures/word_units.h"
#include "core/maps/pooled_map.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kMostTokens = 64;  ///< a side: more lines than a reader can follow
constexpr std::size_t kMostHeads = 7;     ///< colours that a theme has
constexpr int kPlus = 0, kMinus = 1;      ///< colours of coefficients by sign
constexpr double kLeast = 0.01;           ///< weights below are not drawn, unless others are asked for

struct HeadLines {
    std::string model, site, name;
    std::int64_t layer = 0, head = -1;  ///< -1: mean over heads
    int colour = 0;
    std::vector<float> weights;  ///< [queries, keys]; NaN: not allowed
};

struct Drawing {
    std::string title;
    bool cross = false, words = false;
    maps::Cells region;
    std::vector<std::string> queries, keys;  ///< visible, of the region
    std::vector<HeadLines> heads;
    /// For a recurrent layer: coefficients with signs, drawn as shares of the greatest magnitude; else 0.
    float largest = 0;
};

std::vector<std::int64_t> chosen_heads(const store::AnalysisFile& file, std::int64_t site,
                                       const FigureOptions& options) {
    std::vector<std::int64_t> heads = options.heads;
    if (options.head) heads = {*options.head};
    for (const auto head : heads) {
        FigureOptions one = options;
        one.head = head;
        check_head(file, site, one);
    }
    if (heads.size() > kMostHeads) {
        throw Error(ErrorCode::usage, "--heads",
                    "expected at most " + std::to_string(kMostHeads) + " heads, as many as there are colours",
                    "found " + std::to_string(heads.size()));
    }
    return heads;
}

void check_size(const maps::Cells& region) {
    if (region.queries() <= kMostTokens && region.keys() <= kMostTokens) return;
    const auto end = [](std::int64_t first, std::int64_t stop) { return std::min(stop, first + kMostTokens); };
    throw Error(ErrorCode::usage, "figure lines",
                "expected at most " + std::to_string(kMostTokens) +
                    " queries and keys: choose a part, as with --from-query " + std::to_string(region.q_begin) +
                    " --to-query " + std::to_string(end(region.q_begin, region.q_end)) + " --from-key " +
                    std::to_string(region.k_begin) + " --to-key " + std::to_string(end(region.k_begin, region.k_end)),
                "found " + std::to_string(region.queries()) + " and " + std::to_string(region.keys()));
}

template <class Weights>
std::vector<float> mean_of_heads(std::int64_t heads, const maps::Cells& region, const Weights& weights_of) {
    std::vector<double> sum(static_cast<std::size_t>(region.queries() * region.keys()), 0.0);
    for (std::int64_t h = 0; h < heads; ++h) {
        const std::vector<float> weights = weights_of(h);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weights[i];
    }
    std::vector<float> mean;
    for (const double value : sum) mean.push_back(static_cast<float>(value / static_cast<double>(heads)));
    return mean;
}

std::vector<std::string> labels(const std::vector<std::string>& pieces, std::int64_t first, std::int64_t end) {
    std::vector<std::string> all;
    for (std::int64_t i = first; i < end; ++i) {
        all.push_back(i < std::ssize(pieces) ? visible_token(pieces[static_cast<std::size_t>(i)]) : std::to_string(i));
    }
    return all;
}

Drawing read(const store::AnalysisFile& file, const std::string& model, std::int64_t site, std::int64_t s,
             const FigureOptions& options) {
    const auto& about = file.header().sites[static_cast<std::size_t>(site)];
    const auto heads = chosen_heads(file, site, options);
    Drawing drawing;
    drawing.cross = about.is_cross();
    drawing.words = options.units == Units::words;
    std::optional<SiteWords> words;
    std::optional<store::AnalysisFile::Map> map;
    const bool implicit = values_of_site(file, site, MapValues::weights, "lines") == MapValues::implicit;
    if (implicit && heads.size() > 1) {
        throw Error(ErrorCode::usage, "--heads", "expected one head: at a recurrent layer colours are for signs",
                    "found " + std::to_string(heads.size()));
    }
    if (drawing.words)
        words.emplace(file, s, site, "lines");
    else if (implicit)
        check_recorded(file, s, site, "lines");
    else
        map = recorded_map(file, s, site, "lines");
    const std::int64_t tokens = file.header().queries(s, about);
    drawing.region =
        words      ? chosen_region(options, std::ssize(words->queries.tokens.ids), std::ssize(words->keys.tokens.ids))
        : implicit ? chosen_region(options, tokens, tokens)
                   : chosen_region(options, map->queries, map->keys);
    const maps::Cells& part = drawing.region;
    check_size(part);
    drawing.queries = labels(words ? words->queries.tokens.pieces : stream_pieces(file.header(), s, about.query_stream),
                             part.q_begin, part.q_end);
    drawing.keys = labels(words ? words->keys.tokens.pieces : stream_pieces(file.header(), s, about.key_stream),
                          part.k_begin, part.k_end);
    const auto weights_of = [&](std::int64_t head) {
        if (words) return words->map(head)->values(part);
        if (implicit) return computed_map(file, s, site, head, MapValues::implicit, "lines")->values(part);
        return maps::exact_weights(*map, head, part);
    };
    HeadLines lines{model, site_label(file, site), "mean over heads", about.layer, -1, 0, {}};
    if (heads.empty()) {
        lines.weights = mean_of_heads(about.heads, part, weights_of);
        drawing.heads.push_back(lines);
    }
    for (const auto head : heads) {
        lines.name = "head " + std::to_string(head);
        lines.head = head;
        lines.colour = static_cast<int>(drawing.heads.size());
        lines.weights = weights_of(head);
        drawing.heads.push_back(lines);
    }
    if (!implicit) return drawing;
    for (const float value : drawing.heads.front().weights)
        if (!std::isnan(value)) drawing.largest = std::max(drawing.largest, std::abs(value));
    if (drawing.largest == 0) drawing.largest = 1;
    return drawing;
}

Links links(const Drawing& drawing, double least) {
    Links drawn;
    drawn.left = drawing.queries;
    drawn.right = drawing.keys;
    const std::string word = drawing.words ? " word" : "";
    drawn.left_label = "query" + word + (drawing.cross ? " (target)" : "");
    drawn.right_label = "key" + word + (drawing.cross ? " (source)" : "");
    drawn.first_left = drawing.region.q_begin;
    drawn.first_right = drawing.region.k_begin;
    const auto keys = static_cast<std::size_t>(drawing.region.keys());
    for (const auto& head : drawing.heads) {
        for (std::size_t i = 0; i < head.weights.size(); ++i) {
            const bool of_signs = drawing.largest > 0;
            const float weight = of_signs ? std::abs(head.weights[i]) / drawing.largest : head.weights[i];
            if (!(static_cast<double>(weight) >= least)) continue;
            const int colour = !of_signs ? head.colour : head.weights[i] < 0 ? kMinus : kPlus;
            drawn.links.push_back(
                {static_cast<std::int32_t>(i / keys), static_cast<std::int32_t>(i % keys), weight, colour});
        }
    }
    // Draw the largest weights over the rest.
    std::stable_sort(drawn.links.begin(), drawn.links.end(),
                     [](const auto& a, const auto& b) { return a.weight < b.weight; });
    return drawn;
}

Table lines_table(const std::vector<Drawing>& drawings) {
    std::vector<std::string> model, site, query_token, key_token;
    std::vector<std::int64_t> layer, head, query, key;
    std::vector<double> weight;
    for (const auto& drawing : drawings) {
        for (const auto& lines : drawing.heads) {
            for (std::int64_t q = 0; q < drawing.region.queries(); ++q) {
                for (std::int64_t k = 0; k < drawing.region.keys(); ++k) {
                    const float value = lines.weights[static_cast<std::size_t>(q * drawing.region.keys() + k)];
                    if (std::isnan(value)) continue;
                    model.push_back(lines.model);
                    layer.push_back(lines.layer);
                    site.push_back(lines.site);
                    head.push_back(lines.head);
                    query.push_back(drawing.region.q_begin + q);
                    key.push_back(drawing.region.k_begin + k);
                    query_token.push_back(drawing.queries[static_cast<std::size_t>(q)]);
                    key_token.push_back(drawing.keys[static_cast<std::size_t>(k)]);
                    weight.push_back(value);
                }
            }
        }
    }
    return {
        {{"model", std::move(model)},
         {"layer", std::move(layer)},
         {"site", std::move(site)},
         {"head", std::move(head)},
         {"query", std::move(query)},
         {"key", std::move(key)},
         {drawings.front().words ? "query_word" : "query_token", std::move(query_token)},
         {drawings.front().words ? "key_word" : "key_token", std::move(key_token)},
         {std::all_of(drawings.begin(), drawings.end(), [](const Drawing& d) { return d.largest > 0; }) ? "coefficient"
                                                                                                        : "weight",
          std::move(weight)}}};
}

FigureData lines(Files files, const FigureOptions& options) {
    FigureOptions chosen = options;
    const auto names = file_labels(files, options);
    std::vector<Drawing> drawings;
    for (std::size_t f = 0; f < files.size(); ++f) {
        const auto& file = *files[f];
        const auto s = chosen_sequence(file, chosen);
        if (!chosen.layer) chosen.layer = first_layer_with_matrix(file, chosen);
        const auto sites = chosen_sites(file, chosen);
        for (const auto site : sites) {
            drawings.push_back(read(file, names[f], site, s, chosen));
            std::string& title = drawings.back().title;
            if (files.size() > 1) title = names[f];
            if (sites.size() > 1) title += (title.empty() ? "" : ", ") + site_title(file, site);
        }
    }
    FigureData figure;
    figure.title = "Attention, " + chosen_title(*files.front(), chosen);
    if (options.head) figure.title += ", head " + std::to_string(*options.head);
    if (!options.head && options.heads.empty()) figure.title += ", mean over heads";
    std::size_t most = 1;
    const double least = options.least.value_or(kLeast);
    for (const auto& drawing : drawings) {
        Panel panel;
        panel.title = drawing.title;
        panel.content = links(drawing, least);
        most = std::max({most, drawing.queries.size(), drawing.keys.size()});
        figure.panels.push_back(std::move(panel));
    }
    if (drawings.front().heads.size() > 1) {
        for (const auto& head : drawings.front().heads) figure.legend.push_back({head.name, head.colour});
    }
    const auto signs = std::find_if(drawings.begin(), drawings.end(), [](const Drawing& d) { return d.largest > 0; });
    if (signs != drawings.end()) {
        figure.legend.push_back({"coefficient above 0", kPlus});
        figure.legend.push_back({"below 0", kMinus});
    }
    figure.columns = std::ssize(drawings);
    figure.reflow = true;
    figure.narrowest_mm = 22;
    figure.widest_mm = 70;
    figure.panel_height_mm = static_cast<double>(most) * 3.6;
    figure.notes = source_notes(files, options);
    if (asks_for_part(options)) {
        const maps::Cells& part = drawings.front().region;
        figure.notes.push_back("Queries " + std::to_string(part.q_begin) + " to " + std::to_string(part.q_end - 1) +
                               ", keys " + std::to_string(part.k_begin) + " to " + std::to_string(part.k_end - 1) +
                               ".");
    }
    if (options.units == Units::words) figure.notes.push_back(kWordsNote);
    if (signs != drawings.end()) {
        figure.notes.push_back(definition_note(MapValues::implicit));
        figure.notes.push_back("Lines of recurrent layers: magnitudes, as shares of the largest one shown, " +
                               short_number(static_cast<double>(signs->largest)) + "; colors are signs.");
    }
    figure.notes.push_back("Wider and stronger lines are larger weights. Weights below " + short_number(least) +
                           " are not drawn; the CSV has all weights.");
    figure.table = [drawings = std::move(drawings)] { return lines_table(drawings); };
    return figure;
}

}  // namespace

extern const Recipe kLines{
    .name = "lines",
    .description =
        "tokens left and right with weighted lines between them, of "
        "one head, several, or a layer's mean",
    .needs = "maps (analyze --record maps)",
    .of_analyses = lines,
    .options = {"layer", "head", "heads", "sequence", "names", "least", "units", "tower", "from-query", "to-query",
                "from-key", "to-key"},
    .heads = RecipeHeads::several,
};

}  // namespace headscope::figures
