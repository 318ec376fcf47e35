// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <compare>
#include <cstdint>

namespace headscope {

/// An index that cannot be mixed up with another kind. Counted from 0, as in files and on the command line.
template <class Tag>
struct Index {
    std::int64_t value = 0;
    constexpr Index() = default;
    explicit constexpr Index(std::int64_t index) : value(index) {}
    friend constexpr auto operator<=>(Index, Index) = default;
};

using LayerIndex = Index<struct LayerTag>;
using SiteIndex = Index<struct SiteTag>;
using HeadIndex = Index<struct HeadTag>;
using TokenIndex = Index<struct TokenTag>;
using SequenceIndex = Index<struct SequenceTag>;

}  // namespace headscope
