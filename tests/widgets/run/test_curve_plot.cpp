// SPDX-License-Identifier: GPL-3.0-or-later
// Axes, ticks and pictures of the curves of runs.
#include <QColor>
#include <QImage>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "widgets/plots/figure/offscreen.h"
#include "widgets/training/curve_plot.h"

using namespace headscope;
using namespace headscope::widgets;

TEST_CASE("A curve without values has no axes, and short ranges have ticks that differ", "[curve]") {
    ensure_application();
    CurvePlot plot;
    plot.resize(300, 160);
    plot.set_x({}, figures::ScaleKind::linear, [](double x) { return QString::number(std::llround(x)); });
    plot.set_y({}, figures::ScaleKind::logarithmic);
    plot.set_y_least(0);
    plot.grab();
    CHECK(plot.y_ticks().empty());
    CHECK(plot.x_ticks().empty());
    // One step, and a fifth of a decade.
    const auto points = std::make_shared<const CurvePlot::Points>(CurvePlot::Points{{0, 1}, {5.1, 6.2}});
    plot.set_y_least(std::nullopt);
    plot.set_lines({{QStringLiteral("norm"), Qt::black, CurvePlot::Look::line, points, 0}});
    plot.grab();
    CHECK(plot.y_ticks().size() >= 2);
    REQUIRE(plot.x_ticks().size() == 2);
    CHECK(plot.x_ticks()[0].second == "0");
    CHECK(plot.x_ticks()[1].second == "1");
}

TEST_CASE("A logarithmic curve shows what it can of a range that begins at nothing", "[curve]") {
    ensure_application();
    CurvePlot plot;
    plot.resize(400, 200);
    auto points = std::make_shared<CurvePlot::Points>();
    for (int i = 0; i < 300; ++i) {
        points->x.push_back(i);
        points->y.push_back(1 + i % 7);
    }
    CurvePlot::Line line;
    line.name = QStringLiteral("loss");
    line.points = points;
    plot.set_lines({line});
    plot.set_x(QStringLiteral("step"), figures::ScaleKind::logarithmic);
    using Range = CurvePlot::Range;
    const QImage whole = plot.grab().toImage();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const Range& range : {Range{0, 299}, Range{-5, 299}, Range{-3, 0}, Range{7, 7}, Range{nan, nan}, Range{1, nan},
                               Range{9, 3}, Range{1, std::numeric_limits<double>::infinity()}}) {
        CAPTURE(range.first, range.second);
        plot.set_range(range);
        CHECK(plot.grab().toImage() == whole);
        CHECK(plot.x_to_pixel(1) == Approx(plot.plot_area().left()));
    }
    plot.set_range(Range{0, 30});
    plot.grab();
    CHECK(plot.x_to_pixel(1) == Approx(plot.plot_area().left()));
    CHECK(plot.x_to_pixel(30) == Approx(plot.plot_area().left() + plot.plot_area().width()));
    // Nothing but the step that has no place, then one point alone.
    points = std::make_shared<CurvePlot::Points>();
    for (const double x : {0.0, 0.25}) {
        points->x.push_back(x);
        points->y.push_back(1);
        line.points = std::make_shared<CurvePlot::Points>(*points);
        plot.set_lines({line});
        plot.grab();
        CHECK(std::isfinite(plot.x_to_pixel(0.25)));
    }
}

TEST_CASE("A low plot has two values at its axis", "[curve]") {
    ensure_application();
    CurvePlot plot;
    plot.resize(300, 96);
    plot.set_title(QStringLiteral("Loss"));
    for (const auto& [low, high] : {std::pair{2.1e8, 2.5e8}, std::pair{3.1, 7.0}, std::pair{0.0, 4.1e-4}}) {
        const auto points = std::make_shared<const CurvePlot::Points>(CurvePlot::Points{{0, 1}, {low, high}});
        plot.set_lines({{QStringLiteral("a"), Qt::black, CurvePlot::Look::line, points, 0}});
        plot.grab();
        CHECK(plot.y_ticks().size() >= 2);
    }
}

TEST_CASE("A spike and a gap are seen in a curve of a million steps", "[curve]") {
    ensure_application();
    CurvePlot plot;
    plot.resize(600, 300);
    plot.set_theme(make_theme(false));
    plot.set_x({}, figures::ScaleKind::linear, [](double x) { return QString::number(std::llround(x)); });
    plot.set_y({}, figures::ScaleKind::linear);
    constexpr std::size_t kSteps = 1'000'000, kSpike = 618'034;
    CurvePlot::Points points;
    for (std::size_t i = 0; i < kSteps; ++i) {
        points.x.push_back(static_cast<double>(i));
        points.y.push_back(i == kSpike ? 100.0 : i > 200'000 && i < 300'000 ? std::nan("") : std::sin(i * 0.7));
    }
    plot.set_lines({{QStringLiteral("loss"), Qt::red, CurvePlot::Look::line,
                     std::make_shared<const CurvePlot::Points>(std::move(points)), 0}});
    const QImage picture = plot.grab().toImage();
    const auto red_in = [&](double step, int top, int bottom) {
        const int x = static_cast<int>(plot.x_to_pixel(step));
        for (int y = top; y < bottom; ++y)
            for (const int beside : {-1, 0, 1}) {
                const QColor at = picture.pixelColor(x + beside, y);
                if (at.red() > 180 && at.green() < 120 && at.blue() < 120) return true;
            }
        return false;
    };
    const QRect area = plot.plot_area();
    const int middle = area.center().y();
    CHECK(red_in(kSpike, area.top(), middle));
    CHECK_FALSE(red_in(500'000, area.top(), middle));
    CHECK(red_in(500'000, middle, area.bottom() + 1));
    CHECK_FALSE(red_in(250'000, area.top(), area.bottom() + 1));
}
