// SPDX-License-Identifier: GPL-3.0-or-later
// The map of one head: it follows the selection and moves it, shows the values of its cells, and names what is missing.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QElapsedTimer>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMouseEvent>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "core/store/analysis/analysis_writer.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_recurrent.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/plots/map/map_profiles.h"
#include "widgets/theme.h"
#include "widgets/views/map/map.h"
#include "widgets/views/map/map_words.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

tests::SyntheticAnalysis with_maps(std::int64_t length = 24) {
    tests::SyntheticAnalysis a;
    a.lengths = {length};
    a.record.maps = true;
    return a;
}

struct Opened {
    explicit Opened(const tests::SyntheticAnalysis& a = with_maps()) {
        tests::write_synthetic_analysis(folder / "a.headscope.h5", a);
        study = tests::open_study(desk, folder / "a.headscope.h5");
        desk.select_head(1, 2);
        view.reset(static_cast<MapView*>(tests::view_kind("map").make(&desk, nullptr)));
        view->resize(900, 650);
        view->show();
        tests::settle(desk);
        tests::settle(desk);
    }
    MapPlot& plot() const { return *view->plot(); }
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

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    Study* study = nullptr;
    std::unique_ptr<MapView> view;
};

/// The weights of the head that is shown.
std::vector<float> weights_of(Opened& opened) {
    const Selection& at = opened.desk.selection();
    const auto map = opened.study->map(0, at.site, at.head);
    REQUIRE(map);
    return map->values({0, map->queries(), 0, map->keys()});
}

}  // namespace

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

TEST_CASE("A pair's texts have coloured edges, and their means are shown", "[view][map]") {
    ensure_application();
    test::TemporaryFolder folder;
    auto a = with_maps();
    auto header = tests::synthetic_header(a);
    auto& tokens = header.sequences.at(0);
    tokens.regions.assign(24, 1);
    std::fill(tokens.regions.begin() + 10, tokens.regions.end(), 2);
    tokens.regions[0] = tokens.regions[23] = 0;
    tokens.types.assign(24, 0);
    {
        store::AnalysisWriter writer(folder / "pair.headscope.h5", header);
        const std::vector<double> means(static_cast<std::size_t>(header.sites.at(1).heads) * 9, 0.25);
        writer.write_region_means(0, 1, means);
        for (std::int32_t layer = 0; layer < a.layers; ++layer) tests::write_synthetic_layer(writer, a, 0, layer);
        tests::write_synthetic_output(writer, a, 0);
        writer.publish();
    }
    Desk desk;
    tests::open_study(desk, folder / "pair.headscope.h5");
    desk.select_head(1, 2);
    MapView view(&desk, nullptr);
    view.resize(900, 650);
    view.show();
    for (int i = 0; i < 3; ++i) tests::settle(desk);
    CHECK(view.plot()->content().query_regions == tokens.regions);
    CHECK(view.findChild<QLabel*>("map_notice")->text().contains("A→B 0.25"));
    const Theme theme = desk.theme();
    const QImage image = view.plot()->grab().toImage();
    const auto shows = [&](const QColor& colour) {
        for (int y = 0; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x)
                if (image.pixelColor(x, y) == colour) return true;
        return false;
    };
    CHECK(shows(region_colour(1, theme)));
    CHECK(shows(region_colour(2, theme)));
}

