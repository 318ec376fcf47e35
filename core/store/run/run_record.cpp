// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/run/run_record.h"

#include <algorithm>

namespace headscope::store {

const RunIndicator* RunProbes::find(const std::string& name) const {
    const auto it = std::find_if(indicators.begin(), indicators.end(),
                                 [&](const RunIndicator& indicator) { return indicator.name == name; });
    return it == indicators.end() ? nullptr : &*it;
}

std::int64_t RunRecord::heads() const {
    std::int32_t most = 0;
    for (const Site& site : sites) most = std::max(most, site.heads);
    return most;
}

}  // namespace headscope::store
