// SPDX-License-Identifier: GPL-3.0-or-later
// All heads: thumbnails of any size, only those in view.
#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QSlider>
#include <QTest>
#include <QWheelEvent>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/desk/head_set_store.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/views/all_heads/all_heads.h"
#include "widgets/views/all_heads/head_wall.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

tests::SyntheticAnalysis of_layers(std::int32_t layers, std::int32_t heads, std::vector<std::int64_t> lengths = {24}) {
    tests::SyntheticAnalysis a;
    a.layers = layers;
    a.heads = heads;
    a.key_value_heads = heads / 2;
    a.lengths = std::move(lengths);
    return a;
}

struct Shown {
    explicit Shown(const tests::SyntheticAnalysis& a = {}, QSize size = {700, 500}) {
        tests::write_synthetic_analysis(folder / "a.headscope.h5", a);
        study = tests::open_study(desk, folder / "a.headscope.h5");
        view.resize(size);
        view.show();
        rest();
    }
    /// Until the wheel is taken to rest and all images are there.
    void rest() {
        tests::settle(desk);
        QTest::qWait(80);
        tests::settle(desk);
    }
    void turn(int notches, const QPoint& place) {
        QWheelEvent event(QPointF(place), view.wall()->viewport()->mapToGlobal(QPointF(place)), {}, {0, 120 * notches},
                          Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
        QApplication::sendEvent(view.wall()->viewport(), &event);
    }
    QString label(const char* name) const { return view.findChild<QLabel*>(QLatin1String(name))->text(); }

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    Study* study = nullptr;
    AllHeads view{&desk, nullptr};
};

QImage drawn(const Shown& shown, std::int64_t row, std::int64_t head) {
    HeadWall& wall = *shown.view.wall();
    wall.verticalScrollBar()->setValue(0);
    return wall.viewport()->grab().toImage().copy(wall.tile(row, head));
}

}  // namespace

TEST_CASE("Places of heads and heads of places agree, with gaps between groups and without", "[all_heads]") {
    for (const std::int64_t group : {1, 2, 5}) {
        const HeadRuler ruler{7, 3, group};
        for (std::int64_t head = 0; head < 20; ++head) {
            CHECK(ruler.at(ruler.begin(head) + 0.01) == head);
            CHECK(ruler.at(ruler.end(head) - 0.01) == head);
        }
        CHECK(ruler.at(-1) == -1);
    }
}

TEST_CASE("Only thumbnails in view are asked for", "[all_heads]") {
    Shown shown(of_layers(40, 2));
    shown.view.wall()->set_size(128);
    shown.rest();
    const auto [first, last] = shown.view.wall()->visible_rows();
    CHECK(first == 0);
    CHECK(last < 6);
    for (std::int64_t row = first; row <= last; ++row) CHECK(shown.view.wall()->exact(row));
    CHECK(shown.view.wall()->key(20).empty());
    shown.view.wall()->verticalScrollBar()->setValue(shown.view.wall()->verticalScrollBar()->maximum());
    shown.rest();
    CHECK(shown.view.wall()->exact(39));
    CHECK(shown.view.wall()->key(20).empty());
    CHECK(shown.view.wall()->key(0).empty());  // let go
}

TEST_CASE("The wheel changes the size and keeps the place under the pointer", "[all_heads]") {
    Shown shown(of_layers(12, 8));
    HeadWall& wall = *shown.view.wall();
    wall.set_size(96);
    shown.rest();
    const QPoint place = wall.tile(3, 4).center();
    shown.turn(2, place);
    CHECK(wall.size() == 128);
    CHECK(wall.tile(3, 4).contains(place));
    CHECK_FALSE(wall.exact(3));  // the smaller images are drawn until the others are there
    shown.rest();
    CHECK(wall.exact(3));
    CHECK(shown.view.findChild<QSlider*>("size")->value() == 10);
    for (int i = 0; i < 40; ++i) shown.turn(1, place);
    CHECK(wall.size() == 256);
    for (int i = 0; i < 40; ++i) shown.turn(-1, place);
    CHECK(wall.size() == 24);
}