TEST_CASE("Below the keys of NAtS-L are the types of their chunks", "[view][map]") {
    ensure_application();
    test::TemporaryFolder folder;
    tests::write_recurrent_analysis(folder / "types.headscope.h5");
    Desk desk;
    tests::open_study(desk, folder / "types.headscope.h5");
    desk.select_head(tests::kSoftmaxBranch, 1);
    MapView view(&desk, nullptr);
    view.resize(900, 650);
    view.show();
    for (int i = 0; i < 3; ++i) tests::settle(desk);
    // The second linear head's first two chunks of 8 tokens are softmax.
    std::vector<std::int32_t> wanted(24, 0);
    std::fill(wanted.begin() + 16, wanted.end(), 1);
    CHECK(view.plot()->content().key_types == wanted);
    CHECK(view.findChild<QLabel*>("map_notice")->text().contains("S softmax, L linear"));
    const QImage image = view.plot()->grab().toImage();
    const auto shows = [&](const QColor& colour) {
        for (int y = 0; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x)
                if (image.pixelColor(x, y) == colour) return true;
        return false;
    };
    CHECK(shows(type_colour(0, desk.theme())));
    CHECK(shows(type_colour(1, desk.theme())));
    desk.select_head(tests::kSoftmaxSite, 0);
    for (int i = 0; i < 3; ++i) tests::settle(desk);
    CHECK(view.plot()->content().key_types.empty());
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

TEST_CASE("Every choice of values, scale and pooling draws a complete map", "[view][map]") {
    Opened opened(with_maps(300));
    std::vector<std::uint64_t> maps;
    QImage before;
    for (const auto values : {MapLook::Values::weights, MapLook::Values::logits}) {
        for (const auto scale : {figures::CellScale::by_length, figures::CellScale::linear,
                                 figures::CellScale::square_root, figures::CellScale::row_rank}) {
            for (const auto pooling : {figures::Pooling::maximum, figures::Pooling::mean}) {
                opened.view->set_look({values, scale, pooling});
                tests::settle(opened.desk);
                tests::settle(opened.desk);
                INFO(static_cast<int>(values) << static_cast<int>(scale) << static_cast<int>(pooling));
                CHECK(opened.plot().complete());
                if (pooling == figures::Pooling::maximum) maps.push_back(opened.plot().content().map);
                const QImage image = opened.view->grab().toImage();
                CHECK(image != before);
                before = image;
            }
        }
    }
    // Scales share tiles; ranks of weights and of logits are the same.
    CHECK(maps[0] == maps[1]);
    CHECK(maps[4] == maps[5]);
    CHECK(maps[0] != maps[4]);
    CHECK(maps[3] == maps[7]);
}

TEST_CASE("Without maps the thumbnail is shown, and a run with maps is offered", "[view][map]") {
    Opened opened(tests::SyntheticAnalysis{});
    CHECK(opened.words("map_notice").contains("No maps were recorded"));
    CHECK(opened.plot().content().map == 0);
    CHECK(opened.plot().content().thumbnail_rows == 24);
    CHECK(std::isnan(opened.plot().content().thumbnail[1]));
    int asked = 0;
    QObject::connect(&opened.desk, &Desk::run_wanted, [&](const RunRequest& wish) {
        ++asked;
        CHECK(wish.maps);
        CHECK(wish.study == opened.study->id());
    });
    opened.part<QPushButton>("map_run_again")->click();
    CHECK(asked == 1);
    const auto figure = opened.view->figure();
    REQUIRE(figure);
    CHECK(figure->recipe == "thumbnails");
}

TEST_CASE("The thumbnail of a sequence that is shorter than others is its own part of it", "[view][map]") {
    tests::SyntheticAnalysis a;
    a.lengths = {40, 24};
    Opened opened(a);
    Selection selection = opened.desk.selection();
    selection.sequence = 1;
    opened.desk.select(selection);
    tests::settle(opened.desk);
    const MapContent& content = opened.plot().content();
    CHECK(content.queries == 24);
    REQUIRE(content.thumbnail_rows == 24);
    REQUIRE(content.thumbnail_columns == 24);
    for (std::size_t q = 0; q < 24; ++q)
        for (std::size_t k = 0; k < 24; ++k) CHECK(std::isnan(content.thumbnail[q * 24 + k]) == (k > q));
}

TEST_CASE("All sequences are one map, their mean, with the deviation at a cell", "[view][map]") {
    auto a = with_maps();
    a.lengths = {24, 30};
    Opened opened(a);
    CHECK(opened.words("map_title") == "Layer 1, head 2, sequence 0");
    const auto weight = [&](std::int64_t sequence) {
        REQUIRE(Opened::becomes([&] { return opened.study->map(sequence, 1, 2).value != nullptr; }));
        return double{opened.study->map(sequence, 1, 2)->values({20, 21, 3, 4}).front()};
    };
    const double first = weight(0), second = weight(1);
    Selection selection = opened.desk.selection();
    selection.sequence.reset();
    selection.query = 20;
    selection.key = 3;
    opened.desk.select(selection);
    REQUIRE(Opened::becomes([&] { return opened.words("map_title") == "Layer 1, head 2, mean over 2 sequences"; }));
    CHECK(opened.words("map_notice").contains("24 to 30 tokens"));
    CHECK(opened.plot().content().queries == 30);
    CHECK(opened.plot().content().query_labels.empty());
    REQUIRE(Opened::becomes([&] { return opened.words("map_cell").contains("2 of 2 sequences"); }));
    const maps::PairReading expected{static_cast<float>((first + second) / 2), 0,
                                     static_cast<float>(std::abs(first - second) / std::sqrt(2)), 0, 2};
    const QString weight_words = opened.words("map_cell").section(QStringLiteral("weight "), 1).section(' ', 0, 2);
    const QStringList parts = weight_words.split(QStringLiteral(" ± "));
    REQUIRE(parts.size() == 2);
    CHECK(parts[0].toDouble() == Approx(double{expected.weight}).epsilon(1e-3));
    CHECK(parts[1].toDouble() == Approx(double{expected.weight_deviation}).epsilon(0.1));
    CHECK(opened.view->jump("7", true));
    CHECK_FALSE(opened.view->jump("the", true));
    const auto figure = opened.view->figure();
    REQUIRE(figure);
    CHECK(figure->options.all_sequences);
    CHECK_FALSE(figure->options.sequence);
    selection.query = 27;
    opened.desk.select(selection);
    CHECK(Opened::becomes([&] { return opened.words("map_cell").contains("1 of 2 sequences"); }));
    selection.sequence = 1;
    opened.desk.select(selection);
    REQUIRE(Opened::becomes([&] { return opened.words("map_title") == "Layer 1, head 2, sequence 1"; }));
    CHECK_FALSE(opened.part<QLabel>("map_notice")->isVisible());
    CHECK(opened.plot().content().queries == 30);
    CHECK(opened.plot().shown().queries() == 30);
}

TEST_CASE("Without maps all sequences show the thumbnail of one, with a note", "[view][map]") {
    tests::SyntheticAnalysis a;
    a.lengths = {24, 24};
    Opened opened(a);
    Selection selection = opened.desk.selection();
    selection.sequence.reset();
    opened.desk.select(selection);
    tests::settle(opened.desk);
    CHECK(opened.words("map_title") == "Layer 1, head 2, sequence 0");
    CHECK(opened.words("map_notice").contains("one sequence"));
}

TEST_CASE("An encoder's map has no future to hide", "[view][map]") {
    auto a = with_maps();
    a.causal = false;
    Opened opened(a);
    CHECK_FALSE(std::isnan(opened.plot().content().thumbnail[1]));
    opened.desk.select_tokens(2, 20);
    tests::settle(opened.desk);
    CHECK(opened.words("map_cell").contains("weight"));
}

TEST_CASE("What is shown is a figure, a state, and restored from it", "[view][map]") {
    Opened opened;
    auto figure = opened.view->figure();
    REQUIRE(figure);
    CHECK(figure->recipe == "attention");
    CHECK(figure->options.layer == 1);
    CHECK(figure->options.head == 2);
    CHECK_FALSE(figure->options.from_query);
    opened.view->set_look({MapLook::Values::weights, figures::CellScale::row_rank, figures::Pooling::mean});
    opened.view->set_profiles(false);
    opened.desk.select_tokens(20, 20);  // beside what is shown then
    tests::settle(opened.desk);
    opened.plot().show_cells({4, 12, 2, 10});
    figure = opened.view->figure();
    REQUIRE(figure);
    CHECK(figure->options.scale == figures::CellScale::row_rank);
    CHECK(figure->options.from_query == 4);
    CHECK(figure->options.to_key == 10);
    CHECK(figure->options.pooling == figures::Pooling::mean);
    CHECK(figure->options.values == figures::MapValues::weights);
    const QJsonObject state = opened.view->state();
    opened.view->set_look({MapLook::Values::logits, figures::CellScale::linear, figures::Pooling::mean});
    CHECK(opened.view->figure()->options.values == figures::MapValues::logits);
    opened.view->restore(state);
    tests::settle(opened.desk);

    MapView other(&opened.desk, nullptr);
    other.resize(900, 650);
    other.restore(state);
    CHECK(other.state() == state);
    other.show();
    tests::settle(opened.desk);
    tests::settle(opened.desk);
    CHECK(other.state() == state);
    CHECK(other.plot()->shown().q_begin == 4);
    CHECK(other.plot()->shown().k_end == 10);
    // A wrong state is ignored.
    QJsonObject odd;
    odd["scale"] = "no such scale";
    odd["cells"] = QJsonArray{-1, 4, 9};
    odd["profiles"] = 3;
    other.restore(odd);
    CHECK(other.look() == opened.view->look());
}

TEST_CASE("What is shown is copied as a table, up to a limit", "[view][map]") {
    Opened opened;
    opened.plot().show_cells({4, 8, 2, 6});
    QSignalSpy told(&opened.desk, &Desk::told);
    opened.view->copy_shown();
    REQUIRE(Opened::becomes([&] { return told.count() == 1; }));
    const QStringList lines = QApplication::clipboard()->text().split("\r\n", Qt::SkipEmptyParts);
    CHECK(lines.front() == "query,key,query_token,key_token,weight,logit");
    CHECK(lines.size() == 1 + 16 - 1);  // key 5 lies in the future of query 4
    CHECK(lines[1].startsWith("4,2,"));
    CHECK(lines[1].split(',')[4].toDouble() == Approx(weights_of(opened)[4 * 24 + 2]).epsilon(1e-5));
    QContextMenuEvent event(QContextMenuEvent::Keyboard, QPoint(50, 50), opened.view->mapToGlobal(QPoint(50, 50)));
    QApplication::sendEvent(opened.view.get(), &event);
    auto* menu = opened.view->findChild<QMenu*>("map_menu");
    REQUIRE(menu);
    CHECK(menu->actions().size() >= 5);
    menu->close();
}

TEST_CASE("A map that goes while its values are read takes nothing with it", "[view][map]") {
    Opened opened(with_maps(300));
    for (int i = 0; i < 20; ++i) {
        opened.desk.select_head(i % 3, i % 4);
        opened.desk.select_tokens(i * 10, i * 3);
        QApplication::processEvents();
    }
    opened.desk.remove(opened.study->id());
    tests::settle(opened.desk);
    CHECK_FALSE(opened.view->figure());
    CHECK(opened.part<QLabel>("map_cell") != nullptr);
    opened.view.reset();
    tests::settle(opened.desk);
}

TEST_CASE("Blocks of a thumbnail that lie in the future are none", "[view][map]") {
    std::vector<float> thumbnail(9, 0.0F);
    hide_future(thumbnail, 3, 3, 8, 8);
    // Block rows begin at 0, 3, 6.
    for (std::size_t i = 0; i < 9; ++i) CHECK(std::isnan(thumbnail[i]) == (i % 3 > i / 3));
}

TEST_CASE("The map shows norms and rollout, or weights and why", "[map][rollout]") {
    auto made = with_maps();
    made.record.norms = GENERATE(false, true);
    Opened opened(made);
    const auto show = [&](MapLook::Values values) {
        opened.view->set_look({values, figures::CellScale::linear, figures::Pooling::maximum});
        for (int i = 0; i < 3; ++i) tests::settle(opened.desk);  // the map, the cell, its description
    };
    show(MapLook::Values::rollout);
    CHECK(opened.words("map_title") == "Layer 1, all heads");
    auto figure = opened.view->figure();
    REQUIRE(figure);
    CHECK(figure->options.values == figures::MapValues::rollout);
    CHECK_FALSE(figure->options.head);
    opened.desk.select_tokens(10, 3);
    tests::settle(opened.desk);
    CHECK(opened.words("map_cell").contains("rollout"));
    const QJsonObject state = opened.view->state();
    MapLook look;
    look.restore(state);
    CHECK(look.values == MapLook::Values::rollout);
    show(MapLook::Values::norms);
    auto* again = opened.part<QPushButton>("map_run_again");
    CHECK(again->isHidden() == made.record.norms);
    figure = opened.view->figure();
    REQUIRE(figure);
    if (made.record.norms) {
        CHECK(opened.words("map_cell").contains("norm"));
        CHECK(figure->options.values == figures::MapValues::norms);
        CHECK(figure->options.head == 2);
        show(MapLook::Values::layer_norms);
        CHECK(opened.words("map_title") == "Layer 1, all heads");
    } else {
        CHECK(opened.words("map_notice").contains("not recorded"));
        CHECK(figure->options.values == figures::MapValues::weights);
    }
}
