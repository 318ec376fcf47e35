// SPDX-License-Identifier: GPL-3.0-or-later
// Attention maps from recorded queries and keys: exact cells of a short text, max-pooled cells of a long one, so that
// a diagonal or a sink column one key wide never vanishes. Several files stand side by side (Lazy Attention, Fig. 3:
// natural text and the repeated-token probe).

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/figures/recipe.h"
#include "core/figures/token_text.h"
#include "kernels/key_ranges.h"
#include "kernels/tiles.h"

namespace headscope::figures {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kMostLabels = 400;  ///< no page has room for more tokens along a side
constexpr std::int64_t kShort = 256;       ///< up to here a square-root scale; the weights of longer texts need decades

struct Map {
    std::string model, site;
    bool cross = false;
    std::int64_t layer = 0, head = 0, queries = 0, keys = 0, rows = 0, columns = 0;
    std::vector<std::string> query_tokens, key_tokens;  ///< as read, empty for other streams
    std::vector<float> values;                          ///< [rows, columns]; NaN: not allowed
    std::int64_t limit = 0;                             ///< trained positions; 0: none, or not passed
};

store::AnalysisFile::Map recorded(const store::AnalysisFile& file, std::int64_t s, std::int64_t site) {
    if (!file.header().record.maps) {
        throw Error(ErrorCode::usage, "figure attention of " + file_name(file),
                    "expected a file with maps: analyze with --record maps", "found none recorded");
    }
    if (!file.header().sites[static_cast<std::size_t>(site)].has_matrix) {
        throw Error(ErrorCode::usage, "figure attention, layer " + site_label(file, site),
                    "expected a layer with an attention matrix", "found one that mixes tokens without");
    }
    if (!file.site_done(s, site)) {
        throw Error(ErrorCode::usage, "figure attention, layer " + site_label(file, site) + " of " + file_name(file),
                    "expected a layer that is done", "found a partial file that ends before it");
    }
    auto map = file.map(s, site);
    if (!map) {
        throw Error(ErrorCode::usage, "figure attention, layer " + site_label(file, site) + " of " + file_name(file),
                    "expected a layer whose map was recorded", "found none");
    }
    return std::move(*map);
}

/// NaN into every cell under which the rule allows no pair: future, window, blocks, padding.
void hide_forbidden(const store::AnalysisFile::Map& map, std::int64_t head, std::int64_t rows, std::int64_t columns,
                    std::vector<float>& values) {
    const kernels::ScoreRule& rule = map.rule;
    const auto bounds = kernels::sequence_bounds(rule, 0, map.queries, map.keys);
    // Per row of cells: +1 where a range of allowed keys begins, -1 behind its end.
    std::vector<std::int64_t> change(static_cast<std::size_t>(columns) + 1);
    const auto allow = [&](std::int64_t begin, std::int64_t end) {
        if (begin >= end) return;
        ++change[static_cast<std::size_t>(begin * columns / map.keys)];
        --change[static_cast<std::size_t>((end - 1) * columns / map.keys) + 1];
    };
    std::int64_t i = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
        std::fill(change.begin(), change.end(), 0);
        for (; i < map.queries && i * rows / map.queries == r; ++i)
            kernels::for_key_ranges(rule, bounds, 0, head, map.heads, i, allow);
        std::int64_t ranges = 0;
        for (std::int64_t c = 0; c < columns; ++c) {
            ranges += change[static_cast<std::size_t>(c)];
            if (ranges == 0) values[static_cast<std::size_t>(r * columns + c)] = kNone;
        }
    }
}

std::vector<float> exact_cells(const store::AnalysisFile::Map& map, std::int64_t head) {
    std::vector<float> weights(static_cast<std::size_t>(map.queries * map.keys));
    kernels::attention_weights(map.input(), map.row_constant, 0, head, 0, map.queries, 0, map.keys, weights.data());
    hide_forbidden(map, head, map.queries, map.keys, weights);
    return weights;
}

std::vector<float> pooled_cells(const store::AnalysisFile::Map& map, std::int64_t head, std::int64_t rows,
                                std::int64_t columns) {
    std::vector<float> most(static_cast<std::size_t>(rows * columns));
    kernels::attention_map(map.input(), map.row_constant, {0, head, 0, map.queries, 0, map.keys}, rows, columns,
                           nullptr, most.data());
    hide_forbidden(map, head, rows, columns, most);
    return most;
}

std::vector<std::string> labels(const std::vector<std::string>& tokens) {
    std::vector<std::string> all;
    for (const auto& token : tokens) all.push_back(visible_token(token));
    return all;
}

