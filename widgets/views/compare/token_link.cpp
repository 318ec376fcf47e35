// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/compare/token_link.h"

#include <algorithm>
#include <cmath>

namespace headscope::widgets {
namespace {

std::optional<std::int64_t> partner(const std::vector<std::int64_t>& partners, std::optional<std::int64_t> token) {
    if (!token || *token < 0 || *token >= std::ssize(partners)) return std::nullopt;
    const std::int64_t found = partners[static_cast<std::size_t>(*token)];
    return found < 0 ? std::nullopt : std::optional(found);
}

/// The edges of tokens that have a partner lie at those of the partners, the ends at the ends; the others evenly
/// between.
std::vector<double> places(const std::vector<std::int64_t>& partners, std::int64_t others) {
    const std::size_t size = partners.size();
    std::vector<double> places(size + 1, -1);
    for (std::size_t i = 0; i < size; ++i) {
        if (partners[i] < 0) continue;
        places[i] = static_cast<double>(partners[i]);
        if (i + 1 == size || partners[i + 1] < 0) places[i + 1] = static_cast<double>(partners[i] + 1);
    }
    places.front() = 0;
    places.back() = static_cast<double>(others);
    double highest = 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i <= size; ++i) {
        if (places[i] < 0) continue;
        places[i] = highest = std::max(highest, places[i]);
        for (std::size_t j = last + 1; j < i; ++j)
            places[j] = places[last] +
                        (places[i] - places[last]) * static_cast<double>(j - last) / static_cast<double>(i - last);
        last = i;
    }
    return places;
}

double at(const std::vector<double>& places, double place) {
    const double last = static_cast<double>(places.size()) - 1;
    const double inside = std::clamp(place, 0.0, std::max(0.0, last));
    const auto low = static_cast<std::size_t>(std::floor(inside));
    if (low + 1 >= places.size()) return places.back();
    return places[low] + (places[low + 1] - places[low]) * (inside - static_cast<double>(low));
}

}  // namespace

std::optional<std::int64_t> TokenLink::to_right(std::optional<std::int64_t> left) const {
    return partner(pairs.to_b, left);
}

std::optional<std::int64_t> TokenLink::to_left(std::optional<std::int64_t> right) const {
    return partner(pairs.to_a, right);
}

std::pair<double, double> TokenLink::range_on_right(double begin, double end) const {
    return {at(places_of_right, begin), at(places_of_right, end)};
}

std::pair<double, double> TokenLink::range_on_left(double begin, double end) const {
    return {at(places_of_left, begin), at(places_of_left, end)};
}

TokenLink link_tokens(const store::SequenceTokens& left, const store::SequenceTokens& right) {
    TokenLink link;
    link.pairs = figures::align_tokens(left, right);
    link.unpaired_left = std::count(link.pairs.to_b.begin(), link.pairs.to_b.end(), -1);
    link.unpaired_right = std::count(link.pairs.to_a.begin(), link.pairs.to_a.end(), -1);
    link.places_of_right = places(link.pairs.to_b, link.right());
    link.places_of_left = places(link.pairs.to_a, link.left());
    return link;
}

std::int64_t bytes_of(const TokenLink& link) {
    return (link.left() + link.right()) * 16;
}

}  // namespace headscope::widgets
