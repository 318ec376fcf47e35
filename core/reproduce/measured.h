// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What a reproduction measured, gathered: scores of each configuration over seeds, indicators and score outliers of
// each analysed model.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/reproduce/claim.h"
#include "core/store/evaluation_file.h"

namespace headscope::reproduce {

/// Mixer and configuration ("standard", "uniform", "hybrid", "skip", or a layout of the ablation).
using Which = std::pair<std::string, std::string>;

class Scores {
public:
    explicit Scores(const store::Evaluation& evaluation);
    /// Empty Spread when nothing was measured.
    Spread value(const Which& which, const std::string& task, const std::string& metric, std::int64_t length) const;
    Spread perplexity(const Which& which, std::int64_t length) const {
        return value(which, "perplexity", "token_perplexity", length);
    }
    Spread loss(const Which& which, std::int64_t length) const { return value(which, "perplexity", "loss", length); }
    Spread accuracy(const Which& which, std::int64_t length) const {
        return value(which, "next_token_accuracy", "accuracy", length);
    }
    bool has(const Which& which) const;
    std::vector<std::string> configurations(const std::string& mixer) const;
    std::int64_t parameters(const Which& which) const;

private:
    struct Key {
        Which which;
        std::string task, metric;
        std::int64_t length;
        auto operator<=>(const Key&) const = default;
    };
    std::map<Key, std::vector<double>> values_;
    std::map<Which, std::int64_t> parameters_;
};

/// The configuration that an evaluated model is.
Which which_of(const store::EvaluatedModel& model);

/// An analysed model: means over heads of the eight indicators of each layer, NaN for layers without a matrix, and how
/// far scores reach.
struct Indicators {
    Which which;
    std::int64_t seed = 1;
    std::vector<std::string> mixers;               ///< of each layer
    std::vector<std::vector<double>> layers;       ///< [layers][8]: H, C, HD, LF0 to LF3, S
    std::vector<double> largest_score;             ///< by layer: max |s|
    std::vector<double> above_ten, above_hundred;  ///< by layer: share of the pairs
};
/// Of the layers of the mixer that the model is about. `layers` 0: none has scores.
struct Outliers {
    double largest = 0;    ///< |score|
    double above_ten = 0;  ///< share of the pairs, mean over layers
    int layers = 0;
};
Outliers outliers_of(const Indicators& model);
/// Of all seeds of a configuration; without seeds that have no scores.
struct OutlierSpread {
    Spread largest, above_ten;
};
OutlierSpread outliers_over_seeds(const Which& which, const std::vector<Indicators>& all);

Indicators read_indicators(const std::filesystem::path& analysis, const Which& which, std::int64_t seed);

/// Mean over layers and indicators of |a - b| in the units of the paper's radar plots: entropy, concentration and head
/// diversity min-max normalised over all of `all`, the others as they are. Layers that either lacks are left out; only
/// layers of mixer `mixer` in both where that is not empty.
double radar_distance(const Indicators& a, const Indicators& b, const std::vector<Indicators>& all,
                      const std::string& mixer = "");
/// Over the seeds of `which`: each one's mean radar_distance() to the models of `to`, never to itself.
Spread distances_over_seeds(const Which& which, const Which& to, const std::vector<Indicators>& all,
                            const std::string& mixer = "");

}  // namespace headscope::reproduce
