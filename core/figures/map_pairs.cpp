// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/map_pairs.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/figures/map_difference.h"
#include "core/maps/logit_source.h"
#include "core/maps/map_reader.h"

namespace headscope::figures {
namespace {

using By = TokenAlignment::By;

/// Null: the file has no such tokens, or not `count` of them.
const store::SequenceTokens* tokens_of(const MapPlace& place, const std::string& stream, std::int64_t count) {
    const auto& header = place.file.header();
    const auto other = header.streams.find(stream);
    const auto& all = other == header.streams.end() ? header.sequences : other->second;
    if (other == header.streams.end() && stream != "tokens") return nullptr;
    if (place.sequence >= std::ssize(all)) return nullptr;
    const auto& tokens = all[static_cast<std::size_t>(place.sequence)];
    return std::ssize(tokens.ids) == count ? &tokens : nullptr;
}

TokenAlignment align(const store::SequenceTokens* a, std::int64_t count_a, const store::SequenceTokens* b,
                     std::int64_t count_b) {
    if (a != nullptr && b != nullptr) return align_tokens(*a, *b);
    if (count_a != count_b) {
        not_alike("expected maps of the same size, for not both files have tokens",
                  "found " + std::to_string(count_a) + " and " + std::to_string(count_b) + " positions");
    }
    TokenAlignment same;
    same.to_b.resize(static_cast<std::size_t>(count_a));
    std::iota(same.to_b.begin(), same.to_b.end(), 0);
    same.to_a = same.to_b;
    return same;
}

std::int64_t paired(const TokenAlignment& alignment) {
    return std::ssize(alignment.to_b) - std::count(alignment.to_b.begin(), alignment.to_b.end(), -1);
}

std::string note_of(const TokenAlignment& alignment, const std::string& what) {
    if (alignment.by == By::identity) return "";
    std::string note = alignment.by == By::place ? "One text, two tokenisations: " : "Two texts: ";
    note += std::to_string(paired(alignment)) + " of the " + std::to_string(alignment.to_b.size()) + " " + what +
            " of the first are paired with ";
    note += alignment.by == By::place
                ? "those that cover the same characters, of the second's " + std::to_string(alignment.to_a.size())
                : "equal ones of the second's " + std::to_string(alignment.to_a.size()) + ", in their order";
    note += ".";
    if (!alignment.complete) note += " The texts differ so much that not all equal tokens were looked for.";
    return note;
}

}  // namespace

bool MapPairs::identical() const {
    return queries.by == By::identity && keys.by == By::identity;
}

bool MapPairs::whole() const {
    return paired(queries) == std::ssize(queries.to_b) && paired(keys) == std::ssize(keys.to_b);
}

MapSide read_side(const MapPlace& place, std::int64_t head, MapValues asked) {
    const MapValues values = values_of_site(place.file, place.site, asked, "difference");
    if (values == MapValues::implicit)
        return {computed_map(place.file, place.sequence, place.site, head, values, "difference"), values};
    check_recorded(place.file, place.sequence, place.site, "difference");
    auto map = maps::read_head_map(place.file, place.sequence, place.site, head);
    if (!map) throw not_recorded(place.file, place.site, "difference");
    if (values == MapValues::logits) return {std::make_shared<const maps::LogitSource>(std::move(map)), values};
    return {std::move(map), values};
}

MapPairs pair_maps(const MapPlace& first, const maps::TileSource& a, const MapPlace& second,
                   const maps::TileSource& b) {
    MapPairs pairs;
    const Site &from = first.about(), &to = second.about();
    pairs.cross = from.query_stream != from.key_stream || to.query_stream != to.key_stream;
    pairs.queries = align(tokens_of(first, from.query_stream, a.queries()), a.queries(),
                          tokens_of(second, to.query_stream, b.queries()), b.queries());
    pairs.keys = pairs.cross || a.queries() != a.keys() || b.queries() != b.keys()
                     ? align(tokens_of(first, from.key_stream, a.keys()), a.keys(),
                             tokens_of(second, to.key_stream, b.keys()), b.keys())
                     : pairs.queries;
    if (paired(pairs.queries) == 0 || paired(pairs.keys) == 0)
        not_alike("expected texts with a token in common", "found none");
    return pairs;
}

std::string pairs_note(const MapPairs& pairs) {
    if (!pairs.cross) return note_of(pairs.queries, "tokens");
    const std::string queries = note_of(pairs.queries, "queries"), keys = note_of(pairs.keys, "keys");
    return queries + (queries.empty() || keys.empty() ? "" : " ") + keys;
}

}  // namespace headscope::figures
