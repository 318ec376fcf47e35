// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/map_difference.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/base/error.h"
#include "core/figures/head_weights.h"
#include "core/figures/map_pairs.h"
#include "core/figures/recipes/difference_sides.h"
#include "core/figures/token_text.h"
#include "core/maps/difference_map.h"
#include "core/maps/pooled_map.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kMostLabels = 400;  ///< no page has room for more tokens along a side

struct MapDifference {
    std::string site, title;
    bool cross = false;
    std::int64_t layer = 0, head = 0, rows = 0, columns = 0;
    std::int64_t other_layer = 0, other_head = 0;
    maps::Cells region;
    std::vector<float> values;  ///< [rows, columns]
    double largest = 0;         ///< magnitude of all differences of the maps, also of those that are not drawn
    std::vector<std::string> query_tokens, key_tokens;
    MapPairs pairs;
    MapValues first = MapValues::weights, second = MapValues::weights;  ///< what is subtracted from what
    std::vector<AttentionMap> sides;                                    ///< with options.sides both of them
    bool exact() const { return rows == region.queries() && columns == region.keys(); }
};

/// In each cell the mean difference, or the one that is farthest from 0, so that a diagonal one key wide never
/// vanishes.
std::vector<float> pooled_difference(const maps::DifferenceMap& difference, const MapDifference& map, bool mean) {
    return maps::pooled_bands(map.region, map.rows, map.columns, mean,
                              [&](const maps::Cells& band) { return difference.values(band); });
}

double largest_of(const std::vector<float>& values) {
    double largest = 0;
    for (const float value : values)
        if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
    return largest;
}

/// A token and its partner: once where they agree, alone where it has none.
std::vector<std::string> both_tokens(const std::vector<std::string>& a, const std::vector<std::string>& b,
                                     const TokenAlignment& alignment) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < std::min(a.size(), alignment.to_b.size()); ++i) {
        const std::int64_t partner = alignment.to_b[i];
        const std::string* other =
            partner < 0 || partner >= std::ssize(b) ? nullptr : &b[static_cast<std::size_t>(partner)];
        all.push_back(other == nullptr || *other == a[i] ? visible_token(a[i])
                                                         : visible_token(a[i], 8) + " / " + visible_token(*other, 8));
    }
    return all;
}

MapDifference read_difference(Files files, std::int64_t site, std::int64_t other, const FigureOptions& options) {
    const FigureOptions minuend = minuend_options(options);
    const MapPlace first{*files[0], chosen_sequence(*files[0], options), site};
    const MapPlace second{*files[1], chosen_sequence(*files[1], minuend), other};
    check_head(first.file, site, options);
    check_head(second.file, other, minuend);
    const MapSide a = read_side(first, *options.head, options.values),
                  b = read_side(second, *minuend.head, options.values);
    MapDifference map;
    map.site = site_label(first.file, site);
    map.title = site_title(first.file, site);
    map.cross = first.about().is_cross();
    map.layer = first.about().layer;
    map.head = *options.head;
    map.other_layer = second.about().layer;
    map.other_head = *minuend.head;
    map.pairs = pair_maps(first, *a.map, second, *b.map);
    const maps::DifferenceMap difference(a.map, b.map, map.pairs.queries.to_b, map.pairs.keys.to_b);
    map.first = a.values;
    map.second = b.values;
    map.region = chosen_region(options, a.map->queries(), a.map->keys());
    map.rows = std::min(map.region.queries(), options.pixels);
    map.columns = std::min(map.region.keys(), options.pixels);
    map.values = pooled_difference(difference, map, options.pooling == Pooling::mean);
    if (options.sides) map.sides = read_sides(first, second, map.pairs, options);
    const bool whole = map.region.queries() == a.map->queries() && map.region.keys() == a.map->keys();
    if (whole || options.pooling == Pooling::mean) {
        map.largest = largest_of(map.values);
    } else {  // a part has the colors of the whole
        MapDifference all;
        all.pairs = map.pairs;
        all.region = chosen_region({}, a.map->queries(), a.map->keys());
        all.rows = all.columns = 1;
        map.largest = largest_of(pooled_difference(difference, all, false));
    }
    const auto pieces = [](const MapPlace& place, const std::string& stream) {
        return stream_pieces(place.file.header(), place.sequence, stream);
    };
    map.query_tokens = both_tokens(pieces(first, first.about().query_stream),
                                   pieces(second, second.about().query_stream), map.pairs.queries);
    map.key_tokens =
        both_tokens(pieces(first, first.about().key_stream), pieces(second, second.about().key_stream), map.pairs.keys);
    return map;
}

