// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/watchdog.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "app/window/stack_samples.h"
#include "core/base/process/machine.h"
#include "core/base/process/threads.h"

namespace headscope::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kEvery = std::chrono::milliseconds(50);
constexpr double kLimit = 0.1;
constexpr auto kSuspicious = std::chrono::milliseconds(50);  // that is when samples are taken of what it is at
constexpr auto kSampleEvery = std::chrono::milliseconds(15);
constexpr int kMemoryEvery = 40;  // questions
// Given back is what lies free between pieces in use: pictures and values come and go all day.
constexpr double kGiveBack = 64e6;  // bytes that were taken since
constexpr auto kGiveBackEvery = std::chrono::seconds(20);

/// Seconds that a thread of this process has run, and waited ready for a processor; 0: unknown.
struct ProcessorTime {
    double ran = 0, queued = 0;
};

ProcessorTime processor_time(int thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/schedstat");
    double ran = 0, queued = 0;
    if (!(file >> ran >> queued)) return {};
    return {ran * 1e-9, queued * 1e-9};
}

}  // namespace

Watchdog::Watchdog(bool watching, QObject* parent)
    : QObject(parent), watching_(watching), watched_(::gettid()), thread_(start_thread([this] { watch(); }, false)) {}

Watchdog::~Watchdog() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    ended_.notify_all();
    thread_.join();
}

void Watchdog::watch() {
    const auto send = mailbox_.sender();
    for (int round = 0; !ending_; ++round) {
        if (!watching_ || round % kMemoryEvery == 0) {
            give_back_memory();
            send([this, bytes = resident_memory()] { Q_EMIT memory_read(bytes); });
        }
        if (watching_) ask_and_wait(send);
        std::unique_lock lock(mutex_);
        ended_.wait_for(lock, watching_ ? kEvery : kEvery * kMemoryEvery, [this] { return ending_.load(); });
    }
}

void Watchdog::give_back_memory() {
#ifdef __GLIBC__
    const auto now = Clock::now();
    if (now < given_back_ + kGiveBackEvery || resident_memory() < held_ + kGiveBack) return;
    ::malloc_trim(0);
    given_back_ = now;
    held_ = resident_memory();
#endif
}

void Watchdog::ask_and_wait(const widgets::Mailbox::Sender& send) {
    if (explaining_ && !pace_) {
        pace_ = std::make_unique<Pace>();
        stacks_ = std::make_unique<StackSamples>(watched_);
    }
    const ProcessorTime before = processor_time(watched_);
    const bool explaining = pace_ != nullptr;
    const double stolen = explaining ? stolen_time() : 0;
    const auto begin = Clock::now();
    const std::int64_t asked = answered_ + 1;
    send([this, asked, begin, before, explaining, stolen] {
        const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        longest_ = std::max(longest_, seconds);
        if (seconds <= kLimit) {
            longest_own_ = std::max(longest_own_, seconds);
            answered_ = asked;
            return;
        }
        ++stalls_;
        const ProcessorTime after = processor_time(watched_);
        Stall stall{seconds, after.queued - before.queued, after.ran - before.ran, 0, {}, {}};
        const double own = std::max(0.0, seconds - stall.queued);
        longest_own_ = std::max(longest_own_, own);
        if (own > kLimit) ++own_stalls_;
        if (explaining) {
            stall.stolen = stolen_time() - stolen;
            stall_ = std::move(stall);
        } else {
            Q_EMIT stalled(stall);
        }
        answered_ = asked;
    });
    // One question at a time: a stall is reported once, with its whole length.
    if (stacks_) stacks_->clear();
    auto sampled = begin + kSuspicious;
    while (!ending_ && answered_ < asked) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        if (!stacks_ || answered_ >= asked || Clock::now() < sampled) continue;
        stacks_->take();
        sampled = Clock::now() + kSampleEvery;
    }
    if (answered_ < asked || !stall_) return;
    stall_->pace = pace_->measure();
    stall_->stacks = stacks_->lines();
    send([this, stall = std::move(*stall_)] { Q_EMIT stalled(stall); });
    stall_.reset();
}

}  // namespace headscope::app
