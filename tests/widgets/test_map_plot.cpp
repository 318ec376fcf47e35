// SPDX-License-Identifier: GPL-3.0-or-later
// The map of a long text on a screen of no display: what is one cell wide is seen at every zoom.
#include <QApplication>
#include <QImage>
#include <QMouseEvent>
#include <QSignalSpy>
#include <QWheelEvent>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/maps/head_map.h"
#include "core/maps/logit_source.h"
#include "core/maps/rank_source.h"
#include "widgets/plots/colour_lookup.h"
#include "widgets/plots/colour_map.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/plots/map/map_plot.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

constexpr std::int64_t kLength = 16384;

/// A causal map of two lines: weight 0.5 on the first key, 0.5 on the query's own.
class TwoLines final : public maps::TileSource {
public:
    std::int64_t queries() const override { return kLength; }
    std::int64_t keys() const override { return kLength; }
    void pool(const maps::Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
              const std::atomic<bool>&) const override {
        for (std::int64_t r = 0; r < maps::pixels(cells.queries(), level); ++r) {
            for (std::int64_t c = 0; c < maps::pixels(cells.keys(), level); ++c) {
                const std::int64_t q = cells.q_begin + (r << level), k = cells.k_begin + (c << level);
                const bool future = k > q + (std::int64_t{1} << level) - 1;
                const float weight = k == 0 || q == k ? 0.5F : 0.0F;
                extreme[r * stride + c] = future ? std::numeric_limits<float>::quiet_NaN() : weight;
                mean[r * stride + c] = extreme[r * stride + c];
            }
        }
    }
    std::vector<float> values(const maps::Cells&) const override { return {}; }
};

struct Shown {
    Shown() {
        content.map = service.add(std::make_shared<TwoLines>());
        content.queries = content.keys = kLength;
        plot.resize(700, 600);
        plot.set_content(content);
    }
    /// The screen when every tile is there.
    QImage image() {
        plot.replot();
        service.server().wait();
        QApplication::processEvents();
        REQUIRE(plot.complete());
        return plot.toPixmap().toImage().convertToFormat(QImage::Format_RGB32);
    }
    bool application = (ensure_application(), true);  // before the first widget
    TileService service;
    MapContent content;
    MapPlot plot{&service};
};

/// Pixels of row `y`, within the axes, that have the colour of a weight of one half.
std::vector<int> strong(const Shown& shown, const QImage& image, int y) {
    figures::ColourScale scale;
    scale.scale = figures::ScaleKind::logarithmic;
    scale.minimum = 1e-4;
    const QRgb colour = colour_of(colour_table(figures::ColourMap::sequential, false), fraction(scale, 0.5), 0);
    const QRect area = shown.plot.axisRect()->rect();
    std::vector<int> found;
    for (int x = area.left(); x <= area.right(); ++x)
        if (image.pixel(x, y) == colour) found.push_back(x);
    return found;
}

}  // namespace

TEST_CASE("A map that is shown for the first time has ticks all along its axes", "[map]") {
    ensure_application();
    TileService service;
    MapPlot plot(&service);
    MapContent content;
    content.queries = 45;
    content.keys = 41;
    plot.set_content(content);  // before anything has a size
    plot.resize(220, 460);
    plot.show();
    for (int i = 0; i < 5; ++i) QApplication::processEvents();
    CHECK(plot.yAxis->tickVector().size() >= 5);
    CHECK(plot.xAxis->tickVector().size() >= 2);
}

TEST_CASE("A diagonal and a column one cell wide are seen in every row of pixels at every zoom", "[widgets][map]") {
    Shown shown;
    // From the whole map to a few cells, about the diagonal and at the left end.
    for (std::int64_t size = kLength; size >= 4; size = size * 2 / 3) {
        shown.plot.show_cells({0, size, 0, size});
        const QImage image = shown.image();
        const QRect area = shown.plot.axisRect()->rect();
        INFO(size << " cells, level " << shown.plot.level());
        int without_column = 0, without_diagonal = 0;
        for (int y = area.top() + 1; y < area.bottom(); ++y) {
            const std::vector<int> found = strong(shown, image, y);
            const double query = std::floor(shown.plot.yAxis->pixelToCoord(y + 0.5));
            const double left = shown.plot.xAxis->coordToPixel(query),
                         right = shown.plot.xAxis->coordToPixel(query + 1);
            const auto near = [&](double from, double to) {
                return std::any_of(found.begin(), found.end(), [&](int x) { return x >= from - 2.5 && x <= to + 2.5; });
            };
            if (!near(area.left(), area.left())) ++without_column;
            if (!near(left, right)) ++without_diagonal;
        }
        CHECK(without_column == 0);
        CHECK(without_diagonal == 0);
    }
}

