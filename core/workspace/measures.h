// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Columns of tables of heads: names, units, definitions and sources of the indicators (kernels/indicators.h).

#include <span>
#include <string_view>

namespace headscope::workspace {

struct Measure {
    std::string_view name;        ///< as in files and filters: "sink", "local_focus_1"
    std::string_view title;       ///< "Local focus, 1 back"
    std::string_view unit;        ///< empty: none
    std::string_view definition;  ///< one sentence
    std::string_view source;      ///< where it was defined
    bool of_layer = false;        ///< one value a layer, not a head
};

/// All columns, in the order of tables.
std::span<const Measure> measures();
/// Null for an unknown name.
const Measure* find_measure(std::string_view name);

}  // namespace headscope::workspace
