// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The table of indicators: one row each, read by the kernels' allocation, analysis files, figures and the window.

#include <span>
#include <string_view>
#include <vector>

#include "kernels/statistics.h"

namespace headscope::kernels {

enum class IndicatorKind {
    weights,    ///< one number a head, of the weights
    site,       ///< one number a site or a head that the kernels do not compute as the former
    distances,  ///< one number a head and distance
    distance,   ///< one of those distances
    region,     ///< pairs of texts: mean weight from a region to a region
    parameter,  ///< of a run's probe
    score,      ///< one number a head, of the scores before the normalizer
    count       ///< scores above a threshold
};

struct Indicator {
    const char* name;  ///< in files, filters and options
    IndicatorKind kind;
    const char* title;
    const char* short_title = "";  ///< of a table's column; empty: title
    const char* unit = "";         ///< plural
    bool from_zero = false;        ///< a share or a distance: color scales begin at 0
    bool per_head = true;          ///< false: one value a layer
    std::vector<double> Statistics::*values = nullptr;
    const char* file_text = "";   ///< long_name of its dataset
    const char* definition = "";  ///< one sentence; empty: no column of its own
    const char* source = "";      ///< where it was defined

    /// "nat" of "nats": as files have it.
    std::string_view file_unit() const {
        const std::string_view all(unit);
        return all.ends_with('s') ? all.substr(0, all.size() - 1) : all;
    }
};

/// In the order of tables.
std::span<const Indicator> indicators();
std::vector<const Indicator*> indicators_of(IndicatorKind kind);
/// Null for an unknown name.
const Indicator* find_indicator(std::string_view name);

}  // namespace headscope::kernels
