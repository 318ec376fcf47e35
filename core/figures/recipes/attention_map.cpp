// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/recipes/attention_map.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/figures/token_text.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kMostLabels = 400;  ///< no page has room for more tokens along a side
constexpr double kLeastLogits = 1e-3;      ///< a head without scores has a scale all the same

Axis axis(const std::string& name, const std::vector<std::string>& tokens, std::int64_t first, std::int64_t end,
          std::int64_t cells) {
    Axis axis;
    axis.label = name;
    axis.first_cell = first;
    axis.cells_per_value = static_cast<double>(cells) / static_cast<double>(end - first);
    if (cells != end - first || cells > kMostLabels || end > std::ssize(tokens)) return axis;
    for (std::int64_t i = first; i < end; ++i)
        axis.cell_labels.push_back(visible_token(tokens[static_cast<std::size_t>(i)]));
    return axis;
}

ColourScale colours(const AttentionMap& map, double largest) {
    ColourScale colours;
    const std::string name = values_label(map.kind);
    colours.label = map.pooling == Pooling::mean && !map.exact() ? "mean " + name : name;
    if (map.scale == CellScale::row_rank) {
        colours.label = "rank of the " + values_word(map.kind) + " in its row";
        return colours;
    }
    if (map.scale == CellScale::square_root) colours.scale = ScaleKind::square_root;
    if (map.of_signs()) {
        colours.map = ColourMap::diverging;
        colours.maximum = map.implicit() ? (largest > 0 ? largest : 1) : std::max(largest, kLeastLogits);
        colours.minimum = -colours.maximum;
        if (map.scale == CellScale::logarithmic) colours.scale = ScaleKind::symmetric_log;
        return colours;
    }
    if (map.open() && largest > 0) colours.maximum = largest;
    if (map.scale == CellScale::logarithmic) {
        colours.scale = ScaleKind::logarithmic;
        colours.minimum = kSmallestShown * colours.maximum;
    }
    return colours;
}

/// A line where a text of a pair begins, or inserted tokens do.
void mark_regions(Panel& panel, bool vertical, const std::vector<std::int32_t>& regions, std::int64_t first,
                  std::int64_t end) {
    for (std::int64_t i = first + 1; i < std::min(end, std::ssize(regions)); ++i) {
        const std::int32_t here = regions[static_cast<std::size_t>(i)];
        if (here == regions[static_cast<std::size_t>(i) - 1]) continue;
        panel.markers.push_back({vertical, static_cast<double>(i), here == 1 ? "A" : here == 2 ? "B" : ""});
    }
}

}  // namespace

Panel attention_panel(const AttentionMap& map, const std::string& title, double largest) {
    Panel drawn;
    drawn.title = title;
    const maps::Cells& part = map.region;
    const auto name = [&](const char* side, const char* text) {
        return std::string(side) + (map.words ? " word" : "") + (map.cross ? text : "");
    };
    drawn.x = axis(name("key", " (source)"), map.key_tokens, part.k_begin, part.k_end, map.columns);
    drawn.y = axis(name("query", " (target)"), map.query_tokens, part.q_begin, part.q_end, map.rows);
    HeatMap cells;
    cells.rows = map.rows;
    cells.columns = map.columns;
    cells.values = map.ranks.empty() ? map.values : map.ranks;
    cells.colours = colours(map, largest);
    cells.pooling = map.pooling == Pooling::mean ? Pooling::mean : map.of_signs() ? Pooling::extreme : Pooling::maximum;
    drawn.content = std::move(cells);
    mark_regions(drawn, true, map.key_regions, part.k_begin, part.k_end);
    mark_regions(drawn, false, map.query_regions, part.q_begin, part.q_end);
    if (map.limit > part.k_begin && map.limit < part.k_end)
        drawn.markers.push_back({true, static_cast<double>(map.limit), "trained to " + std::to_string(map.limit)});
    if (map.limit > part.q_begin && map.limit < part.q_end)
        drawn.markers.push_back({false, static_cast<double>(map.limit), ""});
    return drawn;
}

Table attention_table(const std::vector<AttentionMap>& maps) {
    std::vector<std::string> model, site, query_token, key_token;
    std::vector<std::int64_t> layer, head, query, key;
    std::vector<double> number, rank, deviation;
    const auto token = [](const std::vector<std::string>& tokens, std::int64_t at, bool exact) {
        return exact && at < std::ssize(tokens) ? visible_token(tokens[static_cast<std::size_t>(at)]) : std::string();
    };
    bool pooled = false, ranked = false, spread = false;
    for (const auto& map : maps) {
        const bool exact = map.exact();
        pooled |= !exact;
        ranked |= !map.ranks.empty();
        spread |= !map.deviation.empty();
        for (std::int64_t r = 0; r < map.rows; ++r) {
            for (std::int64_t c = 0; c < map.columns; ++c) {
                const auto at = static_cast<std::size_t>(r * map.columns + c);
                const float value = map.values[at];
                if (std::isnan(value)) continue;
                model.push_back(map.model);
                layer.push_back(map.layer);
                site.push_back(map.site);
                head.push_back(map.head);
                const std::int64_t q = map.region.query_of(r, map.rows), k = map.region.key_of(c, map.columns);
                query.push_back(q);
                key.push_back(k);
                query_token.push_back(token(map.query_tokens, q, exact));
                key_token.push_back(token(map.key_tokens, k, exact));
                number.push_back(value);
                if (!map.ranks.empty()) rank.push_back(map.ranks[at]);
                deviation.push_back(map.deviation.empty() ? std::numeric_limits<double>::quiet_NaN()
                                                          : map.deviation[at]);
            }
        }
    }
    // The two branches of a layer have weights and coefficients.
    const bool alike =
        std::all_of(maps.begin(), maps.end(), [&](const AttentionMap& map) { return map.kind == maps.front().kind; });
    Table table{
        {{"model", std::move(model)},
         {"layer", std::move(layer)},
         {"site", std::move(site)},
         {"head", std::move(head)},
         {pooled ? "first_query" : "query", std::move(query)},
         {pooled ? "first_key" : "key", std::move(key)},
         {maps.front().words ? "query_word" : "query_token", std::move(query_token)},
         {maps.front().words ? "key_word" : "key_token", std::move(key_token)},
         {alike ? values_column(maps.front().kind, maps.front().pooling, pooled) : "value", std::move(number)}}};
    if (ranked) table.columns.push_back({"row_rank", std::move(rank)});
    if (spread) table.columns.push_back({"deviation", std::move(deviation)});
    return table;
}

std::int64_t longest_side(std::span<const AttentionMap> maps) {
    std::int64_t longest = 0;
    for (const AttentionMap& map : maps) longest = std::max({longest, map.region.queries(), map.region.keys()});
    return longest;
}

CellScale scale_of(const AttentionMap& map, CellScale asked, std::int64_t longest) {
    if (asked != CellScale::by_length) return asked;
    if (map.logits()) return CellScale::linear;
    if (map.implicit()) return CellScale::square_root;
    return longest > kShortText ? CellScale::logarithmic : CellScale::square_root;
}

}  // namespace headscope::figures
