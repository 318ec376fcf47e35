// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QPointer>
#include <QTimer>
#include <map>
#include <random>

namespace headscope::app {

class MainWindow;

/// Clicks, drags, scrolls and types at random for some time, from a seed, and prints what it reached: how often each
/// action and view, the longest time in which the window did not answer, memory at the begin and the end. Then the
/// program ends, with 0 when nothing was left out and nothing stalled. Asked for by the hidden option --monkey.
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
    void choose();
    QWidget* any_widget(QPoint& place);
    int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(std::max(1, limit))); }
    void finish();

    MainWindow* window_;
    double seconds_;
    std::mt19937_64 random_;
    QTimer timer_;
    QElapsedTimer clock_;
    std::map<QString, int> actions_, views_, deeds_;
    QString last_;  ///< what was done last, for the report of a stall
    double first_memory_ = 0, last_memory_ = 0;
    int stalls_before_ = 0;
};

}  // namespace headscope::app
