// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/measured.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/store/analysis_file.h"

namespace headscope::reproduce {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Mean of the numbers among them.
double mean_of(const std::vector<double>& values, std::size_t first, std::size_t count, std::size_t step) {
    double sum = 0;
    int numbers = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double value = values[first + i * step];
        if (!std::isfinite(value)) continue;
        sum += value;
        ++numbers;
    }
    return numbers > 0 ? sum / numbers : kNone;
}

}  // namespace

Which which_of(const store::EvaluatedModel& model) {
    if (model.mixer == "standard") return {"standard", "standard"};
    if (!model.skipped.empty()) return {model.mixer, "skip"};
    return {model.mixer, model.layout == "even" ? "hybrid" : model.layout};
}

Scores::Scores(const store::Evaluation& evaluation) {
    for (const auto& model : evaluation.models) parameters_.emplace(which_of(model), model.parameters);
    for (const auto& result : evaluation.results) {
        const Which which = which_of(evaluation.models.at(static_cast<std::size_t>(result.model)));
        values_[{which, result.task, result.metric, result.length}].push_back(result.value);
    }
}

Spread Scores::value(const Which& which, const std::string& task, const std::string& metric,
                     std::int64_t length) const {
    const auto it = values_.find({which, task, metric, length});
    return it == values_.end() ? Spread{} : spread_of(it->second);
}

bool Scores::has(const Which& which) const {
    return parameters_.count(which) > 0;
}

std::vector<std::string> Scores::configurations(const std::string& mixer) const {
    std::vector<std::string> list;
    for (const auto& [which, count] : parameters_)
        if (which.first == mixer) list.push_back(which.second);
    return list;
}

std::int64_t Scores::parameters(const Which& which) const {
    const auto it = parameters_.find(which);
    return it == parameters_.end() ? 0 : it->second;
}

Indicators read_indicators(const std::filesystem::path& analysis, const Which& which, std::int64_t seed) {
    const auto file = store::AnalysisFile::open(analysis);
    const auto& header = file->header();
    Indicators result;
    result.which = which;
    result.seed = seed;
    result.mixers = header.mixers;
    // Of the first sequence: it comes first in every array.
    const std::size_t sites = header.sites.size();
    const auto heads = static_cast<std::size_t>(header.most_heads());
    const auto entropy = file->indicator("entropy").data, concentration = file->indicator("concentration").data,
               diversity = file->indicator("head_diversity").data, local = file->indicator("local_focus").data,
               sink = file->indicator("sink").data, lowest = file->score_statistic("minimum").data,
               highest = file->score_statistic("maximum").data, above = file->score_statistic("above").data;
    const std::size_t distances = header.local_distances.size();
    const auto length = static_cast<double>(header.sequences.front().ids.size());
    for (std::size_t site = 0; site < sites; ++site) {
        std::vector<double> values{mean_of(entropy, site * heads, heads, 1),
                                   mean_of(concentration, site * heads, heads, 1), diversity[site]};
        for (std::size_t n = 0; n < 4; ++n)
            values.push_back(n < distances ? mean_of(local, site * heads * distances + n, heads, distances) : kNone);
        values.push_back(mean_of(sink, site * heads, heads, 1));
        result.layers.push_back(std::move(values));
        const bool scored = header.sites[site].has_matrix;
        double largest = kNone, ten = 0, hundred = 0;
        for (std::size_t h = 0; h < heads && scored; ++h) {
            const std::size_t at = site * heads + h;
            const double reach = std::max(std::abs(lowest[at]), std::abs(highest[at]));
            largest = std::isnan(largest) ? reach : std::max(largest, reach);
            ten += above[3 * at];
            hundred += above[3 * at + 1];
        }
        const double pairs = static_cast<double>(heads) * length * (length + 1) / 2;
        result.largest_score.push_back(largest);
        result.above_ten.push_back(scored ? ten / pairs : kNone);
        result.above_hundred.push_back(scored ? hundred / pairs : kNone);
    }
    return result;
}

Outliers outliers_of(const Indicators& model) {
    Outliers found;
    for (std::size_t i = 0; i < model.largest_score.size(); ++i) {
        if (model.mixers[i] != model.which.first || !std::isfinite(model.largest_score[i])) continue;
        found.largest = std::max(found.largest, model.largest_score[i]);
        found.above_ten += model.above_ten[i];
        ++found.layers;
    }
    if (found.layers > 0) found.above_ten /= found.layers;
    return found;
}

OutlierSpread outliers_over_seeds(const Which& which, const std::vector<Indicators>& all) {
    std::vector<double> largest, above_ten;
    for (const Indicators& one : all) {
        if (one.which != which) continue;
        const Outliers found = outliers_of(one);
        if (found.layers == 0) continue;
        largest.push_back(found.largest);
        above_ten.push_back(found.above_ten);
    }
    return {spread_of(largest), spread_of(above_ten)};
}

double radar_distance(const Indicators& a, const Indicators& b, const std::vector<Indicators>& all,
                      const std::string& mixer) {
    std::array<double, 3> low, high;
    low.fill(std::numeric_limits<double>::infinity());
    high.fill(-std::numeric_limits<double>::infinity());
    for (const Indicators& model : all) {
        for (const auto& layer : model.layers) {
            for (std::size_t i = 0; i < 3; ++i) {
                if (!std::isfinite(layer[i])) continue;
                low[i] = std::min(low[i], layer[i]);
                high[i] = std::max(high[i], layer[i]);
            }
        }
    }
    double sum = 0;
    int count = 0;
    for (std::size_t layer = 0; layer < std::min(a.layers.size(), b.layers.size()); ++layer) {
        if (!mixer.empty() && (a.mixers[layer] != mixer || b.mixers[layer] != mixer)) continue;
        for (std::size_t i = 0; i < a.layers[layer].size(); ++i) {
            const double scale = i < 3 && high[i] > low[i] ? high[i] - low[i] : 1;
            const double difference = std::abs(a.layers[layer][i] - b.layers[layer][i]) / scale;
            if (!std::isfinite(difference)) continue;
            sum += difference;
            ++count;
        }
    }
    return count > 0 ? sum / count : kNone;
}

Spread distances_over_seeds(const Which& which, const Which& to, const std::vector<Indicators>& all,
                            const std::string& mixer) {
    std::vector<double> means;
    for (const Indicators& one : all) {
        if (one.which != which) continue;
        std::vector<double> distances;
        for (const Indicators& other : all) {
            if (other.which != to || &other == &one) continue;
            const double distance = radar_distance(one, other, all, mixer);
            if (std::isfinite(distance)) distances.push_back(distance);
        }
        if (!distances.empty()) means.push_back(spread_of(distances).mean);
    }
    return spread_of(means);
}

}  // namespace headscope::reproduce
