// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/random.h"

#include <unordered_map>

namespace headscope::data {

std::vector<std::int64_t> draw_different(Random& random, std::int64_t range, std::int64_t count) {
    // The first steps of a shuffle (Fisher and Yates), of which only the moved places are kept.
    std::unordered_map<std::int64_t, std::int64_t> moved;
    const auto at = [&](std::int64_t place) {
        const auto found = moved.find(place);
        return found == moved.end() ? place : found->second;
    };
    std::vector<std::int64_t> drawn;
    drawn.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t other = i + random.below(range - i);
        drawn.push_back(at(other));
        moved[other] = at(i);
    }
    return drawn;
}

}  // namespace headscope::data
