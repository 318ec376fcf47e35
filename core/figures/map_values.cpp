// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/map_values.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/maps/map_reader.h"

namespace headscope::figures {
std::vector<float> exact_values(const store::AnalysisFile::Map& map, std::int64_t head, const maps::Cells& region,
                                MapValues values) {
    return values == MapValues::weights ? maps::exact_weights(map, head, region)
                                        : maps::exact_scores(map, head, region);
}

std::vector<float> pooled_values(const store::AnalysisFile::Map& map, std::int64_t head, const maps::Cells& region,
                                 std::int64_t rows, std::int64_t columns, MapValues values, Pooling pooling) {
    const bool mean = pooling == Pooling::mean;
    if (values == MapValues::weights) return maps::pooled_weights(map, head, region, rows, columns, mean);
    return maps::pooled_bands(region, rows, columns, mean,
                              [&](const maps::Cells& band) { return maps::exact_scores(map, head, band); });
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
    if (!map) throw not_recorded(file, site, recipe);
    return map;
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
