// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <atomic>
#include <thread>

namespace headscope::app {

/// Watches whether the window's thread answers: asks it twenty times a second and reports every answer that took more
/// than a tenth of a second. Also tells the memory that the process holds, which is read on its own thread.
class Watchdog : public QObject {
    Q_OBJECT
public:
    explicit Watchdog(QObject* parent = nullptr);
    ~Watchdog() override;

    int stalls() const { return stalls_; }
    double longest() const { return longest_; }  ///< seconds

Q_SIGNALS:
    void stalled(double seconds);
    void memory_read(double bytes);

private:
    void watch();

    std::atomic<bool> ending_{false};
    std::atomic<std::int64_t> answered_{0};
    int stalls_ = 0;
    double longest_ = 0;
    std::thread thread_;
};

}  // namespace headscope::app
