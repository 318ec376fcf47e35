// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What is measured of a head, for people: names, units, definitions, sources. One list for tables, filters, tooltips.

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

/// All that tables can show, in their order.
std::span<const Measure> measures();
/// Null for an unknown name.
const Measure* find_measure(std::string_view name);

}  // namespace headscope::workspace
