// SPDX-License-Identifier: GPL-3.0-or-later
// Lines: queries left, keys right.
#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QSlider>
#include <QSpinBox>
#include <QTest>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/views/lines/head_chips.h"
#include "widgets/views/lines/lines_canvas.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

struct Shown {
    explicit Shown(std::int64_t length = 24, bool maps = true) {
        tests::SyntheticAnalysis a;
        a.lengths = {length};
        a.record.maps = maps;
        tests::write_synthetic_analysis(folder / "a.headscope.h5", a);
        study = tests::open_study(desk, folder / "a.headscope.h5");
        view.reset(tests::view_kind("lines").make(&desk, nullptr));
        view->resize(1000, 700);
        view->show();
        settle();
    }
    void settle() {
        tests::settle(desk);
        for (int i = 0; i < 10000 && !canvas().complete(); ++i) QApplication::processEvents();
    }
    LinesCanvas& canvas() { return *view->findChild<LinesCanvas*>("lines"); }
    HeadChip& chip(int head) { return *view->findChild<HeadChip*>(QStringLiteral("head_%1").arg(head)); }
    std::vector<int> heads() {
        std::vector<int> shown;
        for (const auto& head : canvas().content().heads) shown.push_back(head.head);
        return shown;
    }

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    Study* study = nullptr;
    std::unique_ptr<View> view;
};

}  // namespace

TEST_CASE("Lines between words: rows averaged, columns summed", "[lines][words]") {
    Shown s;
    const auto pieces = *s.canvas().content().heads.at(0).weights;
    REQUIRE(pieces.window.queries() == 24);
    auto* units = s.view->findChild<QComboBox*>("lines_units");
    REQUIRE(units);
    units->setCurrentIndex(1);
    s.settle();
    s.settle();
    const auto& content = s.canvas().content();
    REQUIRE(content.queries.size() == 19);
    CHECK(content.queries[4] == ",ow");
    REQUIRE(content.heads.at(0).weights);
    const auto& words = *content.heads.at(0).weights;
    // Word 4 is pieces 5 and 6, word 0 is pieces 0 and 1.
    double sum = 0;
    for (const std::size_t q : {5, 6})
        for (const std::size_t k : {0, 1}) sum += static_cast<double>(pieces.weights[q * 24 + k]);
    CHECK(static_cast<double>(words.weights[4 * 19]) == Approx(sum / 2).epsilon(1e-5));
    s.desk.select_tokens(6, 1);
    s.settle();
    CHECK(s.view->state()["units"] == "words");
    const auto figure = s.view->figure();
    REQUIRE(figure);
    CHECK(figure->options.units == figures::Units::words);
    Q_EMIT s.canvas().clicked(static_cast<int>(LinesCanvas::Side::query), 5);
    CHECK(s.desk.selection().query == 7);
    CHECK(s.desk.selection().key == 0);
}

TEST_CASE("A line is drawn for each weight that is large enough", "[lines]") {
    Shown s;
    const auto count = [&](double least) {
        std::int64_t lines = 0;
        for (std::int64_t query = 0; query < 24; ++query) {
            for (int i = 0; i < 2; ++i) {
                s.study->row(0, 0, 0, query);
                s.settle();
            }
            for (const float weight : s.study->row(0, 0, 0, query)->weights)
                lines += weight >= static_cast<float>(least);
        }
        return lines;
    };
    const double first = s.canvas().content().threshold;
    CHECK(s.canvas().lines_found() == count(first));
    CHECK(s.canvas().lines_drawn() == s.canvas().lines_found());
    auto* slider = s.view->findChild<QSlider*>("threshold");
    QTest::keyClick(slider, Qt::Key_Right);
    QTest::keyClick(slider, Qt::Key_Right);
    s.settle();
    CHECK(s.canvas().content().threshold > first);
    CHECK(s.canvas().lines_found() == count(s.canvas().content().threshold));
}

TEST_CASE("Chips show and hide heads, each in its colour; with Alt only one", "[lines]") {
    Shown s;
    CHECK(s.heads() == std::vector{0});
    QTest::mouseClick(&s.chip(2), Qt::LeftButton);
    QTest::mouseClick(&s.chip(3), Qt::LeftButton);
    s.settle();
    CHECK(s.heads() == std::vector{0, 2, 3});
    CHECK(s.canvas().content().heads[0].colour != s.canvas().content().heads[1].colour);
    CHECK(s.canvas().content().heads[1].colour != s.canvas().content().heads[2].colour);
    QTest::mouseClick(&s.chip(0), Qt::LeftButton);
    s.settle();
    CHECK(s.heads() == std::vector{2, 3});
    QTest::mouseClick(&s.chip(1), Qt::LeftButton, Qt::AltModifier);
    s.settle();
    CHECK(s.heads() == std::vector{1});
    CHECK(s.desk.selection().head == 1);
    QTest::keyClick(&s.chip(2), Qt::Key_Space);
    s.settle();
    CHECK(s.heads() == std::vector{1, 2});
    // The same by keys: on a chip that head, elsewhere the selected one.
    QTest::keyClick(&s.chip(3), Qt::Key_Space, Qt::ShiftModifier);
    s.settle();
    CHECK(s.heads() == std::vector{3});
    QTest::keyClick(&s.chip(0), Qt::Key_Space);
    QTest::keyClick(&s.canvas(), Qt::Key_Space, Qt::ShiftModifier);
    s.settle();
    CHECK(s.heads() == std::vector{3});
}

