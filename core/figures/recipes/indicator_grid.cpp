// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/recipes/indicator_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace headscope::figures {
namespace {

/// How an indicator is called and scaled; those not listed show their own name and range.
struct Known {
    const char* name;
    const char* title;
    const char* unit;
    bool from_zero;  ///< a share or a distance: the scale begins at 0
};

constexpr std::array kKnown{
    Known{"entropy", "Entropy", "nats", false},
    Known{"entropy_row_mean", "Entropy per query", "nats", false},
    Known{"concentration", "Concentration", "", false},
    Known{"head_diversity", "Head diversity (by layer)", "", true},
    Known{"sink", "Sink", "", true},
    Known{"local_focus", "Local focus", "", true},
    Known{"density", "Density", "", false},
    Known{"sparsity", "Sparsity", "", true},
    Known{"zero_fraction", "Zero fraction", "", true},
    Known{"mean_distance", "Mean distance", "tokens", true},
    Known{"duplicate", "Duplicate tokens", "", true},
    Known{"induction", "Induction", "", true},
    Known{"virtual_sink", "Learned sink", "", true},
    Known{"softmax_fraction", "Softmax fraction", "", true},
    // What a run's probe keeps of parameters.
    Known{"offset", "Offset", "", false},
    Known{"bias_0", "Bias at distance 0", "", false},
    Known{"bias_1", "Bias at distance 1", "", false},
    Known{"bias_4", "Bias at distance 4", "", false},
    Known{"bias_16", "Bias at distance 16", "", false},
    Known{"bias_64", "Bias at distance 64", "", false},
    Known{"bias_256", "Bias at distance 256", "", false},
    Known{"bias_1024", "Bias at distance 1024", "", false},
    // Of pairs of texts.
    Known{"a_to_a", "A to A", "", true},
    Known{"a_to_b", "A to B", "", true},
    Known{"b_to_a", "B to A", "", true},
    Known{"b_to_b", "B to B", "", true},
    Known{"a_to_special", "A to inserted tokens", "", true},
    Known{"b_to_special", "B to inserted tokens", "", true},
    Known{"special_to_a", "Inserted tokens to A", "", true},
    Known{"special_to_b", "Inserted tokens to B", "", true},
    Known{"special_to_special", "Inserted to inserted tokens", "", true},
    // Of the scores; drawn on request only.
    Known{"score_minimum", "Smallest score", "", false},
    Known{"score_maximum", "Largest score", "", false},
    Known{"score_mean", "Mean score", "", false},
    Known{"score_variance", "Score variance", "", true},
    Known{"above_10", "Scores beyond 10", "", true},
    Known{"above_100", "Scores beyond 100", "", true},
    Known{"above_1000", "Scores beyond 1000", "", true},
};

constexpr std::string_view kScore = "score_";
constexpr std::array kScores{"score_minimum", "score_maximum", "score_mean", "score_variance"};
constexpr std::array kAbove{"above_10", "above_100", "above_1000"};

/// Where a name's values are in a file: all of a dataset, or one of the numbers that it has for each head.
struct Stored {
    store::Values values;
    std::optional<std::int64_t> pick;
    std::string base;  ///< of a distance: the indicator's own name
};

/// "local_focus_2": the distance at which an indicator's numbers are, if the file has that.
std::optional<std::pair<std::string, std::int64_t>> distance_of(const store::AnalysisFile& file,
                                                                const std::string& name) {
    const auto& distances = file.header().local_distances;
    for (std::size_t k = 0; k < distances.size(); ++k) {
        const std::string end = "_" + std::to_string(distances[k]);
        if (name.size() <= end.size() || !name.ends_with(end)) continue;
        const std::string base = name.substr(0, name.size() - end.size());
        const auto stored = file.indicators();
        if (std::find(stored.begin(), stored.end(), base) != stored.end() && file.indicator(base).shape.size() == 4)
            return std::pair(base, static_cast<std::int64_t>(k));
    }
    return std::nullopt;
}

bool of_logits(const std::string& name) {
    return std::find(kScores.begin(), kScores.end(), name) != kScores.end() ||
           std::find(kAbove.begin(), kAbove.end(), name) != kAbove.end();
}

Stored stored_values(const store::AnalysisFile& file, const std::string& name) {
    if (name.starts_with(kScore) && of_logits(name))
        return {file.score_statistic(name.substr(kScore.size())), std::nullopt, {}};
    if (const auto* above = std::find(kAbove.begin(), kAbove.end(), name); above != kAbove.end())
        return {file.score_statistic("above"), above - kAbove.begin(), {}};
    if (const auto distance = distance_of(file, name))
        return {file.indicator(distance->first), distance->second, distance->first};
    return {file.indicator(name), std::nullopt, {}};
}

const Known* known(const std::string& name) {
    const auto* found = std::find_if(kKnown.begin(), kKnown.end(), [&](const auto& k) { return name == k.name; });
    return found == kKnown.end() ? nullptr : &*found;
}

std::int64_t most_heads(const store::AnalysisFile& file, const std::vector<std::int64_t>& sites) {
    std::int64_t most = 1;
    for (const auto site : sites)
        most = std::max<std::int64_t>(most, file.header().sites[static_cast<std::size_t>(site)].heads);
    return most;
}

}  // namespace

