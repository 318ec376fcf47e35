// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace headscope::reproduce {

/// What `headscope reproduce` can replay.
struct Paper {
    std::string name;     ///< "natsl"
    std::string title;    ///< of the paper, or of the thesis with its chapter
    std::string summary;  ///< what is trained
    bool has_seeds;       ///< several runs of each model where minutes or --seeds allow; else one
};
const std::vector<Paper>& papers();

}  // namespace headscope::reproduce
