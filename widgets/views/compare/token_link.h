// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/figures/token_alignment.h"

namespace headscope::widgets {

/// Which tokens of the left are which of the right, and where a place between tokens of one lies on the other: so that
/// two maps of different texts pan and zoom together. Values only, any thread.
struct TokenLink {
    figures::TokenAlignment pairs;        ///< a: left, b: right
    std::vector<double> places_of_right;  ///< left tokens + 1, rising: where the edge before each lies on the right
    std::vector<double> places_of_left;   ///< right tokens + 1
    std::int64_t unpaired_left = 0, unpaired_right = 0;

    std::int64_t left() const { return static_cast<std::int64_t>(pairs.to_b.size()); }
    std::int64_t right() const { return static_cast<std::int64_t>(pairs.to_a.size()); }
    bool any() const { return unpaired_left < left(); }
    bool identical() const { return pairs.by == figures::TokenAlignment::By::identity; }
    /// Empty: no such token, or it has no partner.
    std::optional<std::int64_t> to_right(std::optional<std::int64_t> left) const;
    std::optional<std::int64_t> to_left(std::optional<std::int64_t> right) const;
    std::pair<double, double> range_on_right(double begin, double end) const;
    std::pair<double, double> range_on_left(double begin, double end) const;
};

TokenLink link_tokens(const store::SequenceTokens& left, const store::SequenceTokens& right);

std::int64_t bytes_of(const TokenLink& link);

}  // namespace headscope::widgets
