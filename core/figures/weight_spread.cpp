// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/weight_spread.h"

#include <algorithm>
#include <cmath>

#include "core/figures/head_weights.h"
#include "core/maps/pooled_map.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kMostQueries = 512;

}  // namespace

double WeightSpread::edge(std::size_t bin) {
    return std::pow(10.0, static_cast<double>(bin) / kBinsPerDecade - kDecades);
}

void WeightSpread::add(const WeightSpread& other) {
    for (std::size_t b = 0; b < counts.size(); ++b) counts[b] += other.counts[b];
    for (std::size_t k = 0; k < above.size(); ++k) above[k] += other.above[k];
    below += other.below;
    pairs += other.pairs;
    sum += other.sum;
    queries += other.queries;
    minimum = std::min(minimum, other.minimum);
    maximum = std::max(maximum, other.maximum);
    row_step = std::max(row_step, other.row_step);
}

WeightSpread weight_spread(const store::AnalysisFile::Map& map, std::int64_t head) {
    WeightSpread spread;
    spread.row_step = (map.queries + kMostQueries - 1) / kMostQueries;
    const double least = WeightSpread::edge(0);
    // The last query of each step sees most, as in the histograms of scores.
    for (std::int64_t i = spread.row_step - 1; i < map.queries; i += spread.row_step) {
        ++spread.queries;
        for (const float weight : maps::exact_weights(map, head, {i, i + 1, 0, map.keys})) {
            if (std::isnan(weight)) continue;
            const double value = weight;
            ++spread.pairs;
            spread.sum += value;
            for (std::size_t k = 0; k < spread.above.size(); ++k)
                spread.above[k] += value > WeightSpread::kThresholds[k] ? 1 : 0;
            if (!(value >= least)) {
                ++spread.below;
                continue;
            }
            spread.minimum = std::min(spread.minimum, value);
            spread.maximum = std::max(spread.maximum, value);
            const double place = (std::log10(value) + WeightSpread::kDecades) * WeightSpread::kBinsPerDecade;
            const auto last = static_cast<std::ptrdiff_t>(spread.counts.size()) - 1;
            const auto bin = std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(place), 0, last);
            ++spread.counts[static_cast<std::size_t>(bin)];
        }
    }
    return spread;
}

}  // namespace headscope::figures
