// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include <c10/util/Exception.h>

namespace headscope::test {

/// The order that events make between streams of a device, and a check that memory is used in it. Every use counts as a
/// write. Threads: any.
class StreamOrder {
public:
    /// By stream: how many of its uses come before. Of an event, or of a stream's next use.
    using Before = std::map<std::int64_t, std::uint64_t>;

    std::int64_t new_stream() {
        const std::lock_guard lock(mutex_);
        return ++streams_;
    }

    /// Throws c10::Error unless all uses of `block` by other streams come before this one.
    void use(std::int64_t stream, const void* block) {
        const std::lock_guard lock(mutex_);
        Before& before = before_[stream];
        Before& uses = uses_[block];
        for (const auto& [other, count] : uses)
            TORCH_CHECK(other == stream || before[other] >= count, "stream ", stream, " uses memory that stream ",
                        other, " uses without an event between");
        uses[stream] = ++before[stream];
    }

    void forget(const void* block) {
        const std::lock_guard lock(mutex_);
        uses_.erase(block);
    }

    Before record(std::int64_t stream) {
        const std::lock_guard lock(mutex_);
        return before_[stream];
    }

    void wait(std::int64_t stream, const Before& event) {
        const std::lock_guard lock(mutex_);
        Before& before = before_[stream];
        for (const auto& [other, count] : event) before[other] = std::max(before[other], count);
    }

private:
    std::mutex mutex_;
    std::int64_t streams_ = 0;  ///< besides the default one, 0
    std::map<std::int64_t, Before> before_;
    std::map<const void*, Before> uses_;
};

}  // namespace headscope::test