TEST_CASE("A click chooses, a double click opens, dragging moves, arrows step", "[all_heads]") {
    Shown shown(of_layers(12, 8), {700, 640});
    HeadWall& wall = *shown.view.wall();
    wall.set_size(128);
    shown.rest();
    wall.horizontalScrollBar()->setValue(0);
    wall.verticalScrollBar()->setValue(0);
    QTest::mouseClick(wall.viewport(), Qt::LeftButton, {}, wall.tile(1, 2).center());
    CHECK(shown.desk.selection().site == 1);
    CHECK(shown.desk.selection().head == 2);
    QSignalSpy wanted(&shown.desk, &Desk::view_wanted);
    const QPoint third = wall.tile(2, 1).center();
    REQUIRE(wall.viewport()->rect().contains(third));
    QTest::mouseDClick(wall.viewport(), Qt::LeftButton, {}, third);
    QTest::mouseRelease(wall.viewport(), Qt::LeftButton, {}, third);
    REQUIRE(wanted.count() == 1);
    CHECK(shown.desk.selection().site == 2);
    shown.rest();
    const QPoint from = wall.tile(2, 3).center();
    QTest::mousePress(wall.viewport(), Qt::LeftButton, {}, from);
    QTest::mouseMove(wall.viewport(), from - QPoint(40, 50));
    QTest::mouseMove(wall.viewport(), from - QPoint(60, 90));
    QTest::mouseRelease(wall.viewport(), Qt::LeftButton, {}, from - QPoint(60, 90));
    CHECK(wall.verticalScrollBar()->value() == 90);
    CHECK(wall.horizontalScrollBar()->value() == 60);
    CHECK(shown.desk.selection().site == 2);
    CHECK(shown.desk.selection().head == 1);
    QTest::keyClick(&wall, Qt::Key_End);
    for (int i = 0; i < 20; ++i) QTest::keyClick(&wall, Qt::Key_Down);
    shown.rest();
    CHECK(shown.desk.selection().site == 11);
    CHECK(shown.desk.selection().head == 7);
    CHECK(wall.viewport()->rect().contains(wall.tile(11, 7)));
    QTest::mouseMove(wall.viewport(), wall.tile(10, 6).center());
    CHECK(shown.label("pointed") == "Layer 10, head 6");
}

TEST_CASE("A shared scale compares heads, a scale of its own shows each", "[all_heads]") {
    Shown shown(of_layers(3, 4));
    const std::string shared = shown.view.wall()->key(0);
    const QImage before = drawn(shown, 0, 0);
    auto* scale = shown.view.findChild<QWidget*>("colour_scale");
    CHECK(scale->accessibleName().startsWith("Shared"));
    shown.view.set_shared(false);
    shown.rest();
    CHECK(shown.view.wall()->key(0) != shared);
    CHECK(scale->accessibleName().startsWith("Per head"));
    shown.view.set_statistic("maximum");
    shown.view.set_shared(true);
    shown.rest();
    CHECK(drawn(shown, 0, 0) != before);
    const auto wish = shown.view.figure();
    REQUIRE(wish);
    CHECK(wish->options.statistic == "maximum");
    shown.study->figure(wish->recipe, wish->options);
    tests::settle(shown.desk);
    CHECK(shown.study->figure(wish->recipe, wish->options));
}

TEST_CASE("A thumbnail is drawn as the file has it, the future as none", "[all_heads]") {
    ensure_application();
    const test::TemporaryFolder folder;
    tests::write_synthetic_analysis(folder / "a.headscope.h5", of_layers(1, 2, {20, 20}));
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
    ThumbnailRequest wish;
    wish.sequences = {0};
    wish.pixels = 40;
    wish.none = qRgb(1, 2, 3);
    for (std::size_t i = 0; i < wish.colours.size(); ++i) wish.colours[i] = qRgb(static_cast<int>(i), 0, 0);
    const auto strip = draw_thumbnails(*file, wish);
    REQUIRE(strip->images.size() == 2);
    const store::Values stored = file->thumbnail("mean", 0, 0);
    const QImage& image = strip->images[1];
    CHECK(image.pixel(39, 0) == wish.none);
    const figures::ColourScale scale = thumbnail_scale("mean", strip->highest[1]);
    for (const int cell : {0, 7, 19}) {
        const double value = stored.data[static_cast<std::size_t>((20 + 19) * 20 + cell)];
        CHECK(image.pixel(2 * cell, 39) ==
              colour_of(wish.colours, fraction(scale, static_cast<float>(value)), wish.none));
    }
    CHECK(highest_of_thumbnails(*file, wish) == Approx(std::max(strip->highest[0], strip->highest[1])));
    wish.sequences = {0, 1};
    CHECK(draw_thumbnails(*file, wish)->highest[1] == Approx((strip->highest[1] +
                                                              [&] {
                                                                  wish.sequences = {1};
                                                                  return draw_thumbnails(*file, wish)->highest[1];
                                                              }()) /
                                                             2)
                                                          .epsilon(0.3));
    CHECK(round_up(0.21) == Approx(0.5));
    CHECK(round_up(0.5) == Approx(0.5));
    CHECK(round_up(3) == 1);
    CHECK(round_up(0) == 1);
}

TEST_CASE("All sequences are averaged where they are alike, else one is shown and named", "[all_heads]") {
    for (const bool alike : {true, false}) {
        Shown shown(of_layers(3, 4, alike ? std::vector<std::int64_t>{24, 24} : std::vector<std::int64_t>{24, 31}));
        const std::string one = shown.view.wall()->key(1);
        Selection selection = shown.desk.selection();
        selection.sequence.reset();
        shown.desk.select(selection);
        shown.rest();
        CHECK(shown.view.wall()->key(1) != one);
        CHECK(shown.label("note") ==
              (alike ? "mean of 2 sequences" : "sequence 0: the sequences differ in length, no mean is shown"));
    }
}

