// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/widgets/desk_fixture.h"

#include <QApplication>
#include <QElapsedTimer>
#include <QThread>
#include <future>
#include <stdexcept>

#include "widgets/idle_queue.h"
#include "widgets/plots/figure/figure_view.h"

namespace headscope::tests {

widgets::Study* open_study(widgets::Desk& desk, const std::filesystem::path& path) {
    std::promise<widgets::Study::Opened> promise;
    desk.reader().post(nullptr, [&](const Cancellation&) {
        try {
            promise.set_value(widgets::Study::open(path));
        } catch (...) {
            promise.set_exception(std::current_exception());
        }
    });
    return desk.add(promise.get_future().get());
}

constexpr int kQuiet = 12;  ///< turns: a short task may be asked for and done within each of some

void settle(widgets::Desk& desk, double seconds) {
    QElapsedTimer clock;
    clock.start();
    int quiet = 0;
    while (quiet < kQuiet && static_cast<double>(clock.elapsed()) < seconds * 1000) {
        const bool busy = !desk.reader().idle() || !desk.writer().idle() || widgets::FigureView::any_waits() ||
                          desk.telling() || !widgets::IdleQueue::of_window().empty();
        if (!busy) desk.tiles().server().wait();
        QApplication::processEvents();
        QApplication::sendPostedEvents();
        quiet = busy || !desk.reader().idle() || widgets::FigureView::any_waits() ? 0 : quiet + 1;
        if (busy) QThread::msleep(2);
    }
}

const widgets::ViewKind& view_kind(const std::string& name) {
    for (const widgets::ViewKind* kind : widgets::view_kinds())
        if (name == kind->name) return *kind;
    throw std::invalid_argument("no view is called " + name);
}

}  // namespace headscope::tests