TEST_CASE("The layer follows the selection, and a head that is shown alone too", "[lines]") {
    Shown s;
    s.desk.select_head(2, 3);
    s.settle();
    CHECK(s.heads() == std::vector{3});
    const auto map = s.study->map(0, 2, 3);
    REQUIRE(map);
    const auto& weights = s.canvas().content().heads[0].weights;
    REQUIRE(weights);
    CHECK(weights->weights[5 * 24 + 2] == map->values({5, 6, 2, 3})[0]);
}

TEST_CASE("A click chooses a query at the left and a key at the right", "[lines]") {
    Shown s;
    using Side = LinesCanvas::Side;
    QTest::mouseClick(s.canvas().viewport(), Qt::LeftButton, {}, s.canvas().label_rect(Side::query, 7).center());
    s.settle();
    CHECK(s.desk.selection().query == 7);
    QTest::mouseClick(s.canvas().viewport(), Qt::LeftButton, {}, s.canvas().label_rect(Side::key, 3).center());
    s.settle();
    CHECK(s.desk.selection().query == 7);
    CHECK(s.desk.selection().key == 3);
    QTest::keyClick(&s.canvas(), Qt::Key_Right, Qt::ControlModifier);
    CHECK(s.desk.selection().query == 8);
}

TEST_CASE("Pointing at a token shows its weights", "[lines]") {
    Shown s;
    const QImage before = s.canvas().grab().toImage();
    const QPoint place = s.canvas().label_rect(LinesCanvas::Side::query, 9).center();
    QTest::mouseMove(s.canvas().viewport(), place);
    QMouseEvent move(QEvent::MouseMove, place, s.canvas().viewport()->mapToGlobal(place), Qt::NoButton, {}, {});
    QApplication::sendEvent(s.canvas().viewport(), &move);
    CHECK(s.canvas().pointed_text().contains("(token 9) looks at"));
    CHECK(s.canvas().grab().toImage() != before);
    QEvent leave(QEvent::Leave);
    QApplication::sendEvent(s.canvas().viewport(), &leave);
    CHECK(s.canvas().pointed_text().isEmpty());
}

TEST_CASE("Of a long text a window is shown that follows the selected token", "[lines]") {
    Shown s(500);
    CHECK(s.canvas().content().window == TokenWindow{0, 50, 0, 50});
    s.desk.select_tokens(300, {});
    s.settle();
    const TokenWindow there = s.canvas().content().window;
    CHECK(there.q_begin <= 300);
    CHECK(there.q_end > 300);
    const auto& weights = *s.canvas().content().heads[0].weights;
    const auto row = static_cast<std::size_t>(300 - there.q_begin);
    double sum = weights.before[row] + weights.behind[row];
    for (std::int64_t k = 0; k < there.keys(); ++k) {
        const float weight = weights.weights[row * 50 + static_cast<std::size_t>(k)];
        if (!std::isnan(weight)) sum += weight;
    }
    CHECK(sum == Approx(1).epsilon(1e-4));
    QSignalSpy changed(s.view.get(), &View::state_changed);
    s.view->findChild<QSpinBox*>("first_token")->setValue(120);
    s.settle();
    CHECK(s.canvas().content().window.q_begin == 120);
    CHECK(changed.count() == 1);  // so that undo and the session know of it
    CHECK(s.view->state()["first"] == 120);
    CHECK(s.desk.selection().query == 300);
}

TEST_CASE("Of very many lines the strongest are kept", "[lines]") {
    WindowWeights all;
    all.window = {0, 10, 0, 10};
    for (int i = 0; i < 100; ++i) all.weights.push_back(static_cast<float>(i) / 100);
    all.before.assign(10, 0);
    all.behind.assign(10, 0);
    std::int64_t found = 0;
    const auto lines = lines_of({&all, nullptr}, 0.1, 20, found);
    CHECK(found == 90);
    REQUIRE(lines.size() == 20);
    CHECK(lines.front().weight == Approx(0.8));
    CHECK(lines.back().weight == Approx(0.99));
}

TEST_CASE("Without maps they are offered, and what was chosen comes back", "[lines]") {
    Shown s(24, false);
    QSignalSpy wanted(&s.desk, &Desk::run_wanted);
    QTest::mouseClick(s.view->findChild<QPushButton*>("notice_action"), Qt::LeftButton);
    REQUIRE(wanted.count() == 1);
    CHECK(wanted[0][0].value<RunRequest>().maps);

    Shown with;
    QTest::mouseClick(&with.chip(2), Qt::LeftButton);
    with.view->findChild<QSlider*>("threshold")->setValue(9);
    with.settle();
    const QJsonObject state = with.view->state();
    Shown other;
    other.view->restore(state);
    other.settle();
    CHECK(other.view->state() == state);
    CHECK(other.heads() == std::vector{0, 2});
    other.view->restore({{"heads", "all"}, {"threshold", "x"}});
    CHECK(other.view->state() == state);
}

TEST_CASE("A figure of lines has the threshold of the view, and says what it has no room for", "[lines]") {
    Shown s(300);
    s.view->findChild<QSlider*>("threshold")->setValue(9);
    auto* size = s.view->findChild<QComboBox*>("window_size");
    size->setCurrentIndex(size->findData(200));
    s.settle();
    auto wish = s.view->figure();
    REQUIRE(wish);
    CHECK(wish->options.least == Approx(0.25));
    CHECK(wish->note.contains("64 tokens"));
    CHECK(wish->options.to_query == *wish->options.from_query + 64);
    size->setCurrentIndex(size->findData(50));
    s.settle();
    wish = s.view->figure();
    REQUIRE(wish);
    CHECK(wish->note.isEmpty());
    CHECK(wish->options.to_key == 50);
}
