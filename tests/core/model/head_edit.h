// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <vector>

#include "core/model/edits/intervention.h"

namespace headscope::test {

/// An edit of the output of one head, by the number of its site.
inline model::Intervention head_edit(const std::vector<Site>& sites, std::int64_t site, std::int64_t head,
                                     model::Action action = model::Action::zero) {
    const Site& own = sites.at(static_cast<std::size_t>(site));
    model::Intervention edit;
    edit.layers = {own.layer};
    const auto of_layer = [&](const Site& other) { return other.layer == own.layer; };
    if (std::count_if(sites.begin(), sites.end(), of_layer) > 1)
        edit.attention = own.branch.empty() ? own.kind : own.branch;
    edit.heads = {head};
    edit.action = action;
    return edit;
}

}  // namespace headscope::test
