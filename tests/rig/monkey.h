// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QElapsedTimer>
#include <QObject>
#include <QPointer>
#include <QTimer>
#include <map>
#include <random>

namespace headscope::app {

class MainWindow;
struct Stall;

/// Clicks, drags, scrolls and types at random for some time, from a seed, and prints what it reached: how often each
/// action and view, the longest time in which the window did not answer, memory at the begin and the end. Then the
/// program ends, with 0 when nothing was left out and nothing stalled by the window's own doing. Asked for by the
/// hidden option --monkey. It trains too, small jobs, one at a time; a run that it is given is opened again when it was
/// closed. Dialogs for files it only looks at: nothing outside its own folders is made, renamed or removed.
class Monkey : public QObject {
    Q_OBJECT
public:
    Monkey(MainWindow* window, double seconds, std::uint64_t seed);

private:
    void step();
    void click();
    void drag();
    void wheel();
    void key();
    void act();
    QAction* any_command();
    void choose();
    bool shows(const QAction& action) const;
    QWidget* any_widget(QPoint& place);
    int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(std::max(1, limit))); }
    void tell_memory();
    void tell_stall(const Stall& stall);
    void finish();

    MainWindow* window_;
    QString run_;  ///< the first one that was open
    double seconds_;
    std::mt19937_64 random_;
    QTimer timer_;
    QElapsedTimer clock_;
    std::map<QString, int> actions_, views_, deeds_;
    /// Counts of a view's command: how often it was possible when one was looked for, and how often it ran.
    struct Command {
        int possible = 0, done = 0;
    };
    std::map<QString, Command> commands_;
    bool dragging_ = false;
    QString last_;  ///< what was done last, for the report of a stall
    double first_memory_ = 0, first_in_use_ = 0, last_memory_ = 0, told_memory_ = 0, told_at_ = 0;
    int stalls_before_ = 0, own_stalls_before_ = 0;
};

}  // namespace headscope::app
