// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/pooled_map.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/maps/forbidden.h"
#include "core/maps/rollout.h"
#include "kernels/tiles.h"

namespace headscope::maps {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kBand = 64;  ///< queries at a time

void hide_forbidden(const store::AnalysisFile::Map& map, std::int64_t head, const Cells& part, std::int64_t rows,
                    std::int64_t columns, std::vector<float>& values) {
    const auto bounds = kernels::sequence_bounds(map.rule, 0, map.queries, map.keys);
    for_forbidden(
        map.rule, bounds, head, map.heads, part, rows, columns,
        [&](std::int64_t i) { return i * rows / part.queries(); },
        [&](std::int64_t j) { return j * columns / part.keys(); },
        [&](std::int64_t r, std::int64_t c) { values[static_cast<std::size_t>(r * columns + c)] = kNone; });
}

/// A rollout that is not held whole, from the means of its rows.
std::vector<float> pooled_rollout(const Rollout& map, const Cells& part, std::int64_t rows, std::int64_t columns,
                                  bool mean) {
    std::vector<std::int64_t> bounds;
    for (std::int64_t r = 0; r <= rows; ++r) bounds.push_back(part.query_of(r, rows));
    const std::atomic<bool> go_on{false};
    const std::vector<float> means = map.mean_rows(bounds, go_on);
    std::vector<float> cells(static_cast<std::size_t>(rows * columns), kNone);
    for (std::int64_t r = 0; r < rows; ++r) {
        const float* row = means.data() + r * map.keys();
        const auto at = static_cast<std::size_t>(r);
        const std::int64_t sees = map.seen(bounds[at], bounds[at + 1]).second;
        for (std::int64_t c = 0; c < columns; ++c) {
            const std::int64_t begin = part.key_of(c, columns), end = part.key_of(c + 1, columns);
            if (begin >= sees) break;
            cells[static_cast<std::size_t>(r * columns + c)] =
                mean ? std::accumulate(row + begin, row + end, 0.0F) / static_cast<float>(end - begin)
                     : *std::max_element(row + begin, row + end);
        }
    }
    return cells;
}

}  // namespace

std::vector<float> exact_weights(const store::AnalysisFile::Map& map, std::int64_t head, const Cells& part) {
    std::vector<float> weights(static_cast<std::size_t>(part.queries() * part.keys()));
    kernels::attention_weights(map.input(), map.row_constant, 0, head, part.q_begin, part.q_end, part.k_begin,
                               part.k_end, weights.data());
    hide_forbidden(map, head, part, part.queries(), part.keys(), weights);
    return weights;
}

std::vector<float> exact_scores(const store::AnalysisFile::Map& map, std::int64_t head, const Cells& part) {
    std::vector<float> scores(static_cast<std::size_t>(part.queries() * part.keys()));
    kernels::attention_scores(map.input(), 0, head, part.q_begin, part.q_end, part.k_begin, part.k_end, scores.data());
    for (float& score : scores)
        if (score == -std::numeric_limits<float>::infinity()) score = kNone;
    return scores;
}

std::vector<float> pooled_weights(const store::AnalysisFile::Map& map, std::int64_t head, const Cells& part,
                                  std::int64_t rows, std::int64_t columns, bool mean) {
    std::vector<float> cells(static_cast<std::size_t>(rows * columns));
    kernels::attention_map(map.input(), map.row_constant, {0, head, part.q_begin, part.q_end, part.k_begin, part.k_end},
                           rows, columns, mean ? cells.data() : nullptr, mean ? nullptr : cells.data());
    hide_forbidden(map, head, part, rows, columns, cells);
    return cells;
}

std::vector<float> pooled_bands(const Cells& part, std::int64_t rows, std::int64_t columns, bool mean,
                                const std::function<std::vector<float>(const Cells& band)>& read, bool absent_as_zero) {
    const auto size = static_cast<std::size_t>(rows * columns);
    std::vector<float> cells(size, kNone);
    std::vector<double> sums(mean ? size : 0), counts(mean ? size : 0), pairs(mean ? size : 0);
    for (std::int64_t begin = 0; begin < part.queries(); begin += kBand) {
        const std::int64_t end = std::min(begin + kBand, part.queries());
        const auto values = read({part.q_begin + begin, part.q_begin + end, part.k_begin, part.k_end});
        const float* value = values.data();
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t row = i * rows / part.queries() * columns;
            for (std::int64_t j = 0; j < part.keys(); ++j, ++value) {
                const auto at = static_cast<std::size_t>(row + j * columns / part.keys());
                if (mean) ++pairs[at];
                if (std::isnan(*value)) continue;
                if (mean) {
                    sums[at] += static_cast<double>(*value);
                    ++counts[at];
                } else if (std::isnan(cells[at]) || std::abs(*value) > std::abs(cells[at])) {
                    cells[at] = *value;
                }
            }
        }
    }
    for (std::size_t i = 0; i < sums.size(); ++i)
        if (counts[i] > 0) cells[i] = static_cast<float>(sums[i] / (absent_as_zero ? pairs[i] : counts[i]));
    return cells;
}

std::vector<float> pooled_map(const PairMap& map, const Cells& part, std::int64_t rows, std::int64_t columns, bool mean,
                              bool scores) {
    const auto* rollout = dynamic_cast<const Rollout*>(&map);
    if (rollout != nullptr && !rollout->whole()) return pooled_rollout(*rollout, part, rows, columns, mean);
    return pooled_bands(
        part, rows, columns, mean, [&](const Cells& band) { return scores ? map.scores(band) : map.values(band); },
        !scores);
}

}  // namespace headscope::maps
