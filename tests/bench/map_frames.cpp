// SPDX-License-Identifier: GPL-3.0-or-later
// How the map view keeps up: opens heads of an analysis with maps, pans, zooms and points by mouse events on the
// offscreen platform, sixty times a second, and prints how long the window's thread was busy with each frame.
//
//     map_frames FILE.headscope.h5 [--size WxH] [--frames N] [--scale NAME] [--values NAME] [--pool]
//
// --pool, the last: Qt's raster engine may use its pool of threads, as it may not in the program.
//
// A file for it:
//
//     headscope analyze -o long.headscope.h5 --file kjv.txt --length 16384 --beyond-positions --record maps
//         resources/samples/llama-kjv-shakespeare
//
// Other programs on the machine count in the wall times; CPU times are those of the window's thread alone.
#include <malloc.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QLabel>
#include <QMouseEvent>
#include <QThread>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/plots/figure/painting_thread.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/views/map/map.h"

namespace {

using namespace headscope;
using namespace headscope::widgets;

constexpr double kFrame = 1000.0 / 60;

/// In MB, of /proc/self/status.
double memory(const char* line_of) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(line_of)) return std::stod(line.substr(line.find(':') + 1)) / 1024;
    return 0;
}

double cpu_ms() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

struct Times {
    std::vector<double> wall, cpu;

    void print(const char* what) {
        for (auto* values : {&wall, &cpu}) {
            std::sort(values->begin(), values->end());
            const auto at = [&](double share) {
                return (*values)[static_cast<std::size_t>(share * static_cast<double>(values->size() - 1))];
            };
            const auto late = std::count_if(values->begin(), values->end(), [](double ms) { return ms > 16; });
            std::printf(
                "%-28s %4s  median %6.2f  95 %% %6.2f  99 %% %6.2f  largest %7.2f ms  %zu, %.1f %% over 16 ms\n",
                values == &wall ? what : "", values == &wall ? "wall" : "CPU", at(0.5), at(0.95), at(0.99),
                values->back(), values->size(),
                100.0 * static_cast<double>(late) / static_cast<double>(values->size()));
        }
        std::fflush(stdout);
    }
};

class Bench {
public:
    Bench(const std::string& path, QSize size) {
        study_ = tests::open_study(desk_, path);
        view_ = std::make_unique<MapView>(&desk_, nullptr);
        view_->resize(size);
    }

    void look(const QJsonObject& state) { view_->restore(state); }

    /// The first head, in a view that was never shown, then others.
    void open() {
        QElapsedTimer clock;
        clock.start();
        view_->show();
        wanted_ = name(0, 0);
        const double first = until(clock, [&] { return draws_ > 0; });
        const double whole = until(clock, [&] { return complete(); });
        std::printf("%-28s first image %.0f ms, complete %.0f ms\n", "open", first, whole);
        Times image, all;
        const auto sites = static_cast<std::int64_t>(study_->sites().size());
        for (int i = 0; i < 12; ++i) {
            const std::int64_t site = (i + 1) % sites, head = (i * 5 + 1) % study_->sites().front().heads;
            clock.restart();
            const double cpu = cpu_ms();
            draws_ = 0;
            wanted_ = name(site, head);
            desk_.select_head(site, head);
            image.wall.push_back(until(clock, [&] { return draws_ > 0; }));
            image.cpu.push_back(cpu_ms() - cpu);
            all.wall.push_back(until(clock, [&] { return complete(); }));
            all.cpu.push_back(cpu_ms() - cpu);
        }
        image.print("another head, first image");
        all.print("another head, complete");
    }

    void pan(double share, int frames) {
        zoom_to(share);
        const QPointF middle = plot().area()->center();
        Times times;
        for (int i = 0; i < frames; ++i) {
            // A drag of thirty frames, then another direction.
            const double angle = 0.9 * (i / 30), step = 9.0 * (i % 30);
            const QPointF at = middle + step * QPointF(std::cos(angle), std::sin(angle));
            if (i % 30 == 0) mouse(QEvent::MouseButtonPress, middle, Qt::LeftButton);
            frame(times, [&] { mouse(QEvent::MouseMove, at, Qt::LeftButton); });
            if (i % 30 == 29) mouse(QEvent::MouseButtonRelease, at, Qt::LeftButton);
        }
        char what[64];
        std::snprintf(what, sizeof what, "pan, %lld cells across", static_cast<long long>(plot().shown().keys()));
        times.print(what);
    }

    void zoom(int frames) {
        plot().show_all();
        Times times;
        const int steps = 26;  // from all to a few cells, and back
        for (int i = 0; i < frames; ++i) {
            const bool in = i / steps % 2 == 0;
            const QPointF at = plot().area()->center() + QPointF(40.0 * std::sin(i / steps), 30);
            frame(times, [&] {
                QWheelEvent event(at, plot().mapToGlobal(at), {}, {0, in ? 120 : -120}, Qt::NoButton, Qt::NoModifier,
                                  Qt::NoScrollPhase, false);
                QApplication::sendEvent(&plot(), &event);
            });
        }
        times.print("zoom by the wheel");
    }

