// SPDX-License-Identifier: GPL-3.0-or-later
// Attention maps from recorded queries and keys, weights or logits: exact cells of a short text, pooled cells of a long
// one, by maximum unless the mean is asked for, so that a diagonal or a sink column one key wide never vanishes.
// Several files stand side by side; texts of several models are a grid, models in columns (Lazy Attention, Fig. 3:
// natural text above the repeated-token probe).

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/figures/recipes/attention_source.h"
#include "core/maps/rank_source.h"

namespace headscope::figures {
namespace {

/// Cells along a side: fewer for each of many maps.
std::int64_t side(std::int64_t positions, std::int64_t maps, std::int64_t most) {
    const std::int64_t share =
        maps <= 1 ? most : std::max<std::int64_t>(128, most / (maps <= 4 ? 2 : (maps <= 16 ? 4 : 8)));
    return std::min(positions, std::max<std::int64_t>(1, share));
}

std::string title_of(MapValues values) {
    if (values == MapValues::rollout) return "Attention rollout";
    if (of_norms(values)) return of_layer(values) ? "Norm-based attention of all heads" : "Norm-based attention";
    return values == MapValues::logits ? "Attention scores" : "Attention";
}

/// "head 3", "mean of the heads".
std::string head_text(std::int64_t head) {
    return head == kMeanOfHeads ? "mean of the heads" : "head " + std::to_string(head);
}

/// Options for each file: its own layer and head, if the options have one for each.
std::vector<FigureOptions> chosen_of_files(Files files, const FigureOptions& options) {
    const auto check = [&](const char* option, const std::vector<std::int64_t>& numbers) {
        if (numbers.empty() || numbers.size() == files.size()) return;
        throw Error(ErrorCode::usage, option,
                    "expected one for all files, or one each of the " + std::to_string(files.size()),
                    "found " + std::to_string(numbers.size()));
    };
    check("--layer", options.layers);
    check("--head", options.heads);
    std::vector<FigureOptions> chosen(files.size(), options);
    for (std::size_t f = 0; f < files.size(); ++f) {
        if (!options.layers.empty()) chosen[f].layer = options.layers[f];
        if (!options.heads.empty()) chosen[f].head = options.heads[f];
        check_one_map(chosen[f]);
        if (!chosen[f].layer) chosen[f].layer = f > 0 ? chosen[0].layer : first_layer_with_matrix(*files[f], chosen[f]);
    }
    return chosen;
}

/// The heads to draw of a site; kMeanOfHeads: their mean, or what is of the layer.
std::vector<std::int64_t> chosen_heads(const store::AnalysisFile& file, std::int64_t site,
                                       const FigureOptions& options) {
    if (of_layer(options.values) || options.head == kMeanOfHeads) return {kMeanOfHeads};
    check_head(file, site, options);
    if (options.head) return {*options.head};
    std::vector<std::int64_t> heads(
        static_cast<std::size_t>(file.header().sites[static_cast<std::size_t>(site)].heads));
    std::iota(heads.begin(), heads.end(), std::int64_t{0});
    return heads;
}

/// In which order files are drawn. Where several models have as many texts each, two or more, and a file one map:
/// models in columns, their texts in rows, in the order of the files. Else `models` is empty, and files come as given.
struct Grid {
    std::vector<std::size_t> order;
    std::vector<std::string> models;  ///< above the columns
};

Grid grid_of(Files files, const std::vector<std::string>& names, bool given, std::int64_t expected) {
    Grid grid;
    std::vector<std::vector<std::size_t>> models;
    const auto same = [&](std::size_t f, std::size_t other) {
        const auto &one = files[f]->header(), &two = files[other]->header();
        return one.model_name == two.model_name && one.model_sha256 == two.model_sha256;
    };
    for (std::size_t f = 0; f < files.size(); ++f) {
        grid.order.push_back(f);
        const auto model =
            std::find_if(models.begin(), models.end(), [&](const auto& known) { return same(f, known.front()); });
        if (model == models.end())
            models.push_back({f});
        else
            model->push_back(f);
    }
    const std::size_t texts = models.front().size();
    const bool alike = std::all_of(models.begin(), models.end(), [&](const auto& m) { return m.size() == texts; });
    if (models.size() < 2 || texts < 2 || !alike || expected != std::ssize(files)) return grid;
    grid.order.clear();
    for (std::size_t t = 0; t < texts; ++t)
        for (const auto& model : models) grid.order.push_back(model[t]);
    for (const auto& model : models) {
        const std::string& name = files[model.front()]->header().model_name;
        const auto others = std::count_if(models.begin(), models.end(), [&](const auto& other) {
            return files[other.front()]->header().model_name == name;
        });
        grid.models.push_back(given || others > 1 || name.empty() ? names[model.front()] : name);
    }
    return grid;
}

/// A text of one token again and again, but for what the tokenizer put before it and behind.
bool one_token(const std::vector<std::string>& tokens) {
    return tokens.size() > 4 && std::all_of(tokens.begin() + 1, tokens.end() - 1,
                                            [&](const std::string& token) { return token == tokens[1]; });
}

FigureData attention(Files files, const FigureOptions& options) {
    const auto chosen = chosen_of_files(files, options);
    const auto names = file_labels(files, options);
    const bool same_layer = options.layers.empty(), same_head = options.heads.empty();
    std::vector<AttentionMap> maps;
    std::vector<std::string> titles;
    std::int64_t expected = 0;
    for (std::size_t f = 0; f < files.size(); ++f)
        for (const auto site : chosen_sites(*files[f], chosen[f]))
            expected += std::ssize(chosen_heads(*files[f], site, chosen[f]));
    const Grid grid = grid_of(files, names, !options.names.empty(), expected);
    for (const std::size_t f : grid.order) {
        const auto& file = *files[f];
        const auto sites = chosen_sites(file, chosen[f]);
        for (const auto site : sites) {
            const auto& about = file.header().sites[static_cast<std::size_t>(site)];
            const AttentionSource source(file, site, chosen[f]);
            for (const std::int64_t h : chosen_heads(file, site, chosen[f])) {
                AttentionMap map;
                map.model = names[f];
                map.site = site_label(file, site);
                map.cross = about.is_cross();
                map.layer = about.layer;
                map.head = h;
                map.kind = values_of_site(file, site, options.values, "attention");
                map.pooling = options.pooling;
                source.fill(map, chosen[f],
                            [&](std::int64_t positions) { return side(positions, expected, options.pixels); });
                std::string title = files.size() > 1 && grid.models.empty() ? names[f] : "";
                const auto add = [&title](const std::string& part) { title += (title.empty() ? "" : ", ") + part; };
                if (!same_layer || sites.size() > 1) add(site_title(file, site));
                if (!of_layer(options.values) && (!same_head || !options.head)) add(head_text(h));
                if (!grid.models.empty() && one_token(map.key_tokens)) add("one token repeated");
                titles.push_back(title);
                maps.push_back(std::move(map));
            }
        }
    }
    const std::int64_t longest = longest_side(maps);
    for (AttentionMap& map : maps) {
        map.scale = scale_of(map, options.scale, grid.models.empty() ? longest_side({&map, 1}) : longest);
        if (map.scale == CellScale::row_rank) map.ranks = maps::row_ranks(map.values, map.rows, map.columns);
    }

    FigureData figure;
    figure.title = title_of(options.values) + (same_layer ? ", " + chosen_title(*files.front(), chosen.front()) : "") +
                   (options.head ? ", " + head_text(*options.head) : "");
    double largest = 0;
    for (const auto& map : maps) largest = std::max(largest, map.largest);
    ColourScale zeros;  // one of all maps, for they may share their bar
    for (const auto& map : maps)
        if (map.kind == MapValues::weights && map.ranks.empty()) set_zero_apart(zeros, map.values);
    for (std::size_t i = 0; i < maps.size(); ++i) {
        figure.panels.push_back(attention_panel(maps[i], titles[i], largest));
        ColourScale& scale = std::get<HeatMap>(figure.panels.back().content).colours;
        scale.zero_apart = zeros.zero_apart && scale.map == ColourMap::sequential && maps[i].ranks.empty();
    }
    const auto count = std::ssize(maps);
    figure.columns = count <= 3 ? count : (count <= 16 ? 4 : 8);
    figure.reflow = true;
    figure.narrowest_mm = count <= 3 ? 50 : (count <= 16 ? 26 : 18);
    if (!grid.models.empty()) {
        figure.columns = std::ssize(grid.models);
        figure.reflow = false;
        figure.column_labels = grid.models;
    }
    // Labels of one map serve another only where both show the same text in the same cells.
    figure.share_x = figure.share_y =
        count > 3 && std::all_of(maps.begin(), maps.end(), [&](const AttentionMap& map) {
            const AttentionMap& first = maps.front();
            return map.cross == first.cross && map.region.queries() == first.region.queries() &&
                   map.region.keys() == first.region.keys() && map.rows == first.rows && map.columns == first.columns &&
                   map.query_tokens == first.query_tokens && map.key_tokens == first.key_tokens;
        });
    figure.panel_aspect = std::clamp(
        static_cast<double>(maps.front().region.queries()) / static_cast<double>(maps.front().region.keys()), 0.3, 2.0);
    if (count == 1) figure.widest_mm = 150;
    // One scale serves all only where all have it: a short and a long text do not.
    figure.shared_colours = std::all_of(figure.panels.begin(), figure.panels.end(), [&](const Panel& p) {
        const ColourScale &own = std::get<HeatMap>(p.content).colours,
                          &first = std::get<HeatMap>(figure.panels.front().content).colours;
        return own.scale == first.scale && own.map == first.map;
    });
    figure.notes = source_notes(files, options);
    if (asks_for_part(options)) figure.notes.push_back(part_note(maps));
    if (std::any_of(maps.begin(), maps.end(), [](const AttentionMap& map) { return map.sequences > 1; }))
        figure.notes.push_back("Mean over sequences at each pair of positions, over those that are long enough.");
    if (const std::string note = definition_note(options.values); !note.empty()) figure.notes.push_back(note);
    const auto some_implicit =
        std::find_if(maps.begin(), maps.end(), [](const AttentionMap& map) { return map.implicit(); });
    if (some_implicit != maps.end()) figure.notes.push_back(definition_note(MapValues::implicit));
    if (options.units == Units::words) figure.notes.push_back(kWordsNote);
    if (std::any_of(maps.begin(), maps.end(), [](const AttentionMap& map) { return !map.key_regions.empty(); }))
        figure.notes.push_back("Lines mark where the texts A and B of the pair, and inserted tokens, begin.");
    figure.notes.push_back(scale_note(maps));
    if (zeros.zero_apart) figure.notes.emplace_back("Weights that are exactly 0 have their own color.");
    if (some_implicit != maps.end() && !maps.front().implicit()) figure.notes.push_back(implicit_note(*some_implicit));
    figure.table = [maps = std::move(maps)] { return attention_table(maps); };
    return figure;
}

}  // namespace

extern const Recipe kAttention{
    .name = "attention",
    .description =
        "attention map of one head, of the mean of a layer's, or of "
        "all heads of --layer; several models and texts in a grid, "
        "each with its own layer and head",
    .needs = "maps (analyze --record maps)",
    .of_analyses = attention,
    .options = {"layer", "head", "sequence", "names", "scale", "values", "pooling", "pixels", "units", "tower",
                "from-query", "to-query", "from-key", "to-key"},
    .heads = RecipeHeads::of_each_file,
};

}  // namespace headscope::figures