Axis axis(const char* name, const std::vector<std::string>& tokens, std::int64_t first, std::int64_t end,
          std::int64_t cells) {
    Axis axis;
    axis.label = name;
    axis.first_cell = first;
    axis.cells_per_value = static_cast<double>(cells) / static_cast<double>(end - first);
    if (cells == end - first && cells <= kMostLabels && end <= std::ssize(tokens))
        axis.cell_labels.assign(tokens.begin() + first, tokens.begin() + end);
    return axis;
}

Table map_table(const std::vector<MapDifference>& maps, const std::string& pooled_name) {
    std::vector<std::string> site, query_token, key_token;
    std::vector<std::int64_t> layer, head, query, key, other_layer, other_head, other_query, other_key;
    std::vector<double> value;
    bool pooled = false, aligned = false;
    for (const auto& map : maps) {
        pooled |= !map.exact();
        aligned |= !map.pairs.identical();
        const auto token = [&](const std::vector<std::string>& tokens, std::int64_t at) {
            return map.exact() && at < std::ssize(tokens) ? tokens[static_cast<std::size_t>(at)] : std::string();
        };
        for (std::int64_t i = 0; i < map.rows * map.columns; ++i) {
            const float cell = map.values[static_cast<std::size_t>(i)];
            if (std::isnan(cell)) continue;
            const std::int64_t r = i / map.columns, c = i % map.columns;
            const auto q = map.region.query_of(r, map.rows), k = map.region.key_of(c, map.columns);
            layer.push_back(map.layer);
            site.push_back(map.site);
            head.push_back(map.head);
            other_layer.push_back(map.other_layer);
            other_head.push_back(map.other_head);
            query.push_back(q);
            key.push_back(k);
            query_token.push_back(token(map.query_tokens, q));
            key_token.push_back(token(map.key_tokens, k));
            other_query.push_back(map.pairs.queries.to_b[static_cast<std::size_t>(q)]);
            other_key.push_back(map.pairs.keys.to_b[static_cast<std::size_t>(k)]);
            value.push_back(cell);
        }
    }
    Table table{{{"layer", std::move(layer)},
                 {"site", std::move(site)},
                 {"head", std::move(head)},
                 {pooled ? "first_query" : "query", std::move(query)},
                 {pooled ? "first_key" : "key", std::move(key)},
                 {"query_token", std::move(query_token)},
                 {"key_token", std::move(key_token)},
                 {pooled ? pooled_name : "difference", std::move(value)}}};
    const MapDifference& first = maps.front();
    if (first.other_layer != first.layer || first.other_head != first.head) {
        table.columns.push_back({"other_layer", std::move(other_layer)});
        table.columns.push_back({"other_head", std::move(other_head)});
    }
    if (aligned && !pooled) {
        table.columns.push_back({"other_query", std::move(other_query)});
        table.columns.push_back({"other_key", std::move(other_key)});
    }
    return table;
}