    void point(int frames) {
        plot().show_all();
        Times times;
        const QRectF area = plot().area()->rect();
        for (int i = 0; i < frames; ++i) {
            const QPointF at(area.left() + area.width() * (0.5 + 0.4 * std::sin(0.05 * i)),
                             area.top() + area.height() * (0.6 + 0.3 * std::cos(0.07 * i)));
            frame(times, [&] { mouse(QEvent::MouseMove, at, Qt::NoButton); });
        }
        times.print("pointer over the map");
    }

    MapPlot& plot() const { return *view_->plot(); }

private:
    QString title() const { return view_->findChild<QLabel*>(QStringLiteral("map_title"))->text(); }
    QString name(std::int64_t site, std::int64_t head) const {
        return QStringLiteral("%1, head %2").arg(study_->site_heading(site)).arg(head);
    }
    bool complete() { return plot().complete() && desk_.tiles().server().counts().made > 0; }

    double until(const QElapsedTimer& clock, const std::function<bool()>& so) {
        if (!counting_) {
            counting_ = true;
            QObject::connect(&plot(), &QCustomPlot::afterReplot, [this] { draws_ += title() == wanted_ ? 1 : 0; });
        }
        while (!so() && clock.elapsed() < 60'000) {
            QApplication::processEvents(QEventLoop::AllEvents, 5);
            if (!so()) QThread::usleep(200);
        }
        return static_cast<double>(clock.nsecsElapsed()) * 1e-6;
    }

    void zoom_to(double share) {
        const auto side = static_cast<std::int64_t>(share * static_cast<double>(plot().content().queries));
        const std::int64_t q = (plot().content().queries - side) * 3 / 4, k = (plot().content().keys - side) / 2;
        plot().show_cells({q, q + side, k, k + side});
        QElapsedTimer clock;
        clock.start();
        QApplication::processEvents();
        until(clock, [&] { return complete(); });
    }

    void mouse(QEvent::Type type, QPointF at, Qt::MouseButton button) {
        QMouseEvent event(type, at, plot().mapToGlobal(at), type == QEvent::MouseMove ? Qt::NoButton : button,
                          type == QEvent::MouseButtonRelease ? Qt::NoButton : button, Qt::NoModifier);
        QApplication::sendEvent(&plot(), &event);
    }

    /// Handles an event to its last repaint; then gives the rest of the sixtieth of a second to the workers.
    static void frame(Times& times, const std::function<void()>& event) {
        QElapsedTimer clock;
        clock.start();
        const double cpu = cpu_ms();
        event();
        QApplication::processEvents();
        const double wall = static_cast<double>(clock.nsecsElapsed()) * 1e-6;
        times.wall.push_back(wall);
        times.cpu.push_back(cpu_ms() - cpu);
        if (wall < kFrame) QThread::usleep(static_cast<unsigned long>(1000 * (kFrame - wall)));
    }

    Desk desk_;
    Study* study_ = nullptr;
    std::unique_ptr<MapView> view_;
    QString wanted_;  ///< the title of the head that is waited for
    int draws_ = 0;   ///< of it
    bool counting_ = false;
};

int run(const std::vector<std::string>& words) {
    int width = 1280, height = 720, frames = 240;
    QJsonObject state;
    for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
        if (words[i] == "--size") std::sscanf(words[i + 1].c_str(), "%dx%d", &width, &height);
        if (words[i] == "--frames") frames = std::stoi(words[i + 1]);
        if (words[i] == "--scale") state["scale"] = QString::fromStdString(words[i + 1]);
        if (words[i] == "--values") state["values"] = QString::fromStdString(words[i + 1]);
    }
    ensure_application();
    if (std::find(words.begin(), words.end(), "--pool") == words.end()) paint_on_this_thread_alone();
    const double before = memory("VmRSS");
    Bench bench(words.at(0), {width, height});
    bench.look(state);
    bench.open();
    for (const double share : {0.8, 0.25, 0.05, 0.005}) bench.pan(share, frames);
    bench.zoom(frames);
    bench.point(frames);
    std::printf("%-28s %.0f MB now, %.0f MB at most, beside %.0f MB before\n", "memory grown by",
                memory("VmRSS") - before, memory("VmHWM") - before, before);
    return 0;
}

}  // namespace

int main(int argc, char** argv) try {
    // As the program does (app/window/run_window.cpp).
    mallopt(M_ARENA_MAX, 4);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 16 << 20);
    if (argc < 2) {
        std::fprintf(
            stderr, "map_frames FILE.headscope.h5 [--size WxH] [--frames N] [--scale NAME] [--values NAME] [--pool]\n");
        return 2;
    }
    return run({argv + 1, argv + argc});
} catch (const std::exception& error) {
    std::fprintf(stderr, "map_frames: %s\n", error.what());
    return 1;
}
