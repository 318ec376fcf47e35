// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Keeps searches for patterns of foreign files within bounds. Steps inside one search are limited by the engine; what
// many searches may cost together is processor time, in proportion to the text, so that a pattern that costs a square
// ends in an error.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace headscope::tokenizer {

class SearchWatch {
public:
    /// For all searches through a text of `bytes` bytes. On the searching thread.
    explicit SearchWatch(std::size_t bytes);

    /// To be called with every search. Throws Stopped within a CancellationScope; Error(limit), `where` as its place,
    /// when the time is up.
    void look(const std::string& where) {
        if (++searches_ % searches_per_look == 0) look_closely(where);
    }
    /// The same after a search that took long.
    void look_closely(const std::string& where);

private:
    static constexpr std::size_t searches_per_look = 8;
    using Clock = std::chrono::steady_clock;

    std::size_t bytes_;
    std::size_t searches_ = 0;
    Clock::time_point last_{};
    double used_before_;  ///< processor seconds of the thread
};

}  // namespace headscope::tokenizer
