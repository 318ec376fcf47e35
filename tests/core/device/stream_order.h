// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

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

    /// Throws c10::Error unless all uses of bytes [begin, end) of `block` by other streams come before this one.
    void use(std::int64_t stream, const void* block, std::size_t begin = 0, std::size_t end = kEnd) {
        const std::lock_guard lock(mutex_);
        Before& before = before_[stream];
        std::vector<Use>& uses = uses_[block];
        for (const Use& one : uses)
            TORCH_CHECK(one.stream == stream || one.end <= begin || end <= one.begin || before[one.stream] >= one.count,
                        "stream ", stream, " uses memory that stream ", one.stream, " uses without an event between");
        std::erase_if(uses, [stream, begin, end](const Use& one) {
            return one.stream == stream && begin <= one.begin && one.end <= end;
        });
        uses.push_back({stream, ++before[stream], begin, end});
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
    static constexpr std::size_t kEnd = std::numeric_limits<std::size_t>::max();
    struct Use {
        std::int64_t stream = 0;
        std::uint64_t count = 0;         ///< of the stream's uses
        std::size_t begin = 0, end = 0;  ///< bytes
    };

    std::mutex mutex_;
    std::int64_t streams_ = 0;  ///< besides the default one, 0
    std::map<std::int64_t, Before> before_;
    std::map<const void*, std::vector<Use>> uses_;  ///< by the start of the memory; none lies within another
};

}  // namespace headscope::test
