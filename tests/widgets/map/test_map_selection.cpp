// SPDX-License-Identifier: GPL-3.0-or-later
// The map of one head: it follows the selection and moves it; cells, regions, tokens and zoom by mouse and keyboard.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tests/widgets/desk_fixture.h"
#include "tests/widgets/map/map_fixture.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/plots/map/map_profiles.h"
#include "widgets/views/map/map.h"
#include "widgets/views/map/map_words.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::weights_of, tests::with_maps;
using Opened = tests::OpenedMap;

TEST_CASE("The map follows the selected head, and keeps its zoom", "[view][map]") {
    Opened opened;
    CHECK(opened.words("map_title") == "Layer 1, head 2");
    CHECK(opened.plot().complete());
    CHECK(opened.plot().content().queries == 24);
    const auto first = opened.plot().content().map;
    opened.plot().show_cells({4, 12, 2, 10});
    opened.key(Qt::Key_Right);
    tests::settle(opened.desk);
    tests::settle(opened.desk);
    CHECK(opened.desk.selection().head == 3);
    CHECK(opened.words("map_title") == "Layer 1, head 3");
    CHECK(opened.plot().content().map != first);
    CHECK(opened.plot().shown().q_begin == 4);
    CHECK(opened.plot().shown().k_end == 10);
    // Stepping back finds the map that was there.
    opened.key(Qt::Key_Left);
    tests::settle(opened.desk);
    CHECK(opened.plot().content().map == first);
    opened.key(Qt::Key_Down);
    tests::settle(opened.desk);
    CHECK(opened.desk.selection().site == 2);
}

TEST_CASE("A click chooses the cell's tokens, and the cell is described", "[view][map]") {
    Opened opened;
    opened.click(opened.place(9.5, 3.5));
    tests::settle(opened.desk);
    CHECK(opened.desk.selection().query == 9);
    CHECK(opened.desk.selection().key == 3);
    const QString words = opened.words("map_cell");
    INFO(words.toStdString());
    CHECK(words.contains("Query 9 “"));
    CHECK(words.contains("key 3 “"));
    CHECK(words.contains("weight"));
    CHECK(words.contains("score"));
    // The pointer goes before the choice, and off the map gives way to it.
    opened.mouse(QEvent::MouseMove, opened.place(2.5, 20.5), Qt::NoButton);
    tests::settle(opened.desk);
    CHECK(opened.words("map_cell").contains("does not allow"));
    opened.mouse(QEvent::MouseMove, QPointF(2, 2), Qt::NoButton);
    tests::settle(opened.desk);
    CHECK(opened.words("map_cell") == words);
    opened.view->copy_value();
    const auto weights = weights_of(opened);
    CHECK(QApplication::clipboard()->text().toDouble() == Approx(weights[9 * 24 + 3]).epsilon(1e-5));
}

TEST_CASE("Words take the place of pieces, and the desk goes on counting in pieces", "[view][map][words]") {
    Opened opened;
    MapLook look;
    look.words = true;
    opened.view->set_look(look);
    tests::settle(opened.desk);
    tests::settle(opened.desk);
    // " the" "x" | " light" | " wind" | line feed | "," "ow" | " sea" | " 月" | " of", twice, and three more.
    const auto& content = opened.plot().content();
    REQUIRE(content.queries == 19);
    REQUIRE(content.keys == 19);
    CHECK(content.query_labels.at(0) == "thex");
    CHECK(content.query_labels.at(4) == ",ow");
    opened.click(opened.place(5.5, 4.5));
    tests::settle(opened.desk);
    CHECK(opened.desk.selection().query == 7);
    CHECK(opened.desk.selection().key == 5);
    const QString words = opened.words("map_cell");
    CHECK(words.contains("Query 5 “sea”"));
    CHECK_FALSE(words.contains("logit"));
    opened.desk.select_tokens(9, 6);  // the second piece of its word
    tests::settle(opened.desk);
    CHECK(opened.words("map_cell").contains("key 4 “,ow”"));
    const auto figure = opened.view->figure();
    REQUIRE(figure);
    CHECK(figure->options.units == figures::Units::words);
    CHECK(opened.view->state()["units"] == "words");
    CHECK_FALSE(opened.part<QComboBox>("map_values")->isEnabled());
}

TEST_CASE("The crosshair follows the desk, and what is out of sight is moved to", "[view][map]") {
    Opened opened(with_maps(300));
    opened.plot().show_cells({0, 20, 0, 20});
    opened.desk.select_tokens(200, 150);
    tests::settle(opened.desk);
    const auto shown = opened.plot().shown();
    CHECK(shown.q_begin <= 200);
    CHECK(shown.q_end > 200);
    CHECK(shown.k_begin <= 150);
    CHECK(shown.k_end > 150);
    CHECK(opened.words("map_cell").contains("Query 200"));
}

