// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>

namespace headscope::widgets {

/// The selection that all views share: a click in one of them moves all. Everything counted from 0.
struct Selection {
    int study = 0;                             ///< 0: none
    std::optional<std::int64_t> sequence = 0;  ///< empty: all sequences, mean and deviation
    std::int64_t site = 0;
    std::int64_t head = 0;
    std::optional<std::int64_t> query, key;  ///< tokens

    /// The sequence of what cannot be averaged: texts and lines show the first one when all are chosen.
    std::int64_t one_sequence() const { return sequence.value_or(0); }
    bool operator==(const Selection&) const = default;
};

}  // namespace headscope::widgets
