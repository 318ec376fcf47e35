// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/map_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headscope::figures {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kBand = 64;  ///< queries at a time

}  // namespace

std::vector<float> exact_values(const store::AnalysisFile::Map& map, std::int64_t head, const Region& region,
                                MapValues values) {
    if (values == MapValues::weights) return exact_weights(map, head, region);
    std::vector<float> scores(static_cast<std::size_t>(region.queries() * region.keys()));
    kernels::attention_scores(map.input(), 0, head, region.first_query, region.end_query, region.first_key,
                              region.end_key, scores.data());
    for (float& score : scores)
        if (score == -std::numeric_limits<float>::infinity()) score = kNone;
    return scores;
}

std::vector<float> pooled_bands(const Region& region, std::int64_t rows, std::int64_t columns, bool mean,
                                const std::function<std::vector<float>(const Region& band)>& read,
                                bool absent_as_zero) {
    const auto size = static_cast<std::size_t>(rows * columns);
    std::vector<float> cells(size, kNone);
    std::vector<double> sums(mean ? size : 0), counts(mean ? size : 0), pairs(mean ? size : 0);
    for (std::int64_t begin = 0; begin < region.queries(); begin += kBand) {
        const std::int64_t end = std::min(begin + kBand, region.queries());
        const auto values =
            read({region.first_query + begin, region.first_query + end, region.first_key, region.end_key});
        const float* value = values.data();
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t row = i * rows / region.queries() * columns;
            for (std::int64_t j = 0; j < region.keys(); ++j, ++value) {
                const auto at = static_cast<std::size_t>(row + j * columns / region.keys());
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

std::vector<float> pooled_values(const store::AnalysisFile::Map& map, std::int64_t head, const Region& region,
                                 std::int64_t rows, std::int64_t columns, MapValues values, Pooling pooling) {
    if (values == MapValues::weights) return pooled_weights(map, head, region, rows, columns, pooling);
    return pooled_bands(region, rows, columns, pooling == Pooling::mean,
                        [&](const Region& band) { return exact_values(map, head, band, MapValues::logits); });
}

std::vector<float> pooled_values(const maps::MeanMap& map, const Region& region, std::int64_t rows,
                                 std::int64_t columns, MapValues values, Pooling pooling) {
    const bool weights = values == MapValues::weights;
    const auto read = [&](const Region& band) {
        const maps::Cells cells{band.first_query, band.end_query, band.first_key, band.end_key};
        return weights ? map.values(cells) : map.scores(cells);
    };
    return pooled_bands(region, rows, columns, pooling == Pooling::mean, read, weights);
}

double largest_logit(const store::AnalysisFile& file, std::int64_t s, std::int64_t site, std::int64_t head) {
    double largest = 0;
    for (const char* which : {"minimum", "maximum"}) {
        const store::Values values = file.score_statistic(which);
        const auto at = static_cast<std::size_t>((s * values.shape.at(1) + site) * values.shape.at(2) + head);
        if (at < values.data.size() && std::isfinite(values.data[at]))
            largest = std::max(largest, std::abs(values.data[at]));
    }
    return largest;
}

std::string values_label(MapValues values) {
    return values == MapValues::logits ? "logit before the normaliser" : "attention weight";
}

std::string values_column(MapValues values, Pooling pooling, bool pooled) {
    const bool logits = values == MapValues::logits;
    const std::string name = logits ? "logit" : "weight";
    if (!pooled) return name;
    return (pooling == Pooling::mean ? "mean_" : logits ? "extreme_" : "largest_") + name;
}

}  // namespace headscope::figures
