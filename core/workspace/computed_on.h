// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/store/analysis/analysis_header.h"

namespace headscope::workspace {

/// Device and kernels of an analysis, by its settings.
struct ComputedOn {
    std::string device, kernels;  ///< empty: not recorded
};

/// Both escaped for one line. Threads: any.
ComputedOn computed_on(const store::AnalysisHeader& header);

}  // namespace headscope::workspace
