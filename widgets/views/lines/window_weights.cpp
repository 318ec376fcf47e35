// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/lines/window_weights.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace headscope::widgets {
namespace {

WindowWeights read_window(const maps::PairMap& map, const TokenWindow& window) {
    WindowWeights read;
    read.window = window;
    const float most = map.most();
    const bool implicit = !std::isnan(most);  // norms have no lines
    const auto from = static_cast<std::ptrdiff_t>(window.k_begin), to = static_cast<std::ptrdiff_t>(window.k_end);
    // Row by row: whole rows of a long text, of which the window is a part, never lie in memory together.
    for (std::int64_t q = window.q_begin; q < window.q_end; ++q) {
        std::vector<float> row = map.values({q, q + 1, 0, map.keys()});
        // Coefficients: lines are as wide as their magnitudes, the greatest being 1.
        if (most > 0)
            for (float& value : row) value = std::abs(value) / most;
        const auto sum = [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
            double total = 0;
            for (auto at = row.begin() + begin; at != row.begin() + end; ++at)
                if (!std::isnan(*at)) total = implicit ? std::max<double>(total, *at) : total + *at;
            return static_cast<float>(total);
        };
        read.weights.insert(read.weights.end(), row.begin() + from, row.begin() + to);
        read.before.push_back(sum(0, from));
        read.behind.push_back(sum(to, std::ssize(row)));
    }
    return read;
}

}  // namespace

std::int64_t bytes_of(const WindowWeights& weights) {
    return static_cast<std::int64_t>((weights.weights.size() + 2 * weights.before.size()) * sizeof(float));
}

Reply<WindowWeights> window_weights(Study& study, std::int64_t sequence, std::int64_t site, std::int64_t head,
                                    const TokenWindow& window, bool words) {
    Reply<WindowWeights> none;
    const auto take = [&none](const auto& reply) -> std::shared_ptr<const maps::PairMap> {
        none.pending = reply.pending;
        none.failure = reply.failure;
        return reply.value;
    };
    const auto map = words ? take(study.word_map(sequence, site, head)) : take(study.weights_map(sequence, site, head));
    if (!map) return none;
    std::string key = words ? "words' window" : "window";
    for (const std::int64_t part : {sequence, site, head, window.q_begin, window.q_end, window.k_begin, window.k_end})
        key += ":" + std::to_string(part);
    return study.ask<WindowWeights>(key, sequence, site, [map, window](const store::AnalysisFile&) {
        TokenWindow inside = window;
        inside.q_end = std::min(inside.q_end, map->queries());
        inside.k_end = std::min(inside.k_end, map->keys());
        return std::make_shared<const WindowWeights>(read_window(*map, inside));
    });
}

std::vector<WeightLine> lines_of(const std::vector<const WindowWeights*>& heads, double threshold, std::size_t most,
                                 std::int64_t& found) {
    std::vector<WeightLine> lines;
    const auto least = static_cast<float>(std::max(threshold, 1e-6));
    for (std::size_t h = 0; h < heads.size(); ++h) {
        if (!heads[h]) continue;
        const WindowWeights& head = *heads[h];
        const std::int64_t keys = head.window.keys();
        const auto offer = [&](std::int64_t q, std::int64_t k, float weight) {
            if (weight >= least) lines.push_back({q, k, static_cast<int>(h), weight});
        };
        for (std::int64_t q = 0; q < head.window.queries(); ++q) {
            const auto row = static_cast<std::size_t>(q);
            offer(q, -1, head.before[row]);
            offer(q, keys, head.behind[row]);
            for (std::int64_t k = 0; k < keys; ++k)
                offer(q, k, head.weights[row * static_cast<std::size_t>(keys) + static_cast<std::size_t>(k)]);
        }
    }
    found = std::ssize(lines);
    std::stable_sort(lines.begin(), lines.end(),
                     [](const WeightLine& a, const WeightLine& b) { return a.weight < b.weight; });
    if (lines.size() > most) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most));
    return lines;
}

}  // namespace headscope::widgets
