// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/training/run_progress.h"

#include <QObject>
#include <algorithm>

#include "app/commands/console.h"
#include "widgets/training/facts.h"

namespace headscope::app {
namespace {

constexpr double kLeast = 0.2;  ///< seconds that a rate is made of

double seconds(RunProgress::Time from, RunProgress::Time to) {
    return std::chrono::duration<double>(to - from).count();
}

}  // namespace

void RunProgress::begin(double work, double tokens, double rate, Time now) {
    *this = {};
    what_ = QObject::tr("the first layer");
    total_ = work;
    tokens_ = tokens;
    expected_ = rate;
    begin_ = last_ = now;
}

void RunProgress::advance(double done, double total, const std::string& what, Time now) {
    const bool loading = what.starts_with("load ");
    if (loading && !loading_) {
        *this = {};
        begin_ = now;
    }
    loading_ = loading;
    what_ = QString::fromStdString(what);
    done_ = done;
    total_ = total;
    last_ = now;
    ++steps_;
}

/// Work a second, as far as it was measured.
double RunProgress::rate() const {
    const double passed = seconds(begin_, last_);
    return done_ > 0 && passed >= kLeast ? done_ / passed : 0;
}

RunProgress::Shown RunProgress::shown(Time now) const {
    Shown shown{0, what_};
    if (!(total_ > 0)) return shown;
    const double measured = rate(), rate = measured > 0 ? measured : expected_;
    // Between two steps as far as the rate says, but not beyond a step like those before.
    double passed = seconds(last_, now) * rate;
    if (steps_ > 0) passed = std::min(passed, done_ / steps_);
    shown.share = std::clamp((done_ + passed) / total_, 0.0, 1.0);
    if (measured > 0) {
        const QString count = widgets::count_words(loading_ ? measured : measured / total_ * tokens_);
        if (loading_)
            shown.text += QObject::tr(", %1 weights/s").arg(count);
        else if (tokens_ > 0)
            shown.text += QObject::tr(", %1 tokens/s").arg(count);
    }
    if (rate > 0 && done_ < total_) {
        const double left = std::max(1.0, (total_ - done_) / rate - seconds(last_, now));
        shown.text += (measured > 0 ? QObject::tr(", %1 left") : QObject::tr(", about %1 left"))
                          .arg(QString::fromStdString(format_seconds(left)));
    }
    return shown;
}

}  // namespace headscope::app
