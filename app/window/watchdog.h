// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace headscope::app {

/// Tells the memory that the process holds every two seconds, read on a thread of its own. Told to, it also watches
/// whether the window's thread answers: asks it twenty times a second and reports every answer that took more than a
/// tenth of a second. That is for tests and debug builds: it keeps a laptop's processor awake.
class Watchdog : public QObject {
    Q_OBJECT
public:
    explicit Watchdog(bool watching, QObject* parent = nullptr);
    ~Watchdog() override;

    int stalls() const { return stalls_; }
    double longest() const { return longest_; }  ///< seconds

Q_SIGNALS:
    void stalled(double seconds);
    void memory_read(double bytes);

private:
    void watch();

    void ask_and_wait();

    const bool watching_;
    std::mutex mutex_;
    std::condition_variable ended_;
    std::atomic<bool> ending_{false};
    std::atomic<std::int64_t> answered_{0};
    int stalls_ = 0;
    double longest_ = 0;
    std::thread thread_;
};

}  // namespace headscope::app
