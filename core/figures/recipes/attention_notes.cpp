// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "core/figures/recipes/attention_map.h"
#include "core/maps/map_reader.h"

namespace headscope::figures {
namespace {

/// Note on cells of several pairs.
std::string pooling_note(const AttentionMap& map) {
    if (map.pooling == Pooling::mean)
        return map.logits() ? " Each cell shows the mean score of the allowed pairs under it."
                            : " Each cell shows the mean " + values_word(map.kind) +
                                  " of the pairs under it; masked pairs count as 0.";
    if (map.kind == MapValues::rollout && map.queries > maps::Rollout::kWhole)
        return " Each cell shows the largest, over its keys, of the mean over its queries.";
    return map.of_signs() ? " Each cell shows the " + values_word(map.kind) + " of greatest magnitude under it."
                          : " Each cell shows the largest " + values_word(map.kind) + " of the pairs under it.";
}

std::string score_scale(CellScale scale) {
    const std::string how = scale == CellScale::square_root   ? "by square root"
                            : scale == CellScale::logarithmic ? "logarithmic beyond ±1"
                                                              : "linear";
    return "Scores before the normalizer, colored from minus to plus the greatest magnitude, " + how + ".";
}

}  // namespace

std::string part_note(const std::vector<AttentionMap>& maps) {
    const maps::Cells& part = maps.front().region;
    const auto span = [](std::int64_t first, std::int64_t end, bool same) {
        return std::to_string(first) + (same ? " to " + std::to_string(end - 1) : " on");
    };
    // Texts of other lengths end elsewhere where no end was asked for.
    const bool queries =
        std::all_of(maps.begin(), maps.end(), [&](const AttentionMap& map) { return map.region.q_end == part.q_end; });
    const bool keys =
        std::all_of(maps.begin(), maps.end(), [&](const AttentionMap& map) { return map.region.k_end == part.k_end; });
    const std::string words = maps.front().words ? " (words)" : "";
    return "Queries " + span(part.q_begin, part.q_end, queries) + ", keys " + span(part.k_begin, part.k_end, keys) +
           words + ".";
}

std::string implicit_note(const AttentionMap& map) {
    if (map.scale == CellScale::row_rank) return "";
    return std::string("Coefficients: colored from minus to plus the greatest magnitude, ") +
           (map.scale == CellScale::square_root   ? "by square root."
            : map.scale == CellScale::logarithmic ? "logarithmic beyond ±1."
                                                  : "linear.");
}

std::string scale_note(const std::vector<AttentionMap>& maps) {
    const auto some = [&](CellScale scale) {
        return std::any_of(maps.begin(), maps.end(), [scale](const AttentionMap& map) { return map.scale == scale; });
    };
    const bool logits = maps.front().logits();
    const bool logarithmic = some(CellScale::logarithmic), square_root = some(CellScale::square_root);
    std::string how;
    if (some(CellScale::row_rank)) {
        how = "Colors show the rank of each " + values_word(maps.front().kind) +
              " in its row, among those shown, from 0 (smallest) to 1 (largest); ties share the middle rank.";
    } else if (maps.front().implicit()) {
        how = implicit_note(maps.front());
    } else if (logits) {
        how = score_scale(maps.front().scale);
    } else {
        if (some(CellScale::linear)) how = "Linear color scale.";
        if (square_root) {
            how = "Colors show the square root of the " + values_word(maps.front().kind) +
                  (logarithmic ? " for texts up to " + std::to_string(kShortText) + " tokens. " : std::string("."));
        }
        if (logarithmic) {
            double largest = 0;  // of norms; weights end at 1
            for (const AttentionMap& map : maps)
                if (map.open()) largest = std::max(largest, map.largest);
            how += (square_root ? "Longer texts: logarithmic color scale; " : "Logarithmic color scale; ") +
                   smallest_note(values_word(maps.front().kind) + "s", kSmallestShown * (largest > 0 ? largest : 1));
        }
    }
    how += " Gray: masked.";
    if (std::any_of(maps.begin(), maps.end(), [](const AttentionMap& map) { return !map.exact(); }))
        how += pooling_note(maps.front());
    return how;
}

}  // namespace headscope::figures
