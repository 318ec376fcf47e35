// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The map of one head of a synthetic analysis, worked as by mouse and keyboard.

#include <QApplication>
#include <QElapsedTimer>
#include <QLabel>
#include <QMouseEvent>
#include <QTest>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/views/map/map.h"

namespace headscope::tests {

/// One sequence, with the maps of all heads.
inline SyntheticAnalysis with_maps(std::int64_t length = 24) {
    SyntheticAnalysis a;
    a.lengths = {length};
    a.record.maps = true;
    return a;
}

struct OpenedMap {
    explicit OpenedMap(const SyntheticAnalysis& a = with_maps()) {
        write_synthetic_analysis(folder / "a.headscope.h5", a);
        study = open_study(desk, folder / "a.headscope.h5");
        desk.select_head(1, 2);
        view.reset(static_cast<widgets::MapView*>(view_kind("map").make(&desk, nullptr)));
        view->resize(900, 650);
        view->show();
        settle(desk);
        settle(desk);
    }
    widgets::MapPlot& plot() const { return *view->plot(); }
    template <class T>
    T* part(const char* name) const {
        T* found = view->findChild<T*>(QLatin1String(name));
        REQUIRE(found);
        return found;
    }
    QString words(const char* name) const { return part<QLabel>(name)->text(); }
    QPointF place(double query, double key) const {
        return {plot().xAxis->coordToPixel(key), plot().yAxis->coordToPixel(query)};
    }
    void mouse(QEvent::Type type, QPointF at, Qt::MouseButton button, Qt::KeyboardModifiers held = {}) {
        const auto buttons = type == QEvent::MouseButtonRelease ? Qt::NoButton : button;
        QMouseEvent event(type, at, plot().mapToGlobal(at), type == QEvent::MouseMove ? Qt::NoButton : button, buttons,
                          held);
        QApplication::sendEvent(&plot(), &event);
    }
    void drag(QPointF from, QPointF to, Qt::KeyboardModifiers held = {}) {
        mouse(QEvent::MouseButtonPress, from, Qt::LeftButton, held);
        mouse(QEvent::MouseMove, (from + to) / 2, Qt::LeftButton, held);
        mouse(QEvent::MouseMove, to, Qt::LeftButton, held);
        mouse(QEvent::MouseButtonRelease, to, Qt::LeftButton, held);
    }
    void click(QPointF at) {
        mouse(QEvent::MouseButtonPress, at, Qt::LeftButton);
        mouse(QEvent::MouseButtonRelease, at, Qt::LeftButton);
    }
    void key(int code, Qt::KeyboardModifiers held = {}) { QTest::keyClick(&plot(), static_cast<Qt::Key>(code), held); }
    /// Turns the event loop until it is so.
    static bool becomes(const std::function<bool()>& so) {
        QElapsedTimer clock;
        clock.start();
        while (!so() && clock.elapsed() < 10'000) QApplication::processEvents(QEventLoop::AllEvents, 5);
        return so();
    }

    bool application = (widgets::ensure_application(), true);
    test::TemporaryFolder folder;
    widgets::Desk desk;
    widgets::Study* study = nullptr;
    std::unique_ptr<widgets::MapView> view;
};

/// The weights of the head that is shown.
inline std::vector<float> weights_of(OpenedMap& opened) {
    const widgets::Selection& at = opened.desk.selection();
    const auto map = opened.study->map(0, at.site, at.head);
    REQUIRE(map);
    return map->values({0, map->queries(), 0, map->keys()});
}

}  // namespace headscope::tests
