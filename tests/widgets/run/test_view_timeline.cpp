// SPDX-License-Identifier: GPL-3.0-or-later
// The timeline of a run's probes.
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QSlider>
#include <QTest>
#include <catch2/catch.hpp>

#include "tests/widgets/child.h"
#include "tests/widgets/run/run_page.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/training/curve_plot.h"
#include "widgets/training/thumbnail_wall.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::child;
using Page = tests::RunPage;

TEST_CASE("The scrubber goes through the probes, and shows radars and maps of its step", "[timeline]") {
    Page page("timeline");
    auto* scrubber = child<QSlider>(*page.view, "timeline_scrubber");
    CHECK(scrubber->maximum() == 19);
    CHECK(scrubber->value() == 19);
    auto* radars = child<FigureView>(*page.view, "timeline_radars");
    REQUIRE(radars->figure());
    CHECK(radars->figure()->panels.size() == 4);
    const auto value = [&] {
        return std::get<figures::Radar>(radars->figure()->panels[3].content).series[0].values[0];
    };
    const double last = value();
    scrubber->setValue(0);
    page.settle();
    CHECK(page.desk.runs().moment().step == 20);
    CHECK(child<QLabel>(*page.view, "timeline_step")->text() == "step 20");
    CHECK(value() > last);  // entropy falls
    // Nothing but the first snapshot is near.
    QSignalSpy analyse(&page.desk.runs(), &RunShelf::analyse_wanted);
    child<QPushButton>(*page.view, "timeline_analyse")->click();
    REQUIRE(analyse.count() == 1);
    CHECK(analyse[0][1].toString() == "step-000100");
    page.view->setFocus();
    QTest::keyClick(page.view.get(), Qt::Key_Right);
    CHECK(page.desk.runs().moment().step == 40);
}

TEST_CASE("A head chosen in the maps is chosen everywhere", "[timeline]") {
    Page page("timeline");
    auto* wall = child<ThumbnailWall>(*page.view, "thumbnail_wall");
    wall->setFocus();
    QTest::keyClick(wall, Qt::Key_Down);
    page.settle();
    QTest::keyClick(wall, Qt::Key_Right);
    CHECK(page.desk.runs().site() == 1);
    CHECK(page.desk.runs().head() == 1);
    auto* of = child<QComboBox>(*page.view, "timeline_of");
    of->setCurrentIndex(of->findData(QStringLiteral("heads")));
    page.settle();
    auto* plot = child<CurvePlot>(*page.view, "timeline_plot");
    plot->set_cursor(200);
    REQUIRE(plot->readings().size() == 4);
    CHECK(plot->readings().front().startsWith(QStringLiteral("head 0")));
    const auto wish = page.view->figure();
    REQUIRE(wish);
    CHECK(wish->recipe == "timeline");
    CHECK(wish->options.indicator == "entropy");
    CHECK(wish->paths == QStringList{QStringLiteral("/runs/0")});
    const QJsonObject state = page.view->state();
    Page other("timeline");
    other.view->restore(state);
    other.settle();
    CHECK(child<QComboBox>(*other.view, "timeline_of")->currentData().toString() == "heads");
}

TEST_CASE("A run without probes leaves the way to the other runs", "[timeline]") {
    Page page("timeline", 1);
    tests::MadeRun none;
    none.probe_every = 0;
    page.desk.runs().take(page.desk.runs().add(QStringLiteral("/runs/none"), QStringLiteral("none")),
                          tests::made_run(none));
    page.settle();
    auto* runs = child<QComboBox>(*page.view, "timeline_run");
    CHECK(runs->isVisible());
    CHECK_FALSE(child<CurvePlot>(*page.view, "timeline_plot")->isVisible());
    CHECK(child<QWidget>(*page.view, "banner")->isVisible());
    Q_EMIT runs->activated(0);
    page.settle();
    CHECK(child<CurvePlot>(*page.view, "timeline_plot")->isVisible());
    CHECK_FALSE(child<QWidget>(*page.view, "banner")->isVisible());
}

TEST_CASE("The figure of a timeline has the moment that is shown", "[timeline]") {
    Page page("timeline");
    page.desk.runs().choose_step(60);
    page.settle();
    REQUIRE(page.view->figure());
    CHECK(page.view->figure()->options.step == 60);
    page.desk.runs().choose_step(200);
    page.settle();
    CHECK(page.view->figure()->options.step == 200);
}
