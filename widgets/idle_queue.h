// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>
#include <QTimer>
#include <deque>
#include <functional>
#include <utility>

namespace headscope::widgets {

/// Tasks for the window's thread, run in order and a few milliseconds at a time: between two of them the event loop
/// takes keys, clicks and repaints. Without it ten views that follow one click would block the window together.
class IdleQueue : public QObject {
    Q_OBJECT
public:
    /// The window's. Window's thread.
    static IdleQueue& of_window();

    /// Not done if the owner goes before.
    void post(QObject* owner, std::function<void()> what);
    bool empty() const { return waiting_.empty(); }

private:
    explicit IdleQueue(QObject* parent);
    void run_some();

    std::deque<std::pair<QPointer<QObject>, std::function<void()>>> waiting_;
    QTimer timer_;
};

}  // namespace headscope::widgets
