// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/idle_queue.h"

#include <QCoreApplication>
#include <QElapsedTimer>

namespace headscope::widgets {
namespace {

constexpr qint64 kTurn = 8;  // ms; a turn ends with what began within it

}  // namespace

IdleQueue& IdleQueue::of_window() {
    // Goes with the application: a test may make several, one after the other.
    static QPointer<IdleQueue> turns;
    if (!turns) turns = new IdleQueue(QCoreApplication::instance());
    return *turns;
}

IdleQueue::IdleQueue(QObject* parent) : QObject(parent) {
    timer_.setSingleShot(true);
    timer_.setInterval(0);
    connect(&timer_, &QTimer::timeout, this, &IdleQueue::run_some);
}

void IdleQueue::post(QObject* owner, std::function<void()> what) {
    waiting_.emplace_back(owner, std::move(what));
    if (!timer_.isActive()) timer_.start();
}

void IdleQueue::run_some() {
    QElapsedTimer clock;
    clock.start();
    timer_.start();  // for what an exception or an event loop within leaves
    while (!waiting_.empty() && clock.elapsed() < kTurn) {
        const auto [owner, what] = std::move(waiting_.front());
        waiting_.pop_front();
        if (owner) what();
    }
    if (waiting_.empty()) timer_.stop();
}

}  // namespace headscope::widgets