TEST_CASE("Row and column beside the map are those of the cell", "[view][map]") {
    Opened opened;
    auto* profiles = opened.plot().findChild<MapProfiles*>();
    REQUIRE(profiles);
    REQUIRE(profiles->shown());
    opened.desk.select_tokens(9, 3);
    tests::settle(opened.desk);
    const auto weights = weights_of(opened);
    REQUIRE(profiles->row().values.size() == 24);
    REQUIRE(profiles->column().values.size() == 24);
    CHECK(profiles->row().values[3] == weights[9 * 24 + 3]);
    CHECK(profiles->column().values[9] == Approx(weights[9 * 24 + 3]).epsilon(1e-5));
    CHECK(std::isnan(profiles->row().values[10]));
    // Hidden, the map takes their place; shown again, they are there.
    const int height = opened.plot().area()->height();
    opened.part<QToolButton>("map_profiles")->click();
    tests::settle(opened.desk);
    CHECK_FALSE(profiles->shown());
    CHECK(opened.plot().area()->height() > height);
    opened.part<QToolButton>("map_profiles")->click();
    tests::settle(opened.desk);
    CHECK(opened.plot().area()->height() == height);
}

TEST_CASE("A region is dragged with Shift, its mass summed, and Esc forgets it", "[view][map]") {
    Opened opened;
    opened.drag(opened.place(8.5, 0.5), opened.place(15.5, 4.5), Qt::ShiftModifier);
    REQUIRE(opened.plot().region());
    const maps::Cells region = *opened.plot().region();
    CHECK(region.q_begin == 8);
    CHECK(region.q_end == 16);
    CHECK(region.k_begin == 0);
    CHECK(region.k_end == 5);
    CHECK(opened.plot().shown().queries() == 24);  // nothing was panned
    REQUIRE(Opened::becomes([&] { return opened.words("map_region_words").contains("mass"); }));
    const auto weights = weights_of(opened);
    double mass = 0;
    for (std::size_t q = 8; q < 16; ++q)
        for (std::size_t k = 0; k < 5; ++k) mass += double{weights[q * 24 + k]};
    maps::RegionMass expected;
    expected.mass = mass;
    expected.share = mass / 8;
    expected.queries = 8;
    expected.allowed = expected.cells = 40;
    CHECK(opened.words("map_region_words") == region_words(region, expected));
    opened.view->zoom_to_region();
    CHECK(opened.plot().shown().q_begin == 8);
    CHECK(opened.plot().shown().k_end == 5);
    CHECK_FALSE(opened.plot().region());
    // By the button, without Shift.
    opened.part<QToolButton>("map_region")->click();
    opened.plot().show_all();
    opened.plot().replot();
    opened.drag(opened.place(20.5, 20.5), opened.place(3.5, 1.5));
    REQUIRE(opened.plot().region());
    CHECK(opened.plot().region()->q_begin == 3);
    CHECK(opened.plot().region()->k_end == 21);
    opened.key(Qt::Key_Escape);
    CHECK_FALSE(opened.plot().region());
    CHECK_FALSE(opened.part<QLabel>("map_region_words")->isVisible());
    opened.key(Qt::Key_Escape);
    CHECK_FALSE(opened.plot().region_mode());
}

