// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/rig/monkey.h"

#include <QApplication>
#include <QDialog>
#include <QFileDialog>
#include <QMenu>
#include <cstdio>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "app/window/main_window.h"
#include "tests/rig/synthetic.h"
#include "widgets/desk/view.h"

namespace headscope::app {
namespace {

constexpr int kPause = 12;    // ms between deeds
constexpr double kWarm = 20;  // seconds after which memory is compared
// Bytes: tiles 134 MB, values of analyses 168 MB, probes of a run 67 MB, pictures of nineteen views 80 MB, 32 files in
// HDF5 22 MB, weights of three models 40 MB.
constexpr double kGrowth = 511e6;
constexpr double kHeld = 1.5;  ///< of that what the process may hold: between pieces in use others were given back
constexpr double kStall = 0.1;
constexpr double kTellEvery = 60;  // seconds between two lines on memory
constexpr double kTellRise = 30e6;
constexpr int kOften = 40;          // times that a command of a view was possible: then it was done too
constexpr double kMostJob = 400e6;  // bytes that a job which it starts may take

const char* const kKeys[] = {"Left",       "Right",       "Up",        "Down",      "Tab",  "Shift+Tab", "Return",
                             "Escape",     "Space",       "Home",      "End",       "PgUp", "PgDown",    "+",
                             "-",          "0",           "A",         "Z",         "Del",  "Ctrl+A",    "Ctrl+C",
                             "Shift+Left", "Shift+Right", "Ctrl+Left", "Ctrl+Right"};

/// Memory that an analysis takes while it is open.
double bytes_of_texts(const store::AnalysisHeader& header) {
    double bytes = 0;
    const auto add = [&](const std::vector<store::SequenceTokens>& sequences) {
        for (const store::SequenceTokens& one : sequences) {
            bytes += static_cast<double>(sizeof one + one.text.size() + one.ids.size() * sizeof one.ids[0] +
                                         one.offsets.size() * sizeof one.offsets[0] +
                                         one.pieces.size() * sizeof one.pieces[0]);
        }
    };
    add(header.sequences);
    for (const auto& [name, sequences] : header.streams) add(sequences);
    return bytes;
}

/// Name with which a reader of the report repeats the action by hand; for a menu also the entry at that place.
QString name_of(const QWidget& widget, QPoint place) {
    QString name = QLatin1String(widget.metaObject()->className());
    if (!widget.objectName().isEmpty()) name += QLatin1Char(' ') + widget.objectName();
    if (const auto* menu = qobject_cast<const QMenu*>(&widget))
        if (const QAction* action = menu->actionAt(place)) name += QStringLiteral(", entry ") + action->text();
    return name;
}

/// Bytes allocated and not freed; 0: not known.
double memory_in_use() {
#ifdef __GLIBC__
    const auto heap = ::mallinfo2();
    return static_cast<double>(heap.uordblks + heap.hblkhd);
#else
    return 0;
#endif
}

}  // namespace

Monkey::Monkey(MainWindow* window, double seconds, std::uint64_t seed)
    : QObject(window), window_(window), seconds_(seconds), random_(seed) {
    for (const QAction* action : window_->all_actions()) actions_[action->objectName()] = 0;
    actions_.erase(QStringLiteral("quit"));
    actions_.erase(QStringLiteral("stop_task"));  // what it stops is started in a dialog, with a folder that is typed
    for (QAction* action : window_->all_actions())
        if (action->objectName() == QLatin1String("quit")) action->setEnabled(false);  // it would, from the menu
    window_->training().limit_starts(kMostJob);
    connect(&window_->training(), &RunService::opened, this, [this](int id) {
        const widgets::Run* run = window_->desk().runs().run(id);
        if (run && run_.isEmpty()) run_ = run->path;
    });
    window_->files().set_folder_program({});
    for (const auto* kind : widgets::view_kinds()) views_[QLatin1String(kind->name)] = 0;
    connect(&window_->watchdog(), &Watchdog::memory_read, this, [this](double bytes) {
        last_memory_ = bytes;
        tell_memory();
        if (first_memory_ > 0 || static_cast<double>(clock_.elapsed()) < std::min(kWarm, seconds_ / 2) * 1000) return;
        first_memory_ = bytes;
        first_in_use_ = memory_in_use();
    });
    // Queued: a deed may open something that turns an event loop of its own, and a timer does not fire within itself.
    connect(&timer_, &QTimer::timeout, this,
            [this] { QMetaObject::invokeMethod(this, &Monkey::step, Qt::QueuedConnection); });
    for (QAction* action : window_->all_actions())
        connect(action, &QAction::triggered, this, [this, action] { ++actions_[action->objectName()]; });
    window_->watchdog().explain();
    connect(&window_->watchdog(), &Watchdog::stalled, this, &Monkey::tell_stall);
    clock_.start();
    QTimer::singleShot(1500, this, [this] {
        stalls_before_ = window_->watchdog().stalls();
        own_stalls_before_ = window_->watchdog().own_stalls();
        timer_.start(kPause);
    });
}

void Monkey::tell_stall(const Stall& stall) {
    std::printf("%.3f s: stall of %.0f ms, %.0f of them on a processor and %.0f in its queue, after %s, view %s\n",
                static_cast<double>(clock_.elapsed()) / 1000, stall.seconds * 1000, stall.ran * 1000,
                stall.queued * 1000, qPrintable(last_), qPrintable(window_->pages().front_name()));
    std::printf(
        "  stolen from a processor %.0f ms; then the machine took %.1f of its best time to count, %.1f to read\n",
        stall.stolen * 1000, stall.pace.arithmetic, stall.pace.memory);
    for (const std::string& stack : stall.stacks) std::printf("  at %s\n", stack.c_str());
    std::fflush(stdout);
}

/// Prints the memory once a minute, and after a large rise, with the last action.
void Monkey::tell_memory() {
    const double now = static_cast<double>(clock_.elapsed()) / 1000;
    if (now < told_at_ + kTellEvery && last_memory_ < told_memory_ + kTellRise) return;
    told_at_ = now;
    told_memory_ = last_memory_;
    std::printf("%.0f s: memory %.0f MB, %.0f in use, after %s, view %s\n", now, last_memory_ / 1e6,
                memory_in_use() / 1e6, qPrintable(last_), qPrintable(window_->pages().front_name()));
    std::fflush(stdout);
}

void Monkey::step() {
    if (static_cast<double>(clock_.elapsed()) > seconds_ * 1000) {
        timer_.stop();
        finish();
        return;
    }
    // Menus and dialogs hold the window: they are left again before long, as a person does it, menus first.
    if (QWidget* popup = QApplication::activePopupWidget()) {
        if (below(4) == 0)
            popup->close();
        else
            click();
        return;
    }
    if (QWidget* modal = QApplication::activeModalWidget()) {
        const bool files = qobject_cast<QFileDialog*>(modal) != nullptr;  // they can rename and remove
        if (below(6) == 0) {
            if (auto* dialog = qobject_cast<QDialog*>(modal)) dialog->reject();
            return;
        }
        if (files) return;
    }
    // Text that is dragged has an event loop of its own, and the hand that holds it does nothing else.
    if (dragging_) {
        if (below(6) == 0) send_keys(QKeySequence(Qt::Key_Escape));
        return;
    }
    if (window_->engine().models().empty() && below(40) == 0) {
        choose();
        return;
    }
    // Half of the views are of analyses: one is made where there is none.
    if (window_->desk().studies().empty() && !window_->engine().running() && below(40) == 0) {
        for (QAction* action : window_->all_actions())
            if (action->objectName() == QLatin1String("run") && action->isEnabled()) action->trigger();
        return;
    }
    if (window_->desk().runs().runs().empty() && !run_.isEmpty() && below(40) == 0) {
        window_->training().open(run_);
        return;
    }
    ++views_[window_->pages().front_name()];
    switch (below(12)) {
        case 0:
        case 1:
        case 2:
        case 3:
            ++deeds_[QStringLiteral("click")];
            return click();
        case 4:
            ++deeds_[QStringLiteral("drag")];
            return drag();
        case 5:
            ++deeds_[QStringLiteral("wheel")];
            return wheel();
        case 6:
        case 7:
        case 8:
        case 9:
            ++deeds_[QStringLiteral("key")];
            return key();
        default:
            ++deeds_[QStringLiteral("action")];
            return act();
    }
}

QWidget* Monkey::any_widget(QPoint& place) {
    QWidget* top = QApplication::activePopupWidget();
    if (!top) top = QApplication::activeModalWidget();
    if (!top) {
        QWidgetList tops;
        for (QWidget* widget : QApplication::topLevelWidgets())
            if (widget->isVisible() && widget->width() > 8 && widget->height() > 8) tops << widget;
        if (tops.isEmpty()) return nullptr;
        top = tops[below(static_cast<int>(tops.size()))];
    }
    place = QPoint(below(top->width()), below(top->height()));
    QWidget* widget = widget_under(top, place);
    return widget->isEnabled() ? widget : nullptr;
}

void Monkey::click() {
    QPoint place;
    QWidget* widget = any_widget(place);
    if (!widget) return;
    last_ = QStringLiteral("click on %1").arg(name_of(*widget, place));
    send_click(widget, place, below(8) == 0 ? Qt::RightButton : Qt::LeftButton, below(6) == 0);
}

void Monkey::drag() {
    QPoint place;
    QWidget* widget = any_widget(place);
    if (!widget) return;
    last_ = QStringLiteral("drag on %1").arg(name_of(*widget, place));
    dragging_ = true;
    send_drag(widget, place, {below(widget->width()), below(widget->height())});
    dragging_ = false;
}

void Monkey::wheel() {
    QPoint place;
    QWidget* widget = any_widget(place);
    if (!widget) return;
    last_ = QStringLiteral("wheel on %1").arg(name_of(*widget, place));
    send_wheel(widget, place, below(2) == 0 ? 1 : -1);
}

void Monkey::key() {
    const QString key = QLatin1String(kKeys[below(static_cast<int>(std::size(kKeys)))]);
    last_ = QStringLiteral("key ") + key;
    send_keys(QKeySequence(key));
}

void Monkey::act() {
    if (QApplication::activeModalWidget() || QApplication::activePopupWidget()) return;
    QAction* chosen = nullptr;
    for (QAction* action : window_->all_actions()) {
        if (!action->isEnabled() || action->objectName() == QLatin1String("quit") || !shows(*action)) continue;
        // The rarest action is next, so that all of them are reached.
        if (!chosen || actions_[action->objectName()] < actions_[chosen->objectName()] ||
            (actions_[action->objectName()] == actions_[chosen->objectName()] && below(3) == 0))
            chosen = action;
    }
    if (below(3) == 0)
        if (QAction* command = any_command()) chosen = command;
    if (!chosen) return;
    last_ = chosen->objectName();
    chosen->trigger();
}

/// The rarest command of the view in front; null: it has none now.
QAction* Monkey::any_command() {
    QAction* least = nullptr;
    Command* count = nullptr;
    for (QAction* action : window_->pages().view_commands()) {
        Command& command = commands_[window_->pages().front_name() + QLatin1Char('.') + action->objectName()];
        ++command.possible;
        if (least && command.done >= count->done) continue;
        least = action;
        count = &command;
    }
    if (count) ++count->done;
    return least;
}

/// False: a view of analyses, and none is open.
bool Monkey::shows(const QAction& action) const {
    if (!window_->desk().studies().empty()) return true;
    for (const auto* kind : widgets::view_kinds())
        if (action.objectName() == QStringLiteral("view_") + QLatin1String(kind->name))
            return kind->area() == widgets::ViewKind::Area::training;
    return true;
}

void Monkey::choose() {
    for (QAction* action : window_->all_actions())
        if (action->objectName() == QLatin1String("open_sample")) action->trigger();
}

void Monkey::finish() {
    const int stalls = window_->watchdog().stalls() - stalls_before_;
    const int own_stalls = window_->watchdog().own_stalls() - own_stalls_before_;
    std::printf("monkey: %.0f s\n", seconds_);
    std::printf("left out: quit (the monkey would end), stop_task\n");
    bool left_out = false;
    for (const auto& [name, count] : deeds_) std::printf("deed %s %d\n", qPrintable(name), count);
    for (const auto& [name, count] : actions_) {
        std::printf("action %s %d\n", qPrintable(name), count);
        left_out = left_out || count == 0;
    }
    for (const auto& [name, command] : commands_) {
        std::printf("command %s %d\n", qPrintable(name), command.done);
        left_out = left_out || (command.done == 0 && command.possible > kOften);
    }
    for (const auto& [name, count] : views_) {
        if (name.isEmpty()) continue;
        std::printf("view %s %d\n", qPrintable(name), count);
        left_out = left_out || count == 0;
    }
    double texts = 0;
    for (const widgets::Study* study : window_->desk().studies()) texts += bytes_of_texts(study->header());
    const double growth = first_memory_ > 0 ? last_memory_ - first_memory_ : 0,
                 in_use = first_memory_ > 0 ? memory_in_use() - first_in_use_ : 0;
    std::printf("stalls over %.0f ms: %d, longest %.0f ms\n", kStall * 1000, stalls,
                window_->watchdog().longest() * 1000);
    std::printf("of that the window's own doing: %d, longest %.0f ms\n", own_stalls,
                window_->watchdog().longest_own() * 1000);
    std::printf("memory %.0f MB, growth %.0f MB, of what is in use %.0f MB; texts of %zu open analyses %.0f MB\n",
                last_memory_ / 1e6, growth / 1e6, in_use / 1e6, window_->desk().studies().size(), texts / 1e6);
    std::fflush(stdout);
    for (const widgets::Run& run : window_->desk().runs().runs())
        if (run.alive()) window_->training().control(run.id, QStringLiteral("stop"), {});
    for (QWidget* widget : QApplication::topLevelWidgets())
        if (widget != window_) widget->close();
    window_->end();
    const double allowed = kGrowth + texts;
    QApplication::exit(left_out || own_stalls > 0 || in_use > allowed || growth > kHeld * allowed ? 1 : 0);
}

}  // namespace headscope::app
