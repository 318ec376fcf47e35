// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/process/worker.h"

#include <algorithm>
#include <utility>

#include "core/base/process/cancellation_scope.h"
#include "core/base/process/threads.h"

namespace headscope {

Worker::Worker(Order order) : order_(order), thread_(start_thread([this] { work(); })) {}

Worker::~Worker() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
        if (current_) current_->request();
    }
    changed_.notify_all();
    thread_.join();
}

void Worker::post(const void* owner, Task task) {
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back({owner, std::move(task)});
    }
    changed_.notify_all();
}

std::size_t Worker::cancel(const void* owner) {
    std::size_t dropped = 0;
    {
        const std::lock_guard lock(mutex_);
        std::deque<Entry> kept;
        for (auto& entry : waiting_) {
            if (entry.owner == owner) ++dropped;
            (entry.owner == owner ? dropped_ : kept).push_back(std::move(entry));
        }
        waiting_.swap(kept);
        if (current_ && current_owner_ == owner) current_->request();
    }
    if (dropped > 0) changed_.notify_all();
    return dropped;
}

void Worker::forget(const void* owner) {
    cancel(owner);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !current_ || current_owner_ != owner; });
}

void Worker::finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !current_ && waiting_.empty(); });
}

bool Worker::idle() const {
    const std::lock_guard lock(mutex_);
    return waiting_.empty() && !current_;
}

void Worker::work() {
    for (;;) {
        Task task;
        std::shared_ptr<Cancellation> cancellation;
        std::deque<Entry> dropped;  // goes without the lock
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return ending_ || !waiting_.empty() || !dropped_.empty(); });
            if (ending_) return;
            dropped.swap(dropped_);
            if (waiting_.empty()) continue;
            Entry entry;
            if (order_ == Order::newest_first) {
                entry = std::move(waiting_.back());
                waiting_.pop_back();
            } else {
                entry = std::move(waiting_.front());
                waiting_.pop_front();
            }
            task = std::move(entry.task);
            current_ = cancellation = std::make_shared<Cancellation>();
            current_owner_ = entry.owner;
        }
        dropped.clear();
        try {
            const CancellationScope scope(*cancellation);
            task(*cancellation);
        } catch (...) {  // NOLINT: nothing leaves a thread
        }
        task = nullptr;
        {
            const std::lock_guard lock(mutex_);
            current_.reset();
            current_owner_ = nullptr;
        }
        changed_.notify_all();
    }
}

}  // namespace headscope
