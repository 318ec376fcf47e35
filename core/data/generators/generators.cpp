// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/generators/generators.h"

#include <numeric>
#include <unordered_map>

#include "core/base/error.h"

namespace headscope::data {

void GeneratorOptions::refuse(const std::string& expected, const std::string& found) const {
    throw Error(ErrorCode::usage, "data.generator " + name_, expected, found);
}

void GeneratorOptions::need_length(std::int64_t least, std::int64_t length) const {
    if (length >= least) return;
    refuse("expected a sequence_length of at least " + std::to_string(least), "found " + std::to_string(length));
}

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

void add_pieces(std::vector<std::string>& pieces, const std::string& prefix, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) pieces.push_back(prefix + std::to_string(i));
}

}  // namespace headscope::data
