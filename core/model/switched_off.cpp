// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/switched_off.h"

#include <set>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace headscope::model {

void check_switched_off(std::span<const SwitchedOff> heads, const std::vector<Site>& sites, bool cached) {
    const auto refuse = [](const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::usage, "--switch-off", "expected " + expected, "found " + found);
    };
    std::set<std::pair<std::int64_t, std::int64_t>> known;
    for (const SwitchedOff& off : heads) {
        if (off.site < 0 || off.site >= std::ssize(sites))
            refuse("a site from 0 to " + std::to_string(std::ssize(sites) - 1), std::to_string(off.site));
        const Site& site = sites[static_cast<std::size_t>(off.site)];
        const std::string layer = "layer " + std::to_string(site.layer);
        if (!site.has_matrix && !site.has_implicit) refuse("a layer with attention heads", layer + ", which has none");
        if (off.head < 0 || off.head >= site.heads)
            refuse("a head of " + layer + " from 0 to " + std::to_string(site.heads - 1), std::to_string(off.head));
        if (!known.emplace(off.site, off.head).second)
            refuse("each head once", "head " + std::to_string(off.head) + " of " + layer + " twice");
        if (cached && off.how == SwitchedOff::How::mean)
            refuse("zero where text follows text", "mean, which is over a whole text");
    }
}

}  // namespace headscope::model
