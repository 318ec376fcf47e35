// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "core/base/progress.h"

namespace headscope::training {

/// Rebuilds run.h5 from the journal while training runs, on a low-priority thread, using at most 5 % of the time: the
/// file of a long run takes seconds. A failure is left to the next time, and to the end of the run, which reports it.
/// For core/training only.
class RunFileKeeper {
public:
    RunFileKeeper(std::filesystem::path folder, std::chrono::milliseconds every);
    ~RunFileKeeper() { stop(); }
    RunFileKeeper(const RunFileKeeper&) = delete;
    RunFileKeeper& operator=(const RunFileKeeper&) = delete;

    /// Ends what is at work and returns when nothing more is written. May be called again.
    void stop();

private:
    void work();

    std::filesystem::path folder_;
    std::chrono::milliseconds every_;
    Cancellation cancellation_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace headscope::training
