// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/window/pace.h"
#include "widgets/mailbox.h"

namespace headscope::app {

class StackSamples;

/// The window did not answer for more than a tenth of a second.
struct Stall {
    double seconds = 0;
    double queued = 0;  ///< of that its thread was ready and other threads had the processors,
    double ran = 0;     ///< it had one. The rest it waited: for a lock, for memory, for a disk.
    double stolen = 0;  ///< other machines on this computer had the processor that they took most from meanwhile
    // If explain() was called:
    Pace::Slower pace;                ///< right after it
    std::vector<std::string> stacks;  ///< where its thread was, from time to time (StackSamples)
};

/// Reports the memory of the process every two seconds, read on a thread of its own, and returns free memory between
/// pieces in use to the system once it is large. With `watching` it also pings the window's thread twenty times a
/// second and reports answers that take more than a tenth of a second: for tests and debug builds, as it keeps a
/// laptop's processor awake.
class Watchdog : public QObject {
    Q_OBJECT
public:
    explicit Watchdog(bool watching, QObject* parent = nullptr);
    ~Watchdog() override;

    /// Adds stacks of the window's thread and the machine's speed to reports of stalls. Takes 16 MB.
    void explain() { explaining_ = true; }

    int stalls() const { return stalls_; }
    double longest() const { return longest_; }  ///< seconds
    /// Without what the window's thread stood ready in the queue of a processor that other threads had: what is left is
    /// the window's own doing.
    int own_stalls() const { return own_stalls_; }
    double longest_own() const { return longest_own_; }

Q_SIGNALS:
    void stalled(const headscope::app::Stall& stall);
    void memory_read(double bytes);

private:
    void watch();
    void give_back_memory();
    void ask_and_wait(const widgets::Mailbox::Sender& send);

    const bool watching_;
    const int watched_;  ///< the window's thread
    std::mutex mutex_;
    std::condition_variable ended_;
    std::atomic<bool> ending_{false}, explaining_{false};
    std::atomic<std::int64_t> answered_{0};
    int stalls_ = 0, own_stalls_ = 0;
    double longest_ = 0, longest_own_ = 0;
    std::chrono::steady_clock::time_point given_back_;  ///< the watching thread's: when, and what was held then
    double held_ = 0;
    std::optional<Stall> stall_;  ///< reported once it is explained; written by the window's thread before it answers
    std::unique_ptr<Pace> pace_;  ///< the watching thread's, as the next
    std::unique_ptr<StackSamples> stacks_;
    widgets::Mailbox mailbox_{this};
    std::thread thread_;
};

}  // namespace headscope::app
