// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/map_values.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "core/base/error.h"
#include "core/maps/map_reader.h"

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

std::vector<float> pooled_values(const maps::PairMap& map, const Region& region, std::int64_t rows,
                                 std::int64_t columns, MapValues values, Pooling pooling) {
    const bool logits = values == MapValues::logits;
    const auto read = [&](const Region& band) {
        const maps::Cells cells{band.first_query, band.end_query, band.first_key, band.end_key};
        return logits ? map.scores(cells) : map.values(cells);
    };
    return pooled_bands(region, rows, columns, pooling == Pooling::mean, read, !logits);
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

std::shared_ptr<const maps::ValueMap> computed_map(const store::AnalysisFile& file, std::int64_t s, std::int64_t site,
                                                   std::int64_t head, MapValues values, const std::string& recipe) {
    check_recorded(file, s, site, recipe);
    std::shared_ptr<const maps::ValueMap> map;
    if (values == MapValues::rollout)
        map = maps::read_rollout(file, s, site);
    else if (values == MapValues::implicit)
        map = maps::read_implicit_map(file, s, site, head);
    else
        map = maps::read_norm_map(file, s, site, of_layer(values) ? std::nullopt : std::optional(head));
    if (map) return map;
    throw Error(ErrorCode::usage, "figure " + recipe + ", " + site_title(file, site) + " of " + file_name(file),
                "expected a layer whose map was recorded", "found none");
}

std::vector<float> pooled_values(const maps::ValueMap& map, const Region& region, std::int64_t rows,
                                 std::int64_t columns, Pooling pooling) {
    const bool mean = pooling == Pooling::mean;
    const auto* rollout = dynamic_cast<const maps::Rollout*>(&map);
    if (rollout == nullptr || rollout->whole()) {
        const auto read = [&map](const Region& band) {
            return map.values({band.first_query, band.end_query, band.first_key, band.end_key});
        };
        return pooled_bands(region, rows, columns, mean, read, true);
    }
    std::vector<std::int64_t> bounds;
    for (std::int64_t r = 0; r <= rows; ++r) bounds.push_back(region.query_of(r, rows));
    const std::atomic<bool> go_on{false};
    const std::vector<float> means = rollout->mean_rows(bounds, go_on);
    std::vector<float> cells(static_cast<std::size_t>(rows * columns), kNone);
    for (std::int64_t r = 0; r < rows; ++r) {
        const float* row = means.data() + r * map.keys();
        const auto at = static_cast<std::size_t>(r);
        const std::int64_t sees = map.seen(bounds[at], bounds[at + 1]).second;
        for (std::int64_t c = 0; c < columns; ++c) {
            const std::int64_t begin = region.key_of(c, columns), end = region.key_of(c + 1, columns);
            if (begin >= sees) break;
            cells[static_cast<std::size_t>(r * columns + c)] =
                mean ? std::accumulate(row + begin, row + end, 0.0F) / static_cast<float>(end - begin)
                     : *std::max_element(row + begin, row + end);
        }
    }
    return cells;
}

MapValues values_of_site(const store::AnalysisFile& file, std::int64_t site, MapValues asked,
                         const std::string& recipe) {
    if (!file.header().sites[static_cast<std::size_t>(site)].has_implicit) return asked;
    const std::string where = "figure " + recipe + ", " + site_title(file, site);
    if (asked != MapValues::weights) {
        throw Error(ErrorCode::usage, where,
                    "expected --values weights: of a recurrent layer there is the implicit matrix alone",
                    "found " + values_word(asked));
    }
    return MapValues::implicit;
}

std::string definition_note(MapValues values) {
    if (values == MapValues::implicit)
        return "Implicit attention of a recurrent layer: the signed coefficients A with which its outputs are A times "
               "its values.";
    if (values == MapValues::rollout)
        return "Rollout (Abnar and Zuidema 2020, arXiv 2005.00928): the product over the layers up to this one of half "
               "the "
               "heads' mean weights and half the identity, rows summing to 1.";
    if (!of_norms(values)) return "";
    return std::string(
               "Norms (Kobayashi et al. 2020, arXiv 2004.10102): the length of weight times value times output "
               "projection, ") +
           (of_layer(values) ? "summed over the layer's heads before it is measured." : "of one head.");
}

void check_one_map(const FigureOptions& options) {
    if (options.units == Units::words && options.values != MapValues::weights) {
        throw Error(ErrorCode::usage, "--units words", "expected weights, for words have no others",
                    "found " + values_label(options.values));
    }
    if (of_layer(options.values) && options.head) {
        throw Error(ErrorCode::usage, "--head",
                    "expected none, for --values " +
                        std::string(options.values == MapValues::rollout ? "rollout" : "layer-norms") +
                        " is of all heads together",
                    "found " + (*options.head == kMeanOfHeads ? "mean" : std::to_string(*options.head)));
    }
    if (options.values == MapValues::norms && options.head == kMeanOfHeads) {
        throw Error(ErrorCode::usage, "--head", "expected a number, or --values layer-norms for all heads together",
                    "found mean");
    }
    if ((of_layer(options.values) || of_norms(options.values)) && options.all_sequences) {
        throw Error(ErrorCode::usage, "--sequence", "expected a number, for norms and rollout are of one sequence",
                    "found all");
    }
}

std::string values_label(MapValues values) {
    if (values == MapValues::rollout) return "rollout";
    if (values == MapValues::implicit) return "coefficient of a value";
    if (of_norms(values)) return of_layer(values) ? "norm of what all heads give" : "norm of what the head gives";
    return values == MapValues::logits ? "score before the normalizer" : "attention weight";
}

std::string values_word(MapValues values) {
    if (values == MapValues::rollout) return "rollout";
    if (values == MapValues::implicit) return "coefficient";
    return values == MapValues::logits ? "score" : of_norms(values) ? "norm" : "weight";
}

std::string values_column(MapValues values, Pooling pooling, bool pooled) {
    // CSV keeps the column name of its first version.
    const std::string name = values == MapValues::logits ? "logit" : values_word(values);
    if (!pooled) return name;
    const bool of_signs = values == MapValues::logits || values == MapValues::implicit;
    return (pooling == Pooling::mean ? "mean_" : of_signs ? "extreme_" : "largest_") + name;
}

}  // namespace headscope::figures