Axis axis(const char* name, const std::vector<std::string>& tokens, std::int64_t positions, std::int64_t cells) {
    Axis axis;
    axis.label = name;
    axis.cells_per_value = static_cast<double>(cells) / static_cast<double>(positions);
    if (cells == positions && positions <= kMostLabels && std::ssize(tokens) == positions)
        axis.cell_labels = labels(tokens);
    return axis;
}

Panel panel(const Map& map, const std::string& title) {
    Panel drawn;
    drawn.title = title;
    drawn.x = axis(map.cross ? "key (source)" : "key", map.key_tokens, map.keys, map.columns);
    drawn.y = axis(map.cross ? "query (target)" : "query", map.query_tokens, map.queries, map.rows);
    HeatMap cells;
    cells.rows = map.rows;
    cells.columns = map.columns;
    cells.values = map.values;
    cells.colours.label = "attention weight";
    if (std::max(map.queries, map.keys) > kShort) {
        cells.colours.scale = ScaleKind::logarithmic;
        cells.colours.minimum = 1e-4;
    } else {
        cells.colours.scale = ScaleKind::square_root;
    }
    drawn.content = std::move(cells);
    if (map.limit > 0) {
        drawn.markers.push_back({true, static_cast<double>(map.limit), "trained to " + std::to_string(map.limit)});
        drawn.markers.push_back({false, static_cast<double>(map.limit), ""});
    }
    return drawn;
}

Table attention_table(const std::vector<Map>& maps) {
    std::vector<std::string> model, site, query_token, key_token;
    std::vector<std::int64_t> layer, head, query, key;
    std::vector<double> weight;
    const auto token = [](const std::vector<std::string>& tokens, std::int64_t at, bool exact) {
        return exact && at < std::ssize(tokens) ? visible_token(tokens[static_cast<std::size_t>(at)]) : std::string();
    };
    bool pooled = false;
    for (const auto& map : maps) {
        const bool exact = map.rows == map.queries && map.columns == map.keys;
        pooled |= !exact;
        for (std::int64_t r = 0; r < map.rows; ++r) {
            for (std::int64_t c = 0; c < map.columns; ++c) {
                const float value = map.values[static_cast<std::size_t>(r * map.columns + c)];
                if (std::isnan(value)) continue;
                model.push_back(map.model);
                layer.push_back(map.layer);
                site.push_back(map.site);
                head.push_back(map.head);
                const std::int64_t q = (r * map.queries + map.rows - 1) / map.rows;
                const std::int64_t k = (c * map.keys + map.columns - 1) / map.columns;
                query.push_back(q);
                key.push_back(k);
                query_token.push_back(token(map.query_tokens, q, exact));
                key_token.push_back(token(map.key_tokens, k, exact));
                weight.push_back(value);
            }
        }
    }
    return {{{"model", std::move(model)},
             {"layer", std::move(layer)},
             {"site", std::move(site)},
             {"head", std::move(head)},
             {pooled ? "first_query" : "query", std::move(query)},
             {pooled ? "first_key" : "key", std::move(key)},
             {"query_token", std::move(query_token)},
             {"key_token", std::move(key_token)},
             {pooled ? "largest_weight" : "weight", std::move(weight)}}};
}

std::vector<std::string> pieces(const store::AnalysisHeader& header, std::int64_t s, const std::string& stream) {
    const auto other = header.streams.find(stream);
    const auto& sequences = other == header.streams.end() ? header.sequences : other->second;
    if (s >= std::ssize(sequences) || (other == header.streams.end() && stream != "tokens")) return {};
    return sequences[static_cast<std::size_t>(s)].pieces;
}

/// Cells along a side: fewer for each of many maps.
std::int64_t side(std::int64_t positions, std::int64_t maps, std::int64_t most) {
    const std::int64_t share =
        maps <= 1 ? most : std::max<std::int64_t>(128, most / (maps <= 4 ? 2 : (maps <= 16 ? 4 : 8)));
    return std::min(positions, std::max<std::int64_t>(1, share));
}

}  // namespace

