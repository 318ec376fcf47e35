// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/measures.h"

#include <algorithm>
#include <vector>

#include "kernels/indicators.h"

namespace headscope::workspace {
namespace {

std::vector<Measure> read_table() {
    std::vector<Measure> all;
    for (const kernels::Indicator& one : kernels::indicators()) {
        if (*one.definition == '\0') continue;
        const char* title = *one.short_title == '\0' ? one.title : one.short_title;
        all.push_back({one.name, title, one.unit, one.definition, one.source, !one.per_head});
    }
    return all;
}

}  // namespace

std::span<const Measure> measures() {
    static const std::vector<Measure> all = read_table();
    return all;
}

const Measure* find_measure(std::string_view name) {
    const auto all = measures();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Measure& one) { return one.name == name; });
    return found == all.end() ? nullptr : &*found;
}

}  // namespace headscope::workspace
