// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>
#include <QTimer>
#include <deque>
#include <functional>
#include <utility>

namespace headscope::widgets {

/// What is to be done on the window's thread soon, in order, a little at a time: between two turns the event loop takes
/// keys, clicks and repaints. Ten views that follow one click would hold it up together otherwise.
class Turns : public QObject {
    Q_OBJECT
public:
    /// The window's. Window's thread.
    static Turns& of_window();

    /// Not done if the owner goes before.
    void post(QObject* owner, std::function<void()> what);
    bool empty() const { return waiting_.empty(); }

private:
    explicit Turns(QObject* parent);
    void take_turn();

    std::deque<std::pair<QPointer<QObject>, std::function<void()>>> waiting_;
    QTimer timer_;
};

}  // namespace headscope::widgets