FigureData attention(Files files, const FigureOptions& options) {
    FigureOptions chosen = options;
    const auto names = file_labels(files);
    std::vector<Map> maps;
    std::vector<std::string> titles;
    std::int64_t expected = 0;
    for (const auto& file : files) {
        if (!chosen.layer) chosen.layer = file->header().sites.empty() ? 0 : file->header().sites.front().layer;
        for (const auto site : chosen_sites(*file, chosen)) {
            check_head(*file, site, chosen);
            expected += chosen.head ? 1 : file->header().sites[static_cast<std::size_t>(site)].heads;
        }
    }
    bool pooled = false, logarithmic = false, square_root = false;
    for (std::size_t f = 0; f < files.size(); ++f) {
        const auto& file = *files[f];
        const auto s = chosen_sequence(file, chosen);
        const auto sites = chosen_sites(file, chosen);
        for (const auto site : sites) {
            const auto& about = file.header().sites[static_cast<std::size_t>(site)];
            const auto recorded_map = recorded(file, s, site);
            for (std::int64_t h = 0; h < recorded_map.heads; ++h) {
                if (chosen.head && *chosen.head != h) continue;
                Map map;
                map.model = names[f];
                map.site = site_label(file, site);
                map.cross = about.kind == "cross";
                map.layer = about.layer;
                map.head = h;
                map.queries = recorded_map.queries;
                map.keys = recorded_map.keys;
                map.rows = side(map.queries, expected, options.pixels);
                map.columns = side(map.keys, expected, options.pixels);
                map.query_tokens = pieces(file.header(), s, about.query_stream);
                map.key_tokens = pieces(file.header(), s, about.key_stream);
                const bool exact = map.rows == map.queries && map.columns == map.keys;
                map.values =
                    exact ? exact_cells(recorded_map, h) : pooled_cells(recorded_map, h, map.rows, map.columns);
                pooled |= !exact;
                const bool is_long = std::max(map.queries, map.keys) > kShort;
                logarithmic |= is_long;
                square_root |= !is_long;
                const std::int64_t limit = file.header().max_positions;
                if (limit > 0 && std::max(map.queries, map.keys) > limit) map.limit = limit;
                std::string title = files.size() > 1 ? names[f] : "";
                // All of one layer, which the figure's title names.
                if (sites.size() > 1)
                    title += (title.empty() ? "" : ", ") + (about.branch.empty() ? about.kind : about.branch);
                if (!chosen.head) title += (title.empty() ? "" : ", ") + ("head " + std::to_string(h));
                titles.push_back(title);
                maps.push_back(std::move(map));
            }
        }
    }

    FigureData figure;
    figure.title = "Attention, layer " + std::to_string(*chosen.layer) +
                   (chosen.head ? ", head " + std::to_string(*chosen.head) : "");
    for (std::size_t i = 0; i < maps.size(); ++i) figure.panels.push_back(panel(maps[i], titles[i]));
    const auto count = std::ssize(maps);
    figure.columns = count <= 3 ? count : (count <= 16 ? 4 : 8);
    figure.reflow = true;
    figure.narrowest_mm = count <= 3 ? 50 : (count <= 16 ? 26 : 18);
    // Labels of one map serve another only where both show the same text in the same cells.
    figure.share_x = figure.share_y =
        count > 3 && std::all_of(maps.begin(), maps.end(), [&](const Map& map) {
            const Map& first = maps.front();
            return map.cross == first.cross && map.queries == first.queries && map.keys == first.keys &&
                   map.rows == first.rows && map.columns == first.columns && map.query_tokens == first.query_tokens &&
                   map.key_tokens == first.key_tokens;
        });
    figure.panel_aspect =
        std::clamp(static_cast<double>(maps.front().queries) / static_cast<double>(maps.front().keys), 0.3, 2.0);
    if (count == 1) figure.widest_mm = 150;
    // One scale serves all only where all have it: a short and a long text do not.
    figure.shared_colours = std::all_of(figure.panels.begin(), figure.panels.end(), [&](const Panel& p) {
        return std::get<HeatMap>(p.content).colours.scale ==
               std::get<HeatMap>(figure.panels.front().content).colours.scale;
    });
    figure.notes = source_notes(files, options);
    std::string how;
    if (square_root) {
        how = "Colour by the square root of the weight" +
              (logarithmic ? " up to " + std::to_string(kShort) + " tokens. " : std::string("."));
    }
    if (logarithmic)
        how += square_root ? "Beyond, logarithmic; smaller weights than the scale's end are drawn as its end."
                           : "Logarithmic colour scale; smaller weights than its end are drawn as its end.";
    how += " Grey: not allowed by the mask.";
    if (pooled) how += " Each cell shows the largest weight of the pairs under it.";
    figure.notes.push_back(how);
    figure.table = [maps = std::move(maps)] { return attention_table(maps); };
    return figure;
}

}  // namespace headscope::figures
