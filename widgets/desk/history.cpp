// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/history.h"

namespace headscope::widgets {
namespace {

constexpr std::size_t kMost = 200;
constexpr int kQuiet = 350;  // ms

}  // namespace

History::History(Take take, Restore restore, QObject* parent)
    : QObject(parent), take_(std::move(take)), restore_(std::move(restore)) {
    quiet_.setSingleShot(true);
    quiet_.setInterval(kQuiet);
    connect(&quiet_, &QTimer::timeout, this, &History::remember);
}

void History::begin() {
    quiet_.stop();
    states_.assign(1, take_());
    at_ = 0;
    Q_EMIT moved();
}

void History::note() {
    if (!restoring_) quiet_.start();
}

void History::remember() {
    QJsonObject state = take_();
    if (!states_.empty() && state == states_[at_]) return;
    if (!states_.empty()) states_.resize(at_ + 1);
    states_.push_back(std::move(state));
    if (states_.size() > kMost) states_.erase(states_.begin());
    at_ = states_.size() - 1;
    Q_EMIT moved();
}

void History::go(std::size_t place) {
    at_ = place;
    restoring_ = true;
    const QJsonObject state = states_[at_];  // of our own: who restores may have something remembered
    restore_(state);
    restoring_ = false;
    Q_EMIT moved();
}

void History::undo() {
    if (quiet_.isActive()) {
        quiet_.stop();
        remember();
    }
    if (can_undo()) go(at_ - 1);
}

void History::redo() {
    if (quiet_.isActive()) {  // what changed since takes the place of what was undone
        quiet_.stop();
        remember();
    }
    if (can_redo()) go(at_ + 1);
}

}  // namespace headscope::widgets