/// A row a cell of each panel.
Table sides_table(const std::vector<MapDifference>& maps) {
    std::vector<std::string> panel, site, query_token, key_token;
    std::vector<std::int64_t> layer, head, query, key;
    std::vector<double> value;
    bool pooled = false;
    const auto add = [&](const char* name, const auto& map, bool raw) {
        const bool exact = map.exact();
        pooled |= !exact;
        const auto token = [&](const std::vector<std::string>& tokens, std::int64_t at) {
            if (!exact || at >= std::ssize(tokens)) return std::string();
            const std::string& piece = tokens[static_cast<std::size_t>(at)];
            return raw ? visible_token(piece) : piece;
        };
        for (std::int64_t i = 0; i < map.rows * map.columns; ++i) {
            const float cell = map.values[static_cast<std::size_t>(i)];
            if (std::isnan(cell)) continue;
            panel.emplace_back(name);
            site.push_back(map.site);
            layer.push_back(map.layer);
            head.push_back(map.head);
            query.push_back(map.region.query_of(i / map.columns, map.rows));
            key.push_back(map.region.key_of(i % map.columns, map.columns));
            query_token.push_back(token(map.query_tokens, query.back()));
            key_token.push_back(token(map.key_tokens, key.back()));
            value.push_back(static_cast<double>(cell));
        }
    };
    for (const MapDifference& map : maps) {
        add("baseline", map.sides[0], true);
        add("compared", map.sides[1], true);
        add("difference", map, false);
    }
    return {{{"panel", std::move(panel)},
             {"layer", std::move(layer)},
             {"site", std::move(site)},
             {"head", std::move(head)},
             {pooled ? "first_query" : "query", std::move(query)},
             {pooled ? "first_key" : "key", std::move(key)},
             {"query_token", std::move(query_token)},
             {"key_token", std::move(key_token)},
             {"value", std::move(value)}}};
}

/// "weights": all values of a kind.
std::string plural(MapValues values) {
    return values_word(values) + "s";
}

/// True if one sentence names minuend and subtrahend of all maps.
bool of_one_kind(const std::vector<MapDifference>& maps) {
    return std::all_of(maps.begin(), maps.end(), [&](const MapDifference& map) {
        return map.first == maps.front().first && map.second == maps.front().second;
    });
}

std::string difference_label(const std::vector<MapDifference>& maps) {
    const MapDifference& map = maps.front();
    if (!of_one_kind(maps)) return "difference";
    return map.first == map.second ? "difference of " + plural(map.first)
                                   : values_word(map.second) + " minus " + values_word(map.first);
}

std::string subtraction(const std::vector<MapDifference>& maps) {
    const MapDifference& map = maps.front();
    if (!of_one_kind(maps)) return "The second minus the first: weights, and coefficients of recurrent layers";
    if (map.first == MapValues::logits) return "Scores before the normalizer of the second minus those of the first";
    std::string second = plural(map.second);
    second[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(second[0])));
    return second + " of the second minus " + (map.first == map.second ? "those" : plural(map.first)) + " of the first";
}

/// Beside both maps linear only where they are.
bool is_linear(const std::vector<MapDifference>& maps, const FigureOptions& options) {
    if (!options.sides) return options.scale != CellScale::square_root;
    return std::all_of(maps.begin(), maps.end(), [](const MapDifference& map) {
        return map.sides[0].scale == CellScale::linear && map.sides[1].scale == CellScale::linear;
    });
}

std::string change_note(const std::vector<MapDifference>& maps, const FigureOptions& options, bool pooled, bool whole) {
    std::string note = subtraction(maps);
    note += is_linear(maps, options) ? ", on a linear scale symmetric around 0."
                                     : ", square-root color scale, symmetric around 0.";
    note += whole ? " Gray: masked." : " Gray: masked, or a token without a partner.";
    if (pooled)
        note += options.pooling == Pooling::mean ? " Each cell shows the mean difference of the pairs under it."
                                                 : " Each cell shows its difference farthest from 0.";
    return note;
}

/// The scales that a difference has; with options.sides also the logarithmic one, of the two maps. Throws Error
/// (usage).
void check_scale(const FigureOptions& options) {
    if (options.scale != CellScale::row_rank && (options.sides || options.scale != CellScale::logarithmic)) return;
    throw Error(ErrorCode::usage, "--scale",
                options.sides ? "expected linear, logarithmic or square-root with --sides"
                              : "expected linear or square-root for a difference",
                std::string("found ") + (options.scale == CellScale::row_rank ? "row-rank" : "logarithmic"));
}

}  // namespace

