// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "widgets/plots/map/cell_image.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

constexpr QRgb kNone = 0xff123456;

figures::HeatMap zeros(std::int64_t rows, std::int64_t columns) {
    figures::HeatMap map;
    map.rows = rows;
    map.columns = columns;
    map.values.assign(static_cast<std::size_t>(rows * columns), 0.0F);
    return map;
}

QImage drawn(const figures::HeatMap& map, QSize pixels, bool exact = false) {
    const CellColours colours{map.colours, colour_table(figures::ColourMap::sequential, false), kNone};
    return heat_map_image(map, colours, pixels, exact);
}

}  // namespace

TEST_CASE("A diagonal one cell wide survives any down-sampling", "[widgets][cells]") {
    const auto& table = colour_table(figures::ColourMap::sequential, false);
    for (const int side : {64, 65, 333, 1024}) {
        auto map = zeros(1024, 1024);
        for (std::int64_t i = 0; i < 1024; ++i) map.values[static_cast<std::size_t>(i * 1024 + i)] = 1.0F;
        const QImage image = drawn(map, {side, side});
        REQUIRE(image.size() == QSize(side, side));
        int missing = 0;
        for (int i = 0; i < side; ++i) missing += image.pixel(i, i) == (table.back() | 0xff000000U) ? 0 : 1;
        CHECK(missing == 0);
        CHECK(image.pixel(side - 1, 0) == (table.front() | 0xff000000U));
    }
}

TEST_CASE("A sink column survives, and the mean of a pooled map is its mean", "[widgets][cells]") {
    auto map = zeros(100, 1000);
    for (std::int64_t r = 0; r < 100; ++r) map.values[static_cast<std::size_t>(r * 1000 + 437)] = 1.0F;
    const auto& table = colour_table(figures::ColourMap::sequential, false);
    const QImage maximum = drawn(map, {50, 50});
    CHECK(maximum.pixel(21, 25) == table.back());
    map.pooling = figures::Pooling::mean;
    const QImage mean = drawn(map, {50, 50});
    CHECK(mean.pixel(21, 25) == table[static_cast<std::size_t>(std::lround(255.0 / 20))]);
}

TEST_CASE("An exact zero differs from a small weight if the scale sets it apart", "[widgets][cells]") {
    auto map = zeros(2, 2);
    map.colours.scale = figures::ScaleKind::logarithmic;
    map.colours.minimum = 1e-4;
    map.values = {0.0F, 1e-6F, std::numeric_limits<float>::quiet_NaN(), 1.0F};
    const auto& table = colour_table(figures::ColourMap::sequential, false);
    CHECK(drawn(map, {2, 2}).pixel(0, 0) == table.front());
    map.colours.zero_apart = true;
    const QRgb zero = 0xff654321;
    const CellColours colours{map.colours, table, kNone, zero};
    const QImage image = heat_map_image(map, colours, {2, 2}, false);
    CHECK(image.pixel(0, 0) == zero);
    CHECK(image.pixel(1, 0) == table.front());
    CHECK(image.pixel(0, 1) == kNone);
    // Under one pixel: a zero only where all are.
    CHECK(heat_map_image(map, colours, {1, 1}, false).pixel(0, 0) == table.back());
    for (const bool dark : {false, true}) {
        const Theme theme = make_theme(dark);
        CHECK(theme.zero != theme.none);
        CHECK(theme.zero.rgb() != colour_table(figures::ColourMap::sequential, theme).front());
    }
}

TEST_CASE("Cells that do not exist are drawn as none, even beside ones that do", "[widgets][cells]") {
    auto map = zeros(8, 8);
    for (auto& value : map.values) value = std::numeric_limits<float>::quiet_NaN();
    map.values[0] = 1.0F;
    const QImage image = drawn(map, {4, 4});
    CHECK(image.pixel(0, 0) != kNone);
    CHECK(image.pixel(3, 3) == kNone);
}

TEST_CASE("Enlarged for a vector file, every cell is a whole number of pixels", "[widgets][cells]") {
    const auto map = zeros(7, 13);
    const QImage image = drawn(map, {1000, 1000}, true);
    CHECK(image.width() % 13 == 0);
    CHECK(image.height() % 7 == 0);
    CHECK(image.width() > 900);
    CHECK(drawn(map, {1000, 1000}).size() == QSize(1000, 1000));
}

TEST_CASE("Tiles of a mosaic stay apart and inside", "[widgets][cells]") {
    figures::Mosaic mosaic;
    mosaic.rows = 3;
    mosaic.columns = 5;
    const QRectF area(10, 20, 500, 300);
    for (std::int64_t r = 0; r < 3; ++r) {
        for (std::int64_t c = 0; c < 5; ++c) {
            const QRectF tile = mosaic_tile(mosaic, area, r, c, 0.1);
            CHECK(area.adjusted(-1e-6, -1e-6, 1e-6, 1e-6).contains(tile));
            if (c > 0) CHECK(tile.left() > mosaic_tile(mosaic, area, r, c - 1, 0.1).right() + 1);
            if (r > 0) CHECK(tile.top() > mosaic_tile(mosaic, area, r - 1, c, 0.1).bottom() + 1);
        }
    }
}
