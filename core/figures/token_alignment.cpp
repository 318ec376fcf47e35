// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/token_alignment.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "core/figures/longest_common.h"

namespace headscope::figures {
namespace {

using store::SequenceTokens;
using Offset = std::array<std::int64_t, 2>;

std::int64_t size_of(const SequenceTokens& tokens) {
    return static_cast<std::int64_t>(tokens.ids.size());
}

bool covers(const Offset& offset) {
    return offset[0] < offset[1];
}

/// Offsets rise, and no stretch belongs to more tokens than a character has bytes: the repeated-token probe gives all
/// tokens one place.
bool tells_places(const SequenceTokens& tokens) {
    if (tokens.offsets.size() != tokens.ids.size() || tokens.text.empty()) return false;
    constexpr int most_at_one_place = 32;
    const Offset* last = nullptr;
    int same = 0;
    for (const Offset& offset : tokens.offsets) {
        if (!covers(offset)) continue;
        if (last && offset[0] < (*last)[0]) return false;
        same = last && offset == *last ? same + 1 : 0;
        if (same >= most_at_one_place) return false;
        last = &offset;
    }
    return last != nullptr;
}

/// For each token of `from` the token of `to` with most of its bytes. Several at the same place go in step.
std::vector<std::int64_t> by_place(const SequenceTokens& from, const SequenceTokens& to) {
    std::vector<std::int64_t> found(from.ids.size(), -1);
    std::int64_t low = 0;  // tokens of `to` before it end before the token that is looked at
    std::int64_t rank = 0;
    const Offset* last = nullptr;
    for (std::int64_t i = 0; i < size_of(from); ++i) {
        const Offset& here = from.offsets[static_cast<std::size_t>(i)];
        if (!covers(here)) continue;
        rank = last && *last == here ? rank + 1 : 0;
        last = &here;
        const auto offset = [&](std::int64_t j) -> const Offset& { return to.offsets[static_cast<std::size_t>(j)]; };
        while (low < size_of(to) && (!covers(offset(low)) || offset(low)[1] <= here[0])) ++low;
        std::int64_t best = -1, most = 0, equals = 0;
        constexpr std::int64_t furthest = 256;  // a long token of another tokenizer holds no more of ours that matter
        for (std::int64_t j = low; j < std::min(size_of(to), low + furthest); ++j) {
            if (!covers(offset(j))) continue;
            if (offset(j)[0] >= here[1]) break;
            const std::int64_t shared = std::min(here[1], offset(j)[1]) - std::max(here[0], offset(j)[0]);
            if (shared > most) {
                best = j;
                most = shared;
                equals = 0;
            } else if (shared == most && best >= 0 && offset(j) == offset(best) && equals < rank) {
                ++equals;
            }
        }
        found[static_cast<std::size_t>(i)] = best < 0 ? -1 : best + equals;
    }
    return found;
}

/// Tokens without a place before the first one that has one, or behind the last: in pairs.
void pair_inserted(const SequenceTokens& a, const SequenceTokens& b, TokenAlignment& alignment) {
    const auto edge = [](const auto& begin, const auto& end) { return std::find_if(begin, end, covers) - begin; };
    const std::int64_t first =
        std::min(edge(a.offsets.begin(), a.offsets.end()), edge(b.offsets.begin(), b.offsets.end()));
    const std::int64_t last =
        std::min(edge(a.offsets.rbegin(), a.offsets.rend()), edge(b.offsets.rbegin(), b.offsets.rend()));
    const auto pair = [&](std::int64_t i, std::int64_t j) {
        alignment.to_b[static_cast<std::size_t>(i)] = j;
        alignment.to_a[static_cast<std::size_t>(j)] = i;
    };
    for (std::int64_t i = 0; i < first; ++i) pair(i, i);
    for (std::int64_t i = 1; i <= last; ++i) pair(size_of(a) - i, size_of(b) - i);
}

/// Equal numbers for equal pieces; ids where there are no pieces.
std::vector<std::int32_t> numbers(const SequenceTokens& tokens,
                                  std::unordered_map<std::string_view, std::int32_t>& known) {
    std::vector<std::int32_t> all = tokens.ids;
    for (std::size_t i = 0; i < all.size() && i < tokens.pieces.size(); ++i)
        all[i] = -1 - known.emplace(tokens.pieces[i], static_cast<std::int32_t>(known.size())).first->second;
    return all;
}

}  // namespace

TokenAlignment align_tokens(const SequenceTokens& a, const SequenceTokens& b) {
    TokenAlignment alignment;
    alignment.to_b.assign(a.ids.size(), -1);
    alignment.to_a.assign(b.ids.size(), -1);
    if (a.ids == b.ids && a.pieces == b.pieces) {
        for (std::int64_t i = 0; i < size_of(a); ++i)
            alignment.to_b[static_cast<std::size_t>(i)] = alignment.to_a[static_cast<std::size_t>(i)] = i;
        return alignment;
    }
    if (a.text == b.text && tells_places(a) && tells_places(b)) {
        alignment.by = TokenAlignment::By::place;
        alignment.to_b = by_place(a, b);
        alignment.to_a = by_place(b, a);
        pair_inserted(a, b, alignment);
        return alignment;
    }
    alignment.by = TokenAlignment::By::pieces;
    std::unordered_map<std::string_view, std::int32_t> known;
    const auto numbers_a = numbers(a, known), numbers_b = numbers(b, known);
    const CommonItems common = common_items(numbers_a, numbers_b);
    alignment.complete = common.complete;
    for (const auto& [i, j] : common.pairs) {
        alignment.to_b[static_cast<std::size_t>(i)] = j;
        alignment.to_a[static_cast<std::size_t>(j)] = i;
    }
    return alignment;
}

std::vector<double> edge_places(const std::vector<std::int64_t>& partners, std::int64_t others) {
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

double place_at(const std::vector<double>& places, double place) {
    const double last = static_cast<double>(places.size()) - 1;
    const double inside = std::clamp(place, 0.0, std::max(0.0, last));
    const auto low = static_cast<std::size_t>(std::floor(inside));
    if (low + 1 >= places.size()) return places.back();
    return places[low] + (places[low + 1] - places[low]) * (inside - static_cast<double>(low));
}

}  // namespace headscope::figures