void not_alike(const std::string& expected, const std::string& found) {
    throw Error(ErrorCode::mismatch, "figure difference", expected, found);
}

FigureData map_difference(Files files, const FigureOptions& options) {
    check_scale(options);
    std::vector<MapDifference> maps;
    const auto sites = chosen_sites(*files[0], options), others = chosen_sites(*files[1], minuend_options(options));
    if (sites.size() != others.size())
        not_alike("expected two layers alike; --tower chooses one attention of a layer",
                  "found " + std::to_string(sites.size()) + " and " + std::to_string(others.size()) + " attentions");
    for (std::size_t i = 0; i < sites.size(); ++i) maps.push_back(read_difference(files, sites[i], others[i], options));
    FigureData figure;
    double most = 0;
    for (const auto& map : maps) most = std::max(most, map.largest);
    bool pooled = false, whole = true;
    const bool linear = is_linear(maps, options);
    std::vector<AttentionMap> sides;
    for (const auto& map : maps) {
        for (Panel& side : side_panels(map.sides)) {
            if (maps.size() > 1) side.title = map.title;
            figure.panels.push_back(std::move(side));
        }
        sides.insert(sides.end(), map.sides.begin(), map.sides.end());
        Panel panel;
        if (maps.size() > 1) panel.title = map.title;
        panel.x =
            axis(map.cross ? "key (source)" : "key", map.key_tokens, map.region.k_begin, map.region.k_end, map.columns);
        panel.y = axis(map.cross ? "query (target)" : "query", map.query_tokens, map.region.q_begin, map.region.q_end,
                       map.rows);
        HeatMap cells;
        cells.rows = map.rows;
        cells.columns = map.columns;
        cells.values = map.values;
        cells.pooling = options.pooling == Pooling::mean ? Pooling::mean : Pooling::extreme;
        cells.colours.label = difference_label(maps);
        if (!linear) cells.colours.scale = ScaleKind::square_root;
        cells.colours.map = ColourMap::diverging;
        cells.colours.maximum = most > 0 ? most : 1;
        cells.colours.minimum = -cells.colours.maximum;
        panel.content = std::move(cells);
        figure.panels.push_back(std::move(panel));
        pooled |= !map.exact();
        whole = whole && map.pairs.whole();
    }
    const maps::Cells& part = maps.front().region;
    figure.columns = options.sides ? 3 : std::ssize(maps);
    figure.reflow = true;
    figure.narrowest_mm = 50;
    figure.panel_aspect = std::clamp(static_cast<double>(part.queries()) / static_cast<double>(part.keys()), 0.3, 2.0);
    if (figure.panels.size() == 1) figure.widest_mm = 150;
    figure.shared_colours = !options.sides;
    const bool one_text = files[0] == files[1] && !options.other_sequence;
    figure.notes = source_notes(files.first(one_text ? 1 : 2), options);
    if (const std::string pairs = pairs_note(maps.front().pairs); !pairs.empty()) figure.notes.push_back(pairs);
    if (asks_for_part(options)) {
        figure.notes.push_back("Queries " + std::to_string(part.q_begin) + " to " + std::to_string(part.q_end - 1) +
                               ", keys " + std::to_string(part.k_begin) + " to " + std::to_string(part.k_end - 1) +
                               ".");
    }
    if (options.sides) {
        const auto notes = side_notes(sides, options);
        figure.notes.insert(figure.notes.end(), notes.begin(), notes.end());
    }
    figure.notes.push_back(change_note(maps, options, pooled, whole));
    if (std::any_of(maps.begin(), maps.end(), [](const MapDifference& map) {
            return map.first == MapValues::implicit || map.second == MapValues::implicit;
        }))
        figure.notes.push_back(definition_note(MapValues::implicit));
    figure.table = [maps = std::move(maps), options] {
        if (options.sides) return sides_table(maps);
        return map_table(maps, options.pooling == Pooling::mean ? "mean_difference" : "largest_difference");
    };
    return figure;
}

}  // namespace headscope::figures
