// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace headscope::figures {

/// The part of an analysis that a panel, row, curve or cell shows. A field that is missing is that of the element
/// around it. Views select by it and find marks by it.
struct Subject {
    std::optional<std::int64_t> analysis{};  ///< index of the figure's file
    std::vector<std::int64_t> sites{};       ///< of that file; several: they share the element
    std::optional<std::int64_t> head{};
    std::int64_t heads = 1;  ///< that share the element, from `head` on

    bool operator==(const Subject&) const = default;
    bool empty() const { return sites.empty() && !head; }

    /// This subject with the missing fields of the element around it.
    Subject within(const Subject& outer) const {
        Subject whole = *this;
        if (!analysis) whole.analysis = outer.analysis;
        if (sites.empty()) whole.sites = outer.sites;
        if (!head) {
            whole.head = outer.head;
            whole.heads = outer.heads;
        }
        return whole;
    }

    /// True if it shows that head of that site.
    bool shows(std::int64_t of_analysis, std::int64_t site, std::int64_t of_head) const {
        return (!analysis || *analysis == of_analysis) &&
               (sites.empty() || std::find(sites.begin(), sites.end(), site) != sites.end()) &&
               (!head || (of_head >= *head && of_head < *head + heads));
    }
};

inline Subject of_site(std::int64_t site) {
    return {{}, {site}, {}, 1};
}

inline Subject of_head(std::int64_t head, std::int64_t heads = 1) {
    return {{}, {}, head, heads};
}

/// The subject of a panel.
inline Subject of_analysis(std::size_t analysis) {
    return {static_cast<std::int64_t>(analysis), {}, {}, 1};
}

}  // namespace headscope::figures