TEST_CASE("Pairs and regions are chosen by keys as well", "[view][map]") {
    Opened opened;
    const auto press = [&](int key, Qt::KeyboardModifiers held) {
        QTest::keyClick(opened.view.get(), static_cast<Qt::Key>(key), held);
        tests::settle(opened.desk);
    };
    const auto region = [&] {
        const maps::Cells cells = opened.plot().region().value_or(maps::Cells{});
        return std::array{cells.q_begin, cells.q_end, cells.k_begin, cells.k_end};
    };
    press(Qt::Key_Right, Qt::ControlModifier);  // there is no pair to go on from: the middle
    CHECK(opened.desk.selection().query == 12);
    CHECK(opened.desk.selection().key == 12);
    press(Qt::Key_Left, Qt::ControlModifier);
    press(Qt::Key_Down, Qt::ControlModifier);
    CHECK(opened.desk.selection().query == 13);
    CHECK(opened.desk.selection().key == 11);
    constexpr auto kStretch = Qt::ControlModifier | Qt::ShiftModifier;
    press(Qt::Key_Down, kStretch);
    press(Qt::Key_Left, kStretch);
    press(Qt::Key_Left, kStretch);
    REQUIRE(opened.plot().region());
    CHECK(region() == std::array<std::int64_t, 4>{13, 15, 9, 12});
    CHECK(Opened::becomes([&] { return opened.words("map_region_words").contains("mass"); }));
    press(Qt::Key_Right, kStretch);
    CHECK(region() == std::array<std::int64_t, 4>{13, 15, 10, 12});
    for (int i = 0; i < 30; ++i) press(Qt::Key_Up, kStretch);  // to the map's edge
    CHECK(region() == std::array<std::int64_t, 4>{0, 14, 10, 12});
    press(Qt::Key_Escape, {});
    CHECK_FALSE(opened.plot().region());
    press(Qt::Key_R, {});
    REQUIRE(opened.plot().region());
    CHECK(opened.plot().region()->queries() == 24);
    press(Qt::Key_Escape, {});
    opened.plot().show_cells({4, 10, 2, 8});
    press(Qt::Key_R, {});
    const maps::Cells shown = opened.plot().shown();
    CHECK(region() == std::array{shown.q_begin, shown.q_end, shown.k_begin, shown.k_end});
    press(Qt::Key_R, Qt::ShiftModifier);
    CHECK_FALSE(opened.plot().region());
}

TEST_CASE("Before a pair is chosen row and column are those of the last query and the first key", "[view][map]") {
    Opened opened;
    auto* profiles = opened.plot().findChild<MapProfiles*>();
    REQUIRE(profiles);
    REQUIRE(profiles->row().values.size() == 24);
    CHECK(profiles->row().title.contains(QStringLiteral("none is chosen")));
    CHECK(profiles->column().values.size() == 24);
    CHECK(opened.words("map_cell").contains("Point at the map"));
    CHECK_FALSE(opened.desk.selection().query);
    opened.desk.select_tokens(9, 3);
    tests::settle(opened.desk);
    CHECK_FALSE(profiles->row().title.contains(QStringLiteral("none is chosen")));
}

TEST_CASE("A token is jumped to by position and by text, again for the next", "[view][map]") {
    Opened opened;
    auto* field = opened.part<QLineEdit>("map_jump");
    const auto enter = [&](const QString& text) {
        field->setText(text);
        QTest::keyClick(field, Qt::Key_Return);
    };
    enter("17");
    CHECK(opened.desk.selection().query == 17);
    CHECK_FALSE(opened.desk.selection().key);
    // " wind" is token 7 * i mod 10 = 1: 3, 13, 23.
    opened.desk.select_tokens(5, {});
    enter("WIND");
    CHECK(opened.desk.selection().query == 13);
    enter("WIND");
    CHECK(opened.desk.selection().query == 23);
    enter("WIND");
    CHECK(opened.desk.selection().query == 3);
    opened.part<QComboBox>("map_jump_axis")->setCurrentIndex(1);
    enter(" sea");
    CHECK(opened.desk.selection().key == 7);
    CHECK(opened.desk.selection().query == 3);
    QSignalSpy told(&opened.desk, &Desk::told);
    enter("Leviathan");
    CHECK(told.count() == 1);
    CHECK(opened.desk.selection().key == 7);
    enter("\"1\"");  // text, of which there is none
    CHECK(told.count() == 2);
}

TEST_CASE("Keys zoom and pan, within the map", "[view][map]") {
    Opened opened(with_maps(300));
    opened.key(Qt::Key_Plus, Qt::ShiftModifier);
    CHECK(opened.plot().xAxis->range().size() == Approx(150));
    CHECK(opened.plot().yAxis->range().size() == Approx(150));
    const double left = opened.plot().xAxis->range().lower, top = opened.plot().yAxis->range().lower;
    opened.key(Qt::Key_Right, Qt::ShiftModifier);
    opened.key(Qt::Key_Down, Qt::ShiftModifier);
    CHECK(opened.plot().xAxis->range().lower == Approx(left + 37.5));
    CHECK(opened.plot().yAxis->range().lower == Approx(top + 37.5));
    CHECK(opened.desk.selection().head == 2);
    for (int i = 0; i < 10; ++i) opened.key(Qt::Key_Left, Qt::ShiftModifier);
    CHECK(opened.plot().xAxis->range().lower == 0);
    opened.key(Qt::Key_Minus);
    CHECK(opened.plot().shown().keys() == 300);
    opened.key(Qt::Key_Plus);
    opened.key(Qt::Key_0);
    CHECK(opened.plot().shown().queries() == 300);
}
