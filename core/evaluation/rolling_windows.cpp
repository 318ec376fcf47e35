// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/rolling_windows.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/data/batch/batch_source.h"

namespace headscope::evaluation {

RollingWindows::RollingWindows(std::int64_t length, std::int64_t stride, std::optional<std::int64_t> prefix, Take take)
    : length_(length), stride_(stride), take_(std::move(take)) {
    if (length < 1)
        throw Error(ErrorCode::usage, "context length", "expected 1 or more", "found " + std::to_string(length));
    if (stride < 1 || stride > length)
        throw Error(ErrorCode::usage, "stride", "expected 1 to the context length, " + std::to_string(length),
                    "found " + std::to_string(stride));
    if (prefix) held_.push_back(*prefix);
}

void RollingWindows::add(std::span<const std::int32_t> ids) {
    held_.insert(held_.end(), ids.begin(), ids.end());
    for (;;) {
        // A window is due when it is known that it is not the last one: that one may be shorter.
        const std::int64_t end = first_ + static_cast<std::int64_t>(held_.size());
        const std::int64_t due = predicted_ + (predicted_ == 1 ? length_ : stride_);
        if (end <= due) return;
        emit(due, due - predicted_);
    }
}

void RollingWindows::finish() {
    const std::int64_t end = first_ + static_cast<std::int64_t>(held_.size());
    if (end > predicted_) emit(end, end - predicted_);
    held_.clear();
}

/// The window whose last target is token `last` - 1, predicting `predicted` tokens.
void RollingWindows::emit(std::int64_t last, std::int64_t predicted) {
    const std::int64_t begin = std::max<std::int64_t>(0, last - 1 - length_);
    Window window;
    const auto at = [&](std::int64_t token) { return held_[static_cast<std::size_t>(token - first_)]; };
    for (std::int64_t token = begin; token < last - 1; ++token) {
        window.ids.push_back(at(token));
        window.targets.push_back(token + 1 >= last - predicted ? at(token + 1) : data::no_target);
    }
    predicted_ = last;
    const std::int64_t needed = std::max<std::int64_t>(0, last - length_);  // a later window reads from here on
    for (; first_ < needed; ++first_) held_.pop_front();
    take_(std::move(window));
}

}  // namespace headscope::evaluation
