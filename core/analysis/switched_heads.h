// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Heads as people write them: "3.1" is head 1 of layer 3; where a layer has several attentions, "3.cross.1" names which
// (self, cross, or the branch). Errors: headscope::Error (usage). Threads: any.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/site.h"
#include "core/model/edits/intervention.h"

namespace headscope::analysis {

struct HeadIndex {
    std::int64_t site = 0, head = 0;
    bool operator==(const HeadIndex&) const = default;
};

/// "3.1,4.cross.2" -> those heads; empty: none. `option` names the list in errors. Throws usage for heads that the
/// model lacks and for a head named twice.
std::vector<HeadIndex> parse_heads(const std::string& option, std::string_view list, const std::vector<Site>& sites);

/// "3.1,4.cross.2" -> an edit of each head's output, `how` being zero or mean. Throws usage for heads that the model
/// lacks and for a head named twice.
std::vector<model::Intervention> parse_switched_off(std::string_view list, model::Action how,
                                                    const std::vector<Site>& sites);

/// Name that parse_switched_off() reads.
std::string head_name(std::int64_t site, std::int64_t head, const std::vector<Site>& sites);

}  // namespace headscope::analysis
