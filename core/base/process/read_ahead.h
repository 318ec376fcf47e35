// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <system_error>
#include <utility>

#include "core/base/progress.h"

namespace headscope {

/// Reads one of several numbered things while another is in use. Threads: one calls; a second one reads.
template <class Result>
class ReadAhead {
public:
    /// `read` is called from both threads, from one at a time.
    using Read = std::function<Result(std::int64_t number, const Cancellation& cancellation)>;

    explicit ReadAhead(Read read) : read_(std::move(read)) {}
    ~ReadAhead() { stop_.request(); }
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;

    /// The result that start() asked for, or one that is read now. A stop ends the wait for the former (Stopped), which
    /// is read on for a later call.
    Result take(std::int64_t number, const Cancellation* cancellation) {
        if (reading_.valid() && ahead_ == number) {
            constexpr std::chrono::milliseconds between_looks(50);
            while (cancellation && reading_.wait_for(between_looks) != std::future_status::ready) cancellation->check();
            return reading_.get();
        }
        drop();
        const Cancellation never;
        return read_(number, cancellation ? *cancellation : never);
    }
    /// Waits for the result that start() asked for, and drops it.
    void drop() {
        if (reading_.valid()) reading_.wait();
        reading_ = {};
    }
    /// The same for good: a read may end early.
    void stop() {
        stop_.request();
        drop();
    }
    void start(std::int64_t number) {
        ahead_ = number;
        try {
            reading_ = std::async(std::launch::async, [this, number] { return read_(number, stop_); });
        } catch (const std::system_error&) {
            reading_ = {};  // no thread can be started: take() reads
        }
    }

private:
    Read read_;
    Cancellation stop_;
    std::int64_t ahead_ = -1;
    std::future<Result> reading_;
};

}  // namespace headscope
