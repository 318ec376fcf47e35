// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <chrono>
#include <string>

namespace headscope::app {

/// Progress of a run in words: rate and time left, interpolated between its steps (a layer of a long text takes a
/// while). The caller passes the time.
class RunProgress {
public:
    using Time = std::chrono::steady_clock::time_point;

    /// `work` is what the steps after the weights are there add up to, `tokens` what is read meanwhile, and `rate` the
    /// work that this machine did in a second before; 0: not known.
    void begin(double work, double tokens, double rate, Time now);
    /// As Progress has it; a unit is a weight while they are read.
    void advance(double done, double total, const std::string& what, Time now);

    struct Shown {
        double share = 0;
        QString text;
    };
    Shown shown(Time now) const;

private:
    double rate() const;

    QString what_;
    double total_ = 0, done_ = 0, tokens_ = 0, expected_ = 0;
    int steps_ = 0;
    bool loading_ = false;
    Time begin_{}, last_{};
};

}  // namespace headscope::app
