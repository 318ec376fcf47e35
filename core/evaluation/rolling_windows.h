// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Cuts a text of any length into windows that a model can read, so that every token is predicted exactly once: the
// scheme of lm-eval-harness (get_rolling_token_windows and make_disjoint_window of its loglikelihood_rolling).

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace headscope::evaluation {

/// Input ids and the target of each; data::no_target if an earlier window scored it.
struct Window {
    std::vector<std::int64_t> ids;
    std::vector<std::int64_t> targets;
};

/// The first window predicts `length` tokens. Each further one reads `length` tokens and predicts the last `stride` of
/// its successors; with stride = length (lm-eval's default, context_len 1) windows are disjoint but for the last, which
/// reaches back over as much context as it may read. `prefix` stands before the text; without one the text's first
/// token is read and not predicted. Tokens come in pieces of any size; memory is that of two windows.
class RollingWindows {
public:
    using Take = std::function<void(Window)>;
    /// length >= 1, 1 <= stride <= length; anything else throws Error usage.
    RollingWindows(std::int64_t length, std::int64_t stride, std::optional<std::int64_t> prefix, Take take);
    void add(std::span<const std::int32_t> ids);
    /// The text is over. A text of no token, or of one without a prefix, has no window.
    void finish();

private:
    void emit(std::int64_t last, std::int64_t predicted);

    std::int64_t length_, stride_;
    Take take_;
    std::deque<std::int64_t> held_;  ///< tokens [first_, first_ + size) of the text with its prefix
    std::int64_t first_ = 0;
    std::int64_t predicted_ = 1;  ///< tokens before this one need no prediction any more
};

}  // namespace headscope::evaluation
