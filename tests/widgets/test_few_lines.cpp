// SPDX-License-Identifier: GPL-3.0-or-later
// Curves of many points drawn by few lines.
#include <QImage>
#include <QPainter>
#include <QWidget>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <utility>

#include "widgets/plots/chart/few_lines.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::widgets;

TEST_CASE("A curve of many points is drawn by few lines that cover the same", "[figures][spots]") {
    const QList<QLineF> few{{0, 0, 10, 5}, {10, 5, 20, 0}, {30, 1, 40, 2}};  // with a gap
    CHECK(few_lines(few, 1) == few);
    CHECK(few_lines({}, 1).isEmpty());

    QList<QLineF> many;
    std::map<int, std::pair<double, double>> reach;
    QPointF last;
    for (int i = 0; i < 20'000; ++i) {
        const QPointF to(i / 200.0, std::sin(i * 0.7) * (1 + i / 200.0) + (i == 7'003 ? 500 : 0));
        if (i > 0) many << QLineF(last, to);
        last = to;
        auto& [low, high] = reach.try_emplace(static_cast<int>(to.x()), to.y(), to.y()).first->second;
        low = std::min(low, to.y());
        high = std::max(high, to.y());
    }
    const QList<QLineF> lines = few_lines(many, 1);
    CHECK(lines.size() <= 400);
    std::map<int, std::pair<double, double>> covered;
    QPointF end(0, 0);
    for (const QLineF& line : lines) {
        CHECK(line.p1() == end);  // one line without gaps
        end = line.p2();
        auto& [low, high] = covered.try_emplace(static_cast<int>(end.x()), end.y(), end.y()).first->second;
        low = std::min(low, end.y());
        high = std::max(high, end.y());
    }
    // The first point is where the first line begins.
    covered[0].first = std::min(covered[0].first, 0.0);
    CHECK(covered == reach);
}

TEST_CASE("The area of a wild curve is what its lines cover", "[figures][spots]") {
    QList<QLineF> lines;
    QPointF last(10, 100);
    std::mt19937 random(7);
    for (int i = 1; i < 6000; ++i) {
        // Wild, then a slope with few points, then a steep step, then a gap, then wild again.
        const double x = 10 + i / 16.0, noise = static_cast<double>(random() % 1000) / 1000 - 0.5;
        const bool smooth = i > 2000 && i < 3000;
        QPointF to(x, smooth ? 100 - (x - 135) * 0.8 : 100 + 60 * noise);
        if (smooth && i % 100 != 0) continue;
        if (i == 4500) last = to;
        if (i != 4500) lines << QLineF(last, to);
        last = to;
    }
    lines << QLineF(last, last + QPointF(10, -90));
    const QColor colour(0, 90, 180);
    for (const double width : {1.0, 1.9, 3.2}) {
        const auto paint = [&](bool all) {
            QImage image(420, 200, QImage::Format_ARGB32_Premultiplied);
            image.fill(Qt::white);
            QPainter painter(&image);
            painter.setRenderHint(QPainter::Antialiasing);
            (all ? draw_all_lines : draw_lines)(&painter, QPen(colour, width), lines);
            return image;
        };
        const QImage exact = paint(true), fast = paint(false);
        int inside = 0, wrong = 0;
        double more = 0;
        for (int y = 0; y < exact.height(); ++y)
            for (int x = 0; x < exact.width(); ++x) {
                const int a = qRed(exact.pixel(x, y)), b = qRed(fast.pixel(x, y));
                inside += a < 128 ? 1 : 0;
                wrong += std::abs(a - b) > 128 ? 1 : 0;
                more += (a - b) / 255.0;
            }
        CAPTURE(width, inside, wrong, more);
        CHECK(inside > 10'000);
        CHECK(wrong < inside / 50);
        CHECK(std::abs(more) < inside / 30.0);
    }
}

TEST_CASE("The area of a curve lies where its lines do: in a widget of a window, and where the curve goes on beyond",
          "[figures][spots]") {
    ensure_application();
    QList<QLineF> lines;
    for (int i = 0; i < 400; ++i)
        lines << QLineF(i * 0.5 - 50, i % 2 == 0 ? 20 : 60, i * 0.5 - 49.5, i % 2 == 0 ? 60 : 20);
    lines << QLineF(lines.back().p2(), QPointF(1e7, 4e9));
    lines.prepend(QLineF(QPointF(-1e7, -4e9), lines.front().p1()));
    struct Curve : QWidget {
        using QWidget::QWidget;
        void paintEvent(QPaintEvent*) override {
            QPainter painter(this);
            painter.setRenderHint(QPainter::Antialiasing);
            painter.scale(1.5, 1.5);
            (all ? draw_all_lines : draw_lines)(&painter, QPen(Qt::black, 1.2), lines);
        }
        QList<QLineF> lines;
        bool all = false;
    };
    QWidget window;
    window.resize(300, 200);
    auto* curve = new Curve(&window);
    curve->lines = lines.mid(1, lines.size() - 2);
    curve->setGeometry(60, 40, 200, 120);
    const auto shown = [&](bool all) {
        curve->all = all;
        return window.grab().toImage().convertToFormat(QImage::Format_RGB32);
    };
    const auto wrong = [](const QImage& a, const QImage& b) {
        int count = 0;
        for (int y = 0; y < a.height(); ++y)
            for (int x = 0; x < a.width(); ++x) count += std::abs(qRed(a.pixel(x, y)) - qRed(b.pixel(x, y))) > 128;
        return count;
    };
    const QImage exact = shown(true), fast = shown(false);
    CHECK(wrong(exact, fast) < 100);
    curve->hide();
    const QImage empty = shown(true);
    CHECK(wrong(exact, empty) > 8000);
    curve->show();
    curve->lines = lines;  // far ends
    CHECK(wrong(shown(false), fast) < 400);
}

TEST_CASE("Lines with ends that are not finite are left out, the others drawn", "[figures][spots]") {
    const double nan = std::numeric_limits<double>::quiet_NaN(), beyond = std::numeric_limits<double>::infinity();
    QList<QLineF> good;
    for (int i = 0; i < 400; ++i) good << QLineF(i * 0.5, i % 2 == 0 ? 20 : 60, i * 0.5 + 0.5, i % 2 == 0 ? 60 : 20);
    const auto drawn = [](const QList<QLineF>& lines) {
        QImage image(200, 80, QImage::Format_ARGB32_Premultiplied);
        image.fill(Qt::white);
        QPainter painter(&image);
        painter.setRenderHint(QPainter::Antialiasing);
        draw_lines(&painter, QPen(Qt::black, 1.9), lines);
        return image;
    };
    const QImage wanted = drawn(good);
    for (const double bad : {nan, beyond, -beyond}) {
        QList<QLineF> lines = good, nowhere;
        lines.prepend(QLineF(bad, 20, 0, 20));
        lines.append(QLineF(200, 20, 201, bad));
        lines.insert(200, QLineF(bad, bad, bad, bad));
        CHECK(drawn(lines) == wanted);
        for (const QLineF& line : good) nowhere << QLineF(bad, line.y1(), bad, line.y2());
        CHECK(drawn(nowhere) == drawn({}));
    }
    const double far = std::numeric_limits<double>::max();
    QList<QLineF> longest = good;
    longest.prepend(QLineF(-far, far, 0, 20));
    longest.append(QLineF(200, 20, far, -far));
    const QImage seen = drawn(longest);
    CHECK(seen.copy(0, 30, 200, 20) == wanted.copy(0, 30, 200, 20));
}
