// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A Compare view on synthetic analyses, worked as by mouse and keyboard.

#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QMouseEvent>
#include <QToolButton>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/text/banner.h"
#include "widgets/views/compare/compare.h"
#include "widgets/views/compare/maps_page.h"

namespace headscope::tests {

inline SyntheticAnalysis compared_analysis(std::uint64_t seed, std::vector<std::int64_t> lengths = {24}) {
    SyntheticAnalysis a;
    a.lengths = std::move(lengths);
    a.record.maps = true;
    a.seed = seed;
    return a;
}

/// Those analyses, opened, and the view that compares the first with the last.
struct Compared {
    explicit Compared(const std::vector<SyntheticAnalysis>& all, const std::string& settings = "{}") {
        for (std::size_t i = 0; i < all.size(); ++i) {
            const auto path = folder / (std::string(1, static_cast<char>('a' + i)) + ".headscope.h5");
            store::AnalysisHeader header = synthetic_header(all[i]);
            if (i > 0) header.settings_json = settings;
            store::AnalysisWriter writer(path, header);
            for (std::size_t s = 0; s < all[i].lengths.size(); ++s) {
                for (std::int32_t layer = 0; layer < all[i].layers; ++layer)
                    write_synthetic_layer(writer, all[i], static_cast<std::int64_t>(s), layer);
                write_synthetic_output(writer, all[i], static_cast<std::int64_t>(s));
            }
            writer.publish();
            studies.push_back(open_study(desk, path));
        }
        desk.select_head(1, 2);
        show();
    }
    void show() {
        view.reset(static_cast<widgets::CompareView*>(view_kind("compare").make(&desk, nullptr)));
        view->resize(1100, 640);
        view->show();
        settle();
    }
    void settle() {
        tests::settle(desk);
        tests::settle(desk);
    }
    template <class T>
    T* part(const char* name) const {
        T* found = view->findChild<T*>(QLatin1String(name));
        REQUIRE(found);
        return found;
    }
    QString words(const char* name) const { return part<QLabel>(name)->text(); }
    QString title(const char* name) const { return part<QLabel>(name)->toolTip(); }
    widgets::MapPlot& plot(widgets::CompareMaps::Which which) const { return *view->maps()->plot(which); }
    template <class Page>
    static QString banner(Page* page) {
        return page->template findChild<widgets::Banner*>()->text();
    }
    void mode(const char* name) {
        part<QToolButton>(name)->click();
        settle();
    }
    void choose(const char* box, int index) {
        auto* combo = part<QComboBox>(box);
        combo->setCurrentIndex(index);
        Q_EMIT combo->activated(index);
        settle();
    }
    static void mouse(QWidget& at, QEvent::Type type, QPointF place, Qt::MouseButton button) {
        QMouseEvent event(type, place, at.mapToGlobal(place), type == QEvent::MouseMove ? Qt::NoButton : button,
                          type == QEvent::MouseButtonRelease ? Qt::NoButton : button, Qt::NoModifier);
        QApplication::sendEvent(&at, &event);
    }
    void click(widgets::MapPlot& at, double query, double key) {
        const QPointF place(at.xAxis->coordToPixel(key + 0.5), at.yAxis->coordToPixel(query + 0.5));
        mouse(at, QEvent::MouseButtonPress, place, Qt::LeftButton);
        mouse(at, QEvent::MouseButtonRelease, place, Qt::LeftButton);
        settle();
    }
    void point(widgets::MapPlot& at, double query, double key) {
        mouse(at, QEvent::MouseMove, {at.xAxis->coordToPixel(key + 0.5), at.yAxis->coordToPixel(query + 0.5)},
              Qt::NoButton);
        settle();
    }
    std::vector<float> weights(std::size_t study, std::int64_t head = 2) {
        const auto map = studies[study]->map(0, 1, head);
        REQUIRE(map);
        return map->values({0, map->queries(), 0, map->keys()});
    }

    bool application = (widgets::ensure_application(), true);
    test::TemporaryFolder folder;
    widgets::Desk desk;
    std::vector<widgets::Study*> studies;
    std::unique_ptr<widgets::CompareView> view;
};

}  // namespace headscope::tests
