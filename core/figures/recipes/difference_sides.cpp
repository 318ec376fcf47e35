// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/recipes/difference_sides.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/figures/recipes/attention_source.h"

namespace headscope::figures {
namespace {

AttentionMap read_map(const MapPlace& place, const FigureOptions& options) {
    const AttentionSource source(place.file, place.site, options);
    AttentionMap map;
    map.site = site_label(place.file, place.site);
    map.cross = place.about().is_cross();
    map.layer = place.about().layer;
    map.head = *options.head;
    map.kind = values_of_site(place.file, place.site, options.values, "difference");
    map.pooling = options.pooling;
    source.fill(map, options, [&](std::int64_t positions) { return std::min(positions, options.pixels); });
    return map;
}

/// The tokens of B that lie on [begin, end) of A, at least one.
std::pair<std::int64_t, std::int64_t> part_of_b(const TokenAlignment& tokens, std::int64_t begin, std::int64_t end) {
    const std::int64_t count = std::ssize(tokens.to_a);
    const std::vector<double> places = edge_places(tokens.to_b, count);
    const auto high = static_cast<std::int64_t>(std::ceil(place_at(places, static_cast<double>(end))));
    const auto low = static_cast<std::int64_t>(std::floor(place_at(places, static_cast<double>(begin))));
    const std::int64_t last = std::clamp<std::int64_t>(high, 1, count);
    return {std::clamp<std::int64_t>(low, 0, last - 1), last};
}

}  // namespace

std::vector<AttentionMap> read_sides(const MapPlace& first, const MapPlace& second, const MapPairs& pairs,
                                     const FigureOptions& options) {
    std::vector<AttentionMap> sides{read_map(first, options)};
    FigureOptions minuend = minuend_options(options);
    if (asks_for_part(options)) {
        const maps::Cells& part = sides.front().region;
        std::tie(minuend.from_query, minuend.to_query) = part_of_b(pairs.queries, part.q_begin, part.q_end);
        std::tie(minuend.from_key, minuend.to_key) = part_of_b(pairs.keys, part.k_begin, part.k_end);
    }
    sides.push_back(read_map(second, minuend));
    const std::int64_t longest = std::max({std::ssize(pairs.queries.to_b), std::ssize(pairs.queries.to_a),
                                           std::ssize(pairs.keys.to_b), std::ssize(pairs.keys.to_a)});
    for (AttentionMap& map : sides) map.scale = scale_of(map, options.scale, longest);
    return sides;
}

std::vector<Panel> side_panels(const std::vector<AttentionMap>& sides) {
    if (sides.empty()) return {};
    const bool alike = sides.front().kind == sides.back().kind;
    const double largest = std::max(sides.front().largest, sides.back().largest);
    ColourScale zeros;
    for (const AttentionMap& map : sides)
        if (map.kind == MapValues::weights) set_zero_apart(zeros, map.values);
    std::vector<Panel> panels;
    for (const AttentionMap& map : sides) {
        panels.push_back(attention_panel(map, "", alike ? largest : map.largest));
        ColourScale& scale = std::get<HeatMap>(panels.back().content).colours;
        scale.zero_apart = zeros.zero_apart && scale.map == ColourMap::sequential;
    }
    return panels;
}

std::vector<std::string> side_notes(const std::vector<AttentionMap>& sides, const FigureOptions& options) {
    std::vector<std::string> notes;
    const auto part = [](const AttentionMap& map) {
        const auto span = [](std::int64_t begin, std::int64_t end) {
            return std::to_string(begin) + " to " + std::to_string(end - 1);
        };
        return "queries " + span(map.region.q_begin, map.region.q_end) + ", keys " +
               span(map.region.k_begin, map.region.k_end) + ".";
    };
    if (asks_for_part(options) && part(sides[0]) != part(sides[1]))
        notes.push_back("Of the second map " + part(sides[1]));
    std::vector<AttentionMap> of_kind, rest = sides;
    while (!rest.empty()) {
        const auto others = std::stable_partition(
            rest.begin(), rest.end(), [kind = rest.front().kind](const AttentionMap& map) { return map.kind == kind; });
        of_kind.assign(rest.begin(), others);
        rest.erase(rest.begin(), others);
        notes.push_back(scale_note(of_kind));
    }
    return notes;
}

}  // namespace headscope::figures
