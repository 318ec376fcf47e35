// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/store/analysis/analysis_header.h"

namespace headscope::figures {

/// An analysis that needs a name beside others.
struct UnnamedAnalysis {
    const store::AnalysisHeader* header = nullptr;
    std::string file;   ///< its name, without folder
    std::string given;  ///< by the user; empty: none
};

/// The given names, else the models'. Analyses of one model are distinguished by the names of their files, or where
/// those are only times by their texts, by the heads that are switched off, or by a number. Threads: any.
std::vector<std::string> analysis_labels(std::span<const UnnamedAnalysis> analyses);

}  // namespace headscope::figures