void add_indicator_grids(std::vector<IndicatorGrid>& grids, const store::AnalysisFile& file, const std::string& model,
                         const std::string& name, const FigureOptions& options) {
    const auto sequences = chosen_sequences(file, options);
    const auto [values, pick, base] = stored_values(file, name);
    IndicatorGrid grid;
    grid.model = model;
    grid.indicator = name;
    const Known* about = known(base.empty() ? name : base);
    grid.title = indicator_title(name);
    grid.unit = about != nullptr ? about->unit : "";
    grid.from_zero = about != nullptr && about->from_zero;
    grid.sites = chosen_sites(file, options);
    for (const auto site : grid.sites) {
        check_head(file, site, options);
        grid.labels.push_back(site_label(file, site));
        grid.layers.push_back(file.header().sites[static_cast<std::size_t>(site)].layer);
    }
    const auto& shape = values.shape;
    grid.per_layer = shape.size() == 2;
    const std::int64_t stored = grid.per_layer ? 1 : shape[2];
    const std::int64_t width = shape.size() == 4 ? shape[3] : 1;
    grid.columns = grid.per_layer ? 1 : most_heads(file, grid.sites);
    if (options.head && !grid.per_layer) {
        grid.first_head = *options.head;
        grid.columns = 1;
    }
    for (std::int64_t k = 0; k < width; ++k) {
        if (pick && k != *pick) continue;
        IndicatorGrid one = grid;
        if (width > 1 && !pick) {
            const auto& distances = file.header().local_distances;
            const std::string distance = k < std::ssize(distances)
                                             ? std::to_string(distances[static_cast<std::size_t>(k)])
                                             : "#" + std::to_string(k);
            one.indicator += "_" + distance;
            one.title += " " + distance;
        }
        for (const auto site : one.sites) {
            for (std::int64_t c = 0; c < one.columns; ++c) {
                const auto h = one.first_head + c;
                std::vector<double> each;
                for (const auto s : sequences) {
                    const auto at = ((s * shape[1] + site) * stored + h) * width + k;
                    if (h < stored) each.push_back(values.data[static_cast<std::size_t>(at)]);
                }
                const Moments over = moments(each);
                one.values.push_back(over.mean);
                one.deviation.push_back(over.deviation);
            }
        }
        grids.push_back(std::move(one));
    }
}

Extent indicator_extent(const std::vector<IndicatorGrid>& grids, const std::string& indicator) {
    Extent all;
    for (const auto& grid : grids) {
        if (grid.indicator != indicator) continue;
        for (const double value : grid.values) {
            if (!std::isfinite(value)) continue;
            all.low = std::min(all.low, value);
            all.high = std::max(all.high, value);
        }
    }
    return all;
}

// Column mass has a position dimension and is no indicator here.
std::vector<std::string> chosen_indicators(const store::AnalysisFile& file, const FigureOptions& options) {
    const auto stored = file.indicators();
    std::vector<std::string> names;
    for (const auto& about : kKnown) {
        if (std::find(stored.begin(), stored.end(), about.name) != stored.end()) names.emplace_back(about.name);
    }
    for (const auto& name : stored) {
        if (name != "column_mass" && known(name) == nullptr) names.push_back(name);
    }
    if (options.indicator.empty()) return names;
    if (of_logits(options.indicator) || distance_of(file, options.indicator)) return {options.indicator};
    const auto wanted = std::find(names.begin(), names.end(), options.indicator);
    if (wanted == names.end()) {
        std::string list;
        for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
        for (const char* name : kScores) list += std::string(", ") + name;
        for (const char* name : kAbove) list += std::string(", ") + name;
        throw Error(ErrorCode::usage, "--indicator", "expected one of " + list + " of " + file_name(file),
                    "found " + escaped(options.indicator));
    }
    return {*wanted};
}

std::string indicator_title(const std::string& name) {
    if (known(name) != nullptr) return known(name)->title;
    constexpr std::string_view focus = "local_focus_";
    return name.starts_with(focus) ? indicator_title("local_focus") + " " + name.substr(focus.size()) : name;
}

}  // namespace headscope::figures
