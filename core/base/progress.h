// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <string>

#include "core/base/error.h"

namespace headscope {

/// Cancelling is a flag that workers test between tiles, layers and steps. Safe from any thread and signal handler.
class Cancellation {
public:
    void request() noexcept { flag_.store(true, std::memory_order_relaxed); }
    bool requested() const noexcept { return flag_.load(std::memory_order_relaxed); }
    /// Throws Stopped when a stop was requested.
    void check() const {
        if (requested()) throw Stopped();
    }
    /// For kernels, which do not include core.
    const std::atomic<bool>* flag() const noexcept { return &flag_; }

private:
    std::atomic<bool> flag_{false};
};

/// Reports progress. Called on the worker's thread; implementations pass it on.
class Progress {
public:
    virtual ~Progress() = default;
    /// `done` of `total` units of work (any unit that grows evenly with time); `what` names the step now being done.
    virtual void advance(double done, double total, const std::string& what) = 0;
};

/// Ignores everything.
class NoProgress final : public Progress {
public:
    void advance(double, double, const std::string&) override {}
};

}  // namespace headscope