TEST_CASE("A mark set in the wall is everybody's", "[all_heads]") {
    Shown shown(of_layers(3, 4));
    const QImage before = drawn(shown, 0, 0);
    QTest::keyClick(shown.view.wall(), Qt::Key_Space);
    shown.rest();
    CHECK(drawn(shown, 0, 0) != before);
    CHECK(shown.desk.head_sets().of(*shown.study).is_marked({0, 0, 0}));
    QTest::keyClick(shown.view.wall(), Qt::Key_Space);
    shown.rest();
    CHECK(drawn(shown, 0, 0) == before);
}

TEST_CASE("Thumbnails come as their layers do", "[all_heads]") {
    ensure_application();
    const test::TemporaryFolder folder;
    const tests::SyntheticAnalysis a;
    store::AnalysisWriter writer(folder / "a.headscope.h5", tests::synthetic_header(a));
    tests::write_synthetic_layer(writer, a, 0, 0);
    Desk desk;
    Study* study = tests::open_study(desk, writer.partial_path());
    study->set_running();
    AllHeads view(&desk, nullptr);
    view.resize(600, 500);
    view.show();
    const auto rest = [&] {
        tests::settle(desk);
        QTest::qWait(80);
        tests::settle(desk);
    };
    rest();
    CHECK(view.findChild<QLabel*>("note")->text() == "1 of 3 layers so far");
    CHECK(view.wall()->exact(0));
    CHECK(view.wall()->key(1).empty());
    tests::write_synthetic_layer(writer, a, 0, 1);
    study->tell_site_done(0, 1);
    rest();
    CHECK(view.wall()->exact(1));
    CHECK(view.wall()->key(2).empty());
}

TEST_CASE("The wall follows the theme, comes back as it was left, and outlives its study", "[all_heads]") {
    Shown shown(of_layers(6, 4));
    shown.view.wall()->set_size(160);
    shown.view.set_statistic("maximum");
    shown.rest();
    const QJsonObject state = shown.view.state();
    CHECK(state["size"].toInt() == 160);
    AllHeads other(&shown.desk, nullptr);
    other.resize(500, 400);
    other.restore(state);
    other.show();
    shown.rest();
    CHECK(other.state() == state);
    other.restore({{"size", 1e9}, {"statistic", "median"}, {"scale", 3}});
    CHECK(other.state() == state);
    const QImage light = drawn(shown, 0, 0);
    shown.desk.set_dark(true);
    shown.rest();
    CHECK(drawn(shown, 0, 0) != light);
    shown.desk.remove(shown.study->id());
    QTest::mouseMove(shown.view.wall()->viewport(), shown.view.wall()->tile(1, 1).center());
    QTest::mouseClick(shown.view.wall()->viewport(), Qt::LeftButton, {}, shown.view.wall()->tile(1, 1).center());
    shown.turn(1, {200, 200});
    CHECK_FALSE(shown.view.figure());
    shown.rest();
    CHECK_FALSE(shown.view.wall()->isVisible());
}

TEST_CASE("Heads that the overview's filter leaves out stand back, until it is cleared", "[all_heads]") {
    Shown shown(of_layers(3, 4));
    shown.view.set_shared(false);
    shown.rest();
    const auto pixels = [&] {
        std::vector<QImage> all;
        for (std::int64_t row = 0; row < 3; ++row)
            for (std::int64_t head = 0; head < 4; ++head) all.push_back(drawn(shown, row, head).copy(4, 4, 12, 12));
        return all;
    };
    shown.desk.select_head(2, 3);
    shown.rest();
    const auto before = pixels();
    auto* button = shown.view.findChild<QPushButton*>(QStringLiteral("unfilter"));
    REQUIRE(button);
    CHECK_FALSE(button->isVisible());
    shown.desk.set_head_filter(QStringLiteral("layer = 1 and head < 2"));
    shown.rest();
    const auto after = pixels();
    for (std::size_t i = 0; i < 12; ++i) {
        INFO(i);
        CHECK((after[i] == before[i]) == (i == 4 || i == 5));
    }
    CHECK(shown.label("note").contains("2 of 12 heads match"));
    CHECK(button->isVisible());
    // A name that this analysis has not dims nothing.
    shown.desk.set_head_filter(QStringLiteral("charm > 3"));
    shown.rest();
    CHECK(pixels() == before);
    CHECK(shown.label("note").contains("does not apply to this analysis"));
    button->click();
    shown.rest();
    CHECK(shown.desk.head_filter().isEmpty());
    CHECK(pixels() == before);
    CHECK_FALSE(button->isVisible());
}

TEST_CASE("A figure of all heads has the scale and the sequences that are shown", "[all_heads]") {
    Shown shown(of_layers(2, 2, {20, 20}));
    auto selection = shown.desk.selection();
    selection.sequence.reset();
    shown.desk.select(selection);
    shown.view.set_shared(false);
    shown.rest();
    const auto wish = shown.view.figure();
    REQUIRE(wish);
    CHECK(wish->options.all_sequences);
    CHECK(wish->options.scale_per_head);
    CHECK(wish->note.isEmpty());
}
