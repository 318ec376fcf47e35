// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace headscope::figures {

/// Pairs of positions, rising in both, at which two lists are equal: a longest such list, or a good one with complete
/// false where more than some 2000 items differ.
struct CommonItems {
    std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
    bool complete = true;
};
CommonItems common_items(std::span<const std::int32_t> a, std::span<const std::int32_t> b);

}  // namespace headscope::figures
