// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/workspace/head_table.h"

namespace headscope::workspace {

/// A filter of heads as text: "sink > 0.3", "layer >= 4 and not local_focus_1 < 0.5", "0.1 < sink < 0.3",
/// "induction > duplicate or head = 3". Names are the table's columns, and layer, head, site, key_value_head; operators
/// < <= > >= = != (also chained), and, or, not, brackets; numbers as in 0.3, -2, 1e-4. A value that does not exist
/// satisfies no comparison. Empty text: every head.
class HeadFilter {
public:
    /// Throws Error (usage): `where` is "filter, character N" (from 1), the message names what was expected there and,
    /// for an unknown name, the nearest known one.
    HeadFilter(std::string_view text, const HeadTable& table);
    ~HeadFilter();
    HeadFilter(HeadFilter&&) noexcept;
    HeadFilter& operator=(HeadFilter&&) noexcept;

    bool matches(const HeadTable& table, std::size_t row) const;
    /// All rows that match, in the table's order.
    std::vector<std::size_t> rows(const HeadTable& table) const;

    struct Node;

private:
    std::unique_ptr<Node> root_;
};

}  // namespace headscope::workspace
