// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "core/base/progress.h"

namespace headscope::training {

/// Keeps FOLDER/run.h5 young while a run is at work: a thread of its own, at a lower priority, makes it anew of the
/// journal. It takes at most a twentieth of the time, so that a long run's file, which takes seconds, comes less often.
/// What fails is left to the next time, and to the end of the run, which tells. For core/training only.
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
