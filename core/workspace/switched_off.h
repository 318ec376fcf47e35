// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "core/store/analysis/analysis_header.h"

namespace headscope::workspace {

/// A head whose output was replaced while the analysis ran.
struct SwitchedOffHead {
    std::int64_t site = 0, head = 0;
    bool mean = false;  ///< by its mean, else by zero
    bool operator==(const SwitchedOffHead&) const = default;
};

/// From the settings of an analysis: "interventions" that make a head's whole output zero or its mean, and "switch_off"
/// is a list like "3.1,4.cross.2" (layer, which attention where a layer has several, head), "switch_off_how" is zero or
/// mean, once or for each of them. In the order of sites and heads; what cannot be understood, or does not exist, is
/// left out. Any thread.
std::vector<SwitchedOffHead> switched_off_heads(const store::AnalysisHeader& header);

/// Number of interventions of an analysis that do anything else. Any thread.
std::size_t other_interventions(const store::AnalysisHeader& header);

}  // namespace headscope::workspace