TEST_CASE("A pixel of the screen never pools less than the tile under it", "[widgets][map]") {
    Shown shown;
    for (const std::int64_t size : {16384, 9000, 5000, 2500, 1200, 700, 300, 20}) {
        shown.plot.show_cells({1000, std::min(kLength, 1000 + size), 0, size});
        shown.image();
        const double cells_per_pixel = shown.plot.xAxis->range().size() / shown.plot.axisRect()->width();
        CHECK(std::exp2(shown.plot.level()) >= std::min(cells_per_pixel, 64.0) * 0.999);
        CHECK(std::exp2(shown.plot.level() - 1) <= std::max(1.0, cells_per_pixel * 1.5));
    }
}

TEST_CASE("The view stays within the map, whatever is dragged and turned", "[widgets][map]") {
    Shown shown;
    shown.image();
    const QPointF middle = shown.plot.axisRect()->center();
    const auto turn = [&](int steps) {
        for (int i = 0; i < std::abs(steps); ++i) {
            QWheelEvent event(middle, shown.plot.mapToGlobal(middle), {}, {0, steps > 0 ? 120 : -120}, Qt::NoButton,
                              Qt::NoModifier, Qt::NoScrollPhase, false);
            QApplication::sendEvent(&shown.plot, &event);
        }
    };
    turn(100);
    CHECK(shown.plot.xAxis->range().size() == Approx(4));
    CHECK(shown.plot.yAxis->range().size() == Approx(4));
    shown.plot.xAxis->setRange(-500, -400);
    CHECK(shown.plot.xAxis->range().lower == 0);
    shown.plot.yAxis->setRange(20000, 20100);
    CHECK(shown.plot.yAxis->range().upper == kLength);
    CHECK(shown.plot.yAxis->range().size() == Approx(100));
    turn(-200);
    CHECK(shown.plot.shown().queries() == kLength);
    CHECK(shown.plot.shown().keys() == kLength);
}

TEST_CASE("A click chooses the cell under it, the pointer is followed", "[widgets][map]") {
    Shown shown;
    shown.plot.show_cells({0, 10, 0, 10});
    shown.image();
    QSignalSpy chosen(&shown.plot, &MapPlot::chosen), pointed(&shown.plot, &MapPlot::pointed);
    const QPointF at(shown.plot.xAxis->coordToPixel(3.5), shown.plot.yAxis->coordToPixel(7.5));
    const auto send = [&](QEvent::Type type, Qt::MouseButton button, QPointF place) {
        QMouseEvent event(type, place, shown.plot.mapToGlobal(place), button, button, Qt::NoModifier);
        QApplication::sendEvent(&shown.plot, &event);
    };
    send(QEvent::MouseMove, Qt::NoButton, at);
    REQUIRE(pointed.count() == 1);
    CHECK(pointed.back().at(0).toLongLong() == 7);
    CHECK(pointed.back().at(1).toLongLong() == 3);
    send(QEvent::MouseButtonPress, Qt::LeftButton, at);
    send(QEvent::MouseButtonRelease, Qt::LeftButton, at);
    REQUIRE(chosen.count() == 1);
    CHECK(chosen.back().at(0).toLongLong() == 7);
    CHECK(chosen.back().at(1).toLongLong() == 3);
    send(QEvent::MouseMove, Qt::NoButton, QPointF(2, 2));
    CHECK(pointed.back().at(0).toLongLong() == -1);
    // A drag pans and chooses nothing.
    send(QEvent::MouseButtonPress, Qt::LeftButton, at);
    send(QEvent::MouseMove, Qt::LeftButton, at - QPointF(0, 60));
    send(QEvent::MouseButtonRelease, Qt::LeftButton, at - QPointF(0, 60));
    CHECK(chosen.count() == 1);
    CHECK(shown.plot.yAxis->range().lower > 0.5);
}

TEST_CASE("The thumbnail is there until the tiles are", "[widgets][map]") {
    ensure_application();
    TileService service;
    MapPlot plot(&service);
    plot.resize(500, 500);
    MapContent content;
    content.queries = content.keys = 4096;
    content.thumbnail_rows = content.thumbnail_columns = 2;
    content.thumbnail = {1.0F, std::numeric_limits<float>::quiet_NaN(), 1.0F, 1.0F};
    plot.set_content(content);
    plot.replot();
    const QImage image = plot.toPixmap().toImage();
    const QRect area = plot.axisRect()->rect();
    const QRgb one = colour_table(figures::ColourMap::sequential, false).back();
    CHECK(image.pixel(area.left() + area.width() / 4, area.top() + area.height() / 4) == one);
    CHECK(image.pixel(area.left() + area.width() / 4, area.top() + 3 * area.height() / 4) == one);
    CHECK(image.pixel(area.left() + 3 * area.width() / 4, area.top() + area.height() / 4) ==
          make_theme(false).none.rgb());
    CHECK_FALSE(plot.complete());
}

