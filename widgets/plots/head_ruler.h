// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/site.h"

namespace headscope::widgets {

/// Places of heads side by side: cells of one size, and a gap wherever the shared key head changes.
struct HeadRuler {
    double cell = 1, gap = 0;
    std::int64_t group = 1;  ///< heads that share keys; 1: each has its own

    double begin(std::int64_t head) const {
        return static_cast<double>(head) * cell + static_cast<double>(group > 1 ? head / group : 0) * gap;
    }
    double end(std::int64_t head) const { return begin(head) + cell; }
    /// The head at `x`, or the nearest before a gap; may be negative or too large.
    std::int64_t at(double x) const {
        if (x < 0) return -1;
        if (group <= 1) return static_cast<std::int64_t>(x / cell);
        const double pitch = static_cast<double>(group) * cell + gap;
        const auto whole = static_cast<std::int64_t>(x / pitch);
        const auto within = static_cast<std::int64_t>((x - static_cast<double>(whole) * pitch) / cell);
        return whole * group + std::min(within, group - 1);
    }
};

/// Heads of a site that share keys with each other.
inline std::int64_t group_of(const Site& site) {
    return std::max(1, site.heads / std::max(1, site.key_value_heads));
}

}  // namespace headscope::widgets
