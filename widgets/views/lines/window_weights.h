// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "widgets/desk/study.h"

namespace headscope::widgets {

/// Some consecutive tokens of the queries' text and of the keys'.
struct TokenWindow {
    std::int64_t q_begin = 0, q_end = 0, k_begin = 0, k_end = 0;
    std::int64_t queries() const { return q_end - q_begin; }
    std::int64_t keys() const { return k_end - k_begin; }
    bool operator==(const TokenWindow&) const = default;
};

/// One head's weights in a window, and per query what goes to the keys before and behind it.
struct WindowWeights {
    TokenWindow window;
    std::vector<float> weights;  ///< [queries, keys]; NaN: the mask forbids the pair
    std::vector<float> before, behind;
};

std::int64_t bytes_of(const WindowWeights& weights);

/// With words in place of pieces, the window counts in words.
/// Null value, nothing pending and no failure: the file has no maps of this site.
Reply<WindowWeights> window_weights(Study& study, std::int64_t sequence, std::int64_t site, std::int64_t head,
                                    const TokenWindow& window, bool words = false);

/// A line from a query to a key; key -1: to those before the window, keys(): to those behind it.
struct WeightLine {
    std::int64_t query = 0, key = 0;  ///< counted in the window
    int head = 0;                     ///< place in the list of heads
    float weight = 0;
};

/// Those of at least `threshold`, rising by weight; of more than `most` the strongest. `found`: how many there were.
std::vector<WeightLine> lines_of(const std::vector<const WindowWeights*>& heads, double threshold, std::size_t most,
                                 std::int64_t& found);

}  // namespace headscope::widgets
