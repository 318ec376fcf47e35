// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/compare/token_link.h"

#include <algorithm>

namespace headscope::widgets {
namespace {

std::optional<std::int64_t> partner(const std::vector<std::int64_t>& partners, std::optional<std::int64_t> token) {
    if (!token || *token < 0 || *token >= std::ssize(partners)) return std::nullopt;
    const std::int64_t found = partners[static_cast<std::size_t>(*token)];
    return found < 0 ? std::nullopt : std::optional(found);
}

}  // namespace

std::optional<std::int64_t> TokenLink::to_right(std::optional<std::int64_t> left) const {
    return partner(pairs.to_b, left);
}

std::optional<std::int64_t> TokenLink::to_left(std::optional<std::int64_t> right) const {
    return partner(pairs.to_a, right);
}

std::pair<double, double> TokenLink::range_on_right(double begin, double end) const {
    return {figures::place_at(places_of_right, begin), figures::place_at(places_of_right, end)};
}

std::pair<double, double> TokenLink::range_on_left(double begin, double end) const {
    return {figures::place_at(places_of_left, begin), figures::place_at(places_of_left, end)};
}

TokenLink link_tokens(const store::SequenceTokens& left, const store::SequenceTokens& right) {
    TokenLink link;
    link.pairs = figures::align_tokens(left, right);
    link.unpaired_left = std::count(link.pairs.to_b.begin(), link.pairs.to_b.end(), -1);
    link.unpaired_right = std::count(link.pairs.to_a.begin(), link.pairs.to_a.end(), -1);
    link.places_of_right = figures::edge_places(link.pairs.to_b, link.right());
    link.places_of_left = figures::edge_places(link.pairs.to_a, link.left());
    return link;
}

std::int64_t bytes_of(const TokenLink& link) {
    return (link.left() + link.right()) * 16;
}

}  // namespace headscope::widgets
