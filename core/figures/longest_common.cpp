// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/longest_common.h"

#include <algorithm>
#include <unordered_map>

namespace headscope::figures {
namespace {

using List = std::span<const std::int32_t>;
using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

constexpr std::int64_t most_differences = 2000;  ///< their traces take the square of it: 16 MB
constexpr std::int64_t most_in_a_gap = 300;

std::int64_t size_of(List list) {
    return static_cast<std::int64_t>(list.size());
}

/// Myers' greedy algorithm ("An O(ND) difference algorithm", 1986): furthest points on each diagonal for 0, 1, 2 ...
/// differences, and back through them. False, and nothing appended, when more than `limit` items differ.
bool greedy(List a, List b, std::int64_t limit, std::int64_t from_a, std::int64_t from_b, Pairs& pairs) {
    const std::int64_t n = size_of(a), m = size_of(b);
    const auto at = [](auto& list, std::int64_t i) -> auto& {
        return list[static_cast<std::size_t>(i)];
    };
    limit = std::min(limit, n + m);
    std::vector<std::int32_t> furthest(static_cast<std::size_t>(2 * limit + 3), 0);
    std::vector<std::vector<std::int32_t>> traces;
    const std::int64_t middle = limit + 1;
    // True if the best way to diagonal k takes an item of b (down), not one of a.
    const auto goes_down = [&](const auto& points, std::int64_t k, std::int64_t d, std::int64_t zero) {
        return k == -d || (k != d && at(points, zero + k - 1) < at(points, zero + k + 1));
    };
    std::int64_t differences = -1;
    for (std::int64_t d = 0; d <= limit && differences < 0; ++d) {
        // Only diagonals -d .. d count, with one more on each side.
        traces.emplace_back(furthest.begin() + (middle - d - 1), furthest.begin() + (middle + d + 2));
        for (std::int64_t k = -d; k <= d; k += 2) {
            std::int64_t x =
                goes_down(furthest, k, d, middle) ? at(furthest, middle + k + 1) : at(furthest, middle + k - 1) + 1;
            if (d == 0) x = 0;
            std::int64_t y = x - k;
            while (x < n && y >= 0 && y < m && at(a, x) == at(b, y)) ++x, ++y;
            at(furthest, middle + k) = static_cast<std::int32_t>(x);
            if (x >= n && y >= m) {
                differences = d;
                break;
            }
        }
    }
    if (differences < 0) return false;
    std::int64_t x = n, y = m;
    const std::size_t before = pairs.size();
    for (std::int64_t d = differences; d >= 0; --d) {
        const auto& points = traces[static_cast<std::size_t>(d)];
        const std::int64_t k = x - y, zero = d + 1;
        const bool down = d > 0 && goes_down(points, k, d, zero);
        const std::int64_t k_before = down ? k + 1 : k - 1;
        const std::int64_t x_before = d == 0 ? 0 : at(points, zero + k_before), y_before = x_before - k_before;
        const std::int64_t x_after = d == 0 ? 0 : down ? x_before : x_before + 1;
        while (x > x_after) {
            --x, --y;
            pairs.emplace_back(from_a + x, from_b + y);
        }
        x = x_before;
        y = y_before;
    }
    std::reverse(pairs.begin() + static_cast<std::ptrdiff_t>(before), pairs.end());
    return true;
}

/// Pairs of items that occur once in each list, as many as rise together (patience sorting).
Pairs anchors(List a, List b) {
    struct Seen {
        std::int64_t in_a = 0, in_b = 0, place_a = 0, place_b = 0;
    };
    std::unordered_map<std::int32_t, Seen> seen;
    for (std::int64_t i = 0; i < size_of(a); ++i) {
        Seen& one = seen[a[static_cast<std::size_t>(i)]];
        ++one.in_a;
        one.place_a = i;
    }
    for (std::int64_t i = 0; i < size_of(b); ++i) {
        const auto found = seen.find(b[static_cast<std::size_t>(i)]);
        if (found == seen.end()) continue;
        ++found->second.in_b;
        found->second.place_b = i;
    }
    Pairs rare;
    for (const auto& [item, one] : seen)
        if (one.in_a == 1 && one.in_b == 1) rare.emplace_back(one.place_a, one.place_b);
    std::sort(rare.begin(), rare.end());
    // The longest rising list of places in b: for each length the pair with the smallest end, and who came before it.
    std::vector<std::size_t> ends;
    std::vector<std::ptrdiff_t> before(rare.size(), -1);
    for (std::size_t i = 0; i < rare.size(); ++i) {
        const auto place =
            std::lower_bound(ends.begin(), ends.end(), rare[i].second,
                             [&](std::size_t end, std::int64_t value) { return rare[end].second < value; });
        if (place != ends.begin()) before[i] = static_cast<std::ptrdiff_t>(*(place - 1));
        place == ends.end() ? ends.push_back(i) : void(*place = i);
    }
    Pairs chosen;
    for (std::ptrdiff_t i = ends.empty() ? -1 : static_cast<std::ptrdiff_t>(ends.back()); i >= 0;
         i = before[static_cast<std::size_t>(i)])
        chosen.push_back(rare[static_cast<std::size_t>(i)]);
    std::reverse(chosen.begin(), chosen.end());
    return chosen;
}

}  // namespace

CommonItems common_items(List a, List b) {
    CommonItems common;
    const auto ends = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    const std::int64_t start = ends.first - a.begin();
    const std::int64_t shorter = std::min(size_of(a), size_of(b));
    std::int64_t end = 0;
    while (end < shorter - start &&
           a[a.size() - 1 - static_cast<std::size_t>(end)] == b[b.size() - 1 - static_cast<std::size_t>(end)])
        ++end;
    for (std::int64_t i = 0; i < start; ++i) common.pairs.emplace_back(i, i);
    const auto part = [](List list, std::int64_t from, std::int64_t to) {
        return list.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from));
    };
    const List inner_a = part(a, start, size_of(a) - end), inner_b = part(b, start, size_of(b) - end);
    if (!greedy(inner_a, inner_b, most_differences, start, start, common.pairs)) {
        common.complete = false;
        Pairs rare = anchors(inner_a, inner_b);
        rare.emplace_back(size_of(inner_a), size_of(inner_b));
        std::int64_t i = 0, j = 0;
        for (const auto& [to_i, to_j] : rare) {
            greedy(part(inner_a, i, to_i), part(inner_b, j, to_j), most_in_a_gap, start + i, start + j, common.pairs);
            if (to_i < size_of(inner_a)) common.pairs.emplace_back(start + to_i, start + to_j);
            i = to_i + 1;
            j = to_j + 1;
        }
    }
    for (std::int64_t i = end; i > 0; --i) common.pairs.emplace_back(size_of(a) - i, size_of(b) - i);
    return common;
}

}  // namespace headscope::figures
