// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/progress.h"

namespace headscope {

/// One thread that does tasks one after the other: what owns files or LibTorch for a window that must not wait.
/// All functions may be called from any thread but its own.
class Worker {
public:
    /// Receives the flag to test. Exceptions that leave it are dropped: catch the ones to report.
    using Task = std::function<void(const Cancellation&)>;
    enum class Order { oldest_first, newest_first };

    /// Throws Error io where the system gives no thread.
    explicit Worker(Order order = Order::oldest_first);
    /// Cancels the task at work, forgets the others and waits for the thread to end.
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// `owner` groups tasks for forget() and cancel(); it is never looked into.
    void post(const void* owner, Task task);
    /// The last to hold `value`, or one of them, is the worker's thread: freeing a long run's record, closing a file
    /// or letting weights go takes longer than a window may wait.
    template <typename Value>
    void let_go(std::shared_ptr<Value> value) {
        post(nullptr, [gone = std::move(value)](const Cancellation&) mutable { gone.reset(); });
    }
    /// Drops the owner's waiting tasks and cancels the one at work; does not wait. How many were dropped. What they
    /// hold is let go of on the worker's thread: it may be the last to hold a file.
    std::size_t cancel(const void* owner);
    /// As cancel(), and returns when none of the owner's tasks is at work any more.
    void forget(const void* owner);
    /// Returns when everything that was posted is done.
    void finish();
    /// True when nothing is waiting or at work.
    bool idle() const;

private:
    struct Entry {
        const void* owner = nullptr;
        Task task;
    };
    void work();

    Order order_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Entry> waiting_, dropped_;
    std::shared_ptr<Cancellation> current_;
    const void* current_owner_ = nullptr;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace headscope