TEST_CASE("A table of colours says what the formula says, to the next colour", "[widgets][map]") {
    for (const auto scale : {figures::ScaleKind::linear, figures::ScaleKind::logarithmic,
                             figures::ScaleKind::square_root, figures::ScaleKind::symmetric_log}) {
        figures::ColourScale colours;
        colours.scale = scale;
        colours.minimum = scale == figures::ScaleKind::logarithmic ? 1e-4 : 0.0;
        if (scale == figures::ScaleKind::symmetric_log) colours.minimum = -(colours.maximum = 23);
        const ColourTable& table = colour_table(figures::ColourMap::sequential, false);
        const QRgb none = qRgb(1, 2, 3);
        const QRgb zero = qRgb(4, 5, 6);
        const ColourLookup lookup(colours, table, none, zero);
        for (float value = -30; value<30; value += value> - 1 && value < 1.1F ? 0.0007F : 0.11F) {
            const double at = fraction(colours, double{value}) * (kMapColours - 1);
            const auto near = [&](double shift) {
                const double index = std::clamp(at + shift, 0.0, double{kMapColours - 1});
                return table[static_cast<std::size_t>(std::lround(index))] == lookup(value);
            };
            INFO(value);
            CHECK((near(0) || near(-1) || near(1)));
        }
        CHECK(lookup(std::numeric_limits<float>::quiet_NaN()) == none);
        CHECK(lookup(1e30F) == table.back());
        // Zeros of both signs alone get the color of zeros, if the scale sets them apart.
        CHECK(lookup(0.0F) != zero);
        colours.zero_apart = true;
        const ColourLookup apart(colours, table, none, zero);
        CHECK(apart(0.0F) == zero);
        CHECK(apart(-0.0F) == zero);
        CHECK(apart(std::numeric_limits<float>::min()) == lookup(std::numeric_limits<float>::min()));
    }
}

TEST_CASE("Scores and ranks lose neither diagonal nor sink column at any zoom", "[widgets][map]") {
    ensure_application();
    // Codes of +-1: a token finds itself, and all find the first one, whose code is part of everybody's.
    constexpr std::int64_t kTokens = 1024, kCode = 64, kDepth = 2 * kCode;
    std::vector<float> query, key;
    std::uint32_t random = 1;
    for (std::int64_t i = 0; i < kTokens; ++i) {
        for (std::int64_t c = 0; c < kCode; ++c) {
            random = random * 1664525U + 1013904223U;
            const float code = (random >> 31) != 0 ? 1.0F : -1.0F;
            query.push_back(code);
            key.push_back(code);
        }
        query.insert(query.end(), static_cast<std::size_t>(kCode), 1.0F);
        key.insert(key.end(), static_cast<std::size_t>(kCode), i == 0 ? 1.2F : 0.0F);
    }
    kernels::ScoreRule rule;
    rule.scale = 0.2;  // 12.8 for the token itself, 15 for the first, about 0 +- 1.6 for others
    const auto head = std::make_shared<const maps::HeadMap>(
        query, key, std::vector<float>(static_cast<std::size_t>(kTokens), 16.0F), kDepth, rule);
    TileService service;
    MapPlot plot(&service);
    plot.resize(500, 450);
    MapContent content;
    content.queries = content.keys = kTokens;
    for (const bool logits : {true, false}) {
        figures::ColourScale scale;
        if (logits) {
            scale.map = figures::ColourMap::diverging;
            scale.minimum = -(scale.maximum = 16);
            content.map = service.add(std::make_shared<maps::LogitSource>(head));
        } else {
            content.map = service.add(std::make_shared<maps::RankSource>(head));
        }
        plot.set_content(content);
        plot.set_colours(scale, figures::Pooling::maximum);
        const ColourTable& table = colour_table(scale.map, false);
        // Rank: the first or second of hundreds; in the first rows, of few.
        const double least = logits ? 8.0 : 0.95;
        const auto first = table.begin() + std::lround(fraction(scale, least) * (kMapColours - 1));
        for (std::int64_t size = kTokens; size >= 16; size = size * 2 / 3) {
            plot.show_cells({kTokens - size, kTokens, 0, size});
            for (const bool diagonal : {false, true}) {
                if (diagonal) plot.show_cells({kTokens - size, kTokens, kTokens - size, kTokens});
                plot.replot();
                service.server().wait();
                QApplication::processEvents();
                REQUIRE(plot.complete());
                const QImage image = plot.toPixmap().toImage().convertToFormat(QImage::Format_RGB32);
                const QRect area = plot.axisRect()->rect();
                int without = 0;
                for (int y = area.top() + 1; y < area.bottom(); ++y) {
                    const double query_at = std::floor(plot.yAxis->pixelToCoord(y + 0.5));
                    if (query_at < 40) continue;
                    const double left = diagonal ? plot.xAxis->coordToPixel(query_at) : area.left();
                    const double right = diagonal ? plot.xAxis->coordToPixel(query_at + 1) : area.left();
                    bool found = false;
                    for (int x = std::max(area.left(), static_cast<int>(left) - 3);
                         x <= std::min(area.right(), static_cast<int>(right) + 3); ++x)
                        found = found || std::find(first, table.end(), image.pixel(x, y)) != table.end();
                    if (!found) ++without;
                }
                INFO((logits ? "logits, " : "ranks, ") << size << " cells, " << (diagonal ? "diagonal" : "sink"));
                CHECK(without == 0);
            }
        }
    }
}
