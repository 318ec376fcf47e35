// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/run_file_keeper.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/threads.h"
#include "core/run/run_history.h"

namespace headscope::training {
namespace {

constexpr int kNice = 10, kShare = 20;

}  // namespace

RunFileKeeper::RunFileKeeper(std::filesystem::path folder, std::chrono::milliseconds every)
    : folder_(std::move(folder)), every_(every) {
    try {
        thread_ = start_thread([this] { work(); });
    } catch (const Error&) {  // the file is made at the end
    }
}

void RunFileKeeper::stop() {
    cancellation_.request();
    {
        const std::lock_guard guard(mutex_);
        ending_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void RunFileKeeper::work() {
    // Linux' threads have priorities of their own.
    const int before = ::getpriority(PRIO_PROCESS, 0);
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), std::min(19, before + kNice));
    const CancellationScope scope(cancellation_);
    using Clock = std::chrono::steady_clock;
    Clock::duration pause = every_;
    std::unique_lock guard(mutex_);
    while (!changed_.wait_for(guard, pause, [this] { return ending_; })) {
        guard.unlock();
        const auto start = Clock::now();
        try {
            build_run_file(folder_);
        } catch (...) {  // stopped; or not writable now, which the end of the run reports
        }
        pause = std::max<Clock::duration>(every_, kShare * (Clock::now() - start));
        guard.lock();
    }
}

}  // namespace headscope::training
