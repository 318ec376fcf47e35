// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/watchdog.h"

#include <unistd.h>

#include <chrono>
#include <fstream>

namespace headscope::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kEvery = std::chrono::milliseconds(50);
constexpr double kLimit = 0.1;
constexpr int kMemoryEvery = 40;  // questions

double resident_memory() {
    std::ifstream pages("/proc/self/statm");
    double all = 0, resident = 0;
    pages >> all >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

Watchdog::Watchdog(QObject* parent) : QObject(parent), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
    ending_ = true;
    thread_.join();
}

void Watchdog::watch() {
    std::int64_t asked = 0;
    for (int round = 0; !ending_; ++round) {
        const auto begin = Clock::now();
        ++asked;
        QMetaObject::invokeMethod(
            this,
            [this, asked, begin] {
                answered_ = asked;
                const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
                longest_ = std::max(longest_, seconds);
                if (seconds <= kLimit) return;
                ++stalls_;
                Q_EMIT stalled(seconds);
            },
            Qt::QueuedConnection);
        if (round % kMemoryEvery == 0) {
            const double bytes = resident_memory();
            QMetaObject::invokeMethod(
                this, [this, bytes] { Q_EMIT memory_read(bytes); }, Qt::QueuedConnection);
        }
        // One question at a time: a stall is reported once, with its whole length.
        do std::this_thread::sleep_for(kEvery);
        while (!ending_ && answered_ < asked);
    }
}

}  // namespace headscope::app
