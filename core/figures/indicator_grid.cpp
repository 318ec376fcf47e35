// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/indicator_grid.h"

#include <algorithm>
#include <array>
#include <cmath>

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
    Known{"virtual_sink", "Virtual sink", "", true},
    Known{"softmax_fraction", "Softmax fraction", "", true},
};

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
    const auto values = file.indicator(name);
    IndicatorGrid grid;
    grid.model = model;
    grid.indicator = name;
    const Known* about = known(name);
    grid.title = about != nullptr ? about->title : name;
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
        IndicatorGrid one = grid;
        if (width > 1) {
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
    const auto wanted = std::find(names.begin(), names.end(), options.indicator);
    if (wanted == names.end()) {
        std::string list;
        for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
        throw Error(ErrorCode::usage, "--indicator", "expected one of " + list + " of " + file_name(file),
                    "found " + escaped(options.indicator));
    }
    return {*wanted};
}

std::string indicator_title(const std::string& name) {
    return known(name) != nullptr ? known(name)->title : name;
}

}  // namespace headscope::figures
