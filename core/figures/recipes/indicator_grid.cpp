// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/recipes/indicator_grid.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "kernels/indicators.h"

namespace headscope::figures {
namespace {

using kernels::IndicatorKind;
constexpr std::string_view kScore = "score_";

/// Values of a name in a file: all of a dataset, or one of the numbers that it has for each head.
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

/// Row of an indicator; null for names that the table lacks, and for those at one distance.
const kernels::Indicator* known(const std::string& name) {
    const kernels::Indicator* found = kernels::find_indicator(name);
    return found != nullptr && found->kind != IndicatorKind::distance ? found : nullptr;
}

/// True for indicators of scores; drawn on request only.
bool of_scores(const kernels::Indicator& one) {
    return one.kind == IndicatorKind::score || one.kind == IndicatorKind::count;
}

bool of_scores(const std::string& name) {
    const kernels::Indicator* found = known(name);
    return found != nullptr && of_scores(*found);
}

Stored stored_values(const store::AnalysisFile& file, const std::string& name) {
    const kernels::Indicator* about = known(name);
    if (about != nullptr && about->kind == IndicatorKind::score)
        return {file.score_statistic(name.substr(kScore.size())), std::nullopt, {}};
    if (about != nullptr && about->kind == IndicatorKind::count) {
        const auto counts = kernels::indicators_of(IndicatorKind::count);
        return {file.score_statistic("above"), std::find(counts.begin(), counts.end(), about) - counts.begin(), {}};
    }
    if (const auto distance = distance_of(file, name))
        return {file.indicator(distance->first), distance->second, distance->first};
    return {file.indicator(name), std::nullopt, {}};
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
    const kernels::Indicator* about = known(base.empty() ? name : base);
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
    for (const kernels::Indicator& one : kernels::indicators())
        if (std::find(stored.begin(), stored.end(), one.name) != stored.end()) names.emplace_back(one.name);
    for (const auto& name : stored) {
        if (name != "column_mass" && known(name) == nullptr) names.push_back(name);
    }
    if (options.indicator.empty()) return names;
    if (of_scores(options.indicator) || distance_of(file, options.indicator)) return {options.indicator};
    const auto wanted = std::find(names.begin(), names.end(), options.indicator);
    if (wanted == names.end()) {
        std::string list = joined_text(names, ", ");
        for (const kernels::Indicator& one : kernels::indicators())
            if (of_scores(one)) list += std::string(", ") + one.name;
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
