// SPDX-License-Identifier: GPL-3.0-or-later
// Two sides of a comparison as maps that move together with their signed difference; what is saved, what may go.
// Heads and texts: test_compare_pages.cpp; figures: test_compare_figures.cpp.
#include <QJsonObject>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <cmath>

#include "tests/widgets/compare_fixture.h"
#include "widgets/plots/ticks.h"
#include "widgets/views/compare/heads_page.h"
#include "widgets/views/compare/link_marks.h"
#include "widgets/views/compare/text_page.h"
#include "widgets/views/overview/overview_grid.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::Compared, tests::compared_analysis;

namespace {

constexpr auto kLeft = CompareMaps::left, kRight = CompareMaps::right, kDifference = CompareMaps::difference;

}  // namespace

TEST_CASE("Two analyses are maps side by side, and what the right one has more", "[view][compare]") {
    Compared opened({compared_analysis(1), compared_analysis(2)});
    for (const auto which : {kLeft, kRight, kDifference}) {
        CHECK(opened.plot(which).content().queries == 24);
        CHECK(opened.plot(which).content().map != 0);
        CHECK(opened.plot(which).complete());
    }
    const auto a = opened.weights(0), b = opened.weights(1);
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!std::isnan(a[i])) most = std::max(most, std::abs(static_cast<double>(b[i] - a[i])));
    CHECK(opened.view->maps()->reach() == Approx(most).epsilon(1e-5));
    CHECK(opened.banner(opened.view->maps()).isEmpty());
    opened.desk.select_tokens(9, 3);
    opened.settle();
    const QString words = opened.words("compare_cell");
    INFO(words.toStdString());
    CHECK(words.startsWith("Query 9 “"));
    CHECK(words.contains("left "));
    CHECK(words.contains("right "));
    CHECK(words.contains("difference "));
}

TEST_CASE("Whichever is selected, the analysis opened first is the baseline on the left", "[view][compare]") {
    Compared opened({compared_analysis(1), compared_analysis(2)});
    for (const Study* shown : opened.desk.studies()) {
        opened.desk.select_study(shown->id());
        const CompareSides sides = CompareChoice{}.sides(opened.desk);
        CHECK(sides.left.study == opened.studies[0]);
        CHECK(sides.right.study == opened.studies[1]);
        CHECK(sides.selected().study == shown);
        CompareChoice swapped;
        swapped.swapped = true;
        CHECK(swapped.sides(opened.desk).left.study == opened.studies[1]);
        CHECK(swapped.sides(opened.desk).selected().study == shown);
    }
}

TEST_CASE("The maps zoom, pan and point together", "[view][compare]") {
    Compared opened({compared_analysis(1), compared_analysis(2)});
    opened.plot(kRight).show_cells({4, 14, 2, 12});
    opened.settle();
    for (const auto which : {kLeft, kDifference}) {
        CHECK(opened.plot(which).shown().q_begin == 4);
        CHECK(opened.plot(which).shown().k_end == 12);
    }
    opened.plot(kDifference).show_all();
    opened.settle();
    CHECK(opened.plot(kRight).shown().queries() == 24);
    opened.point(opened.plot(kLeft), 12, 5);
    CHECK(opened.view->maps()->marks(kRight)->cursor_query() == 12);
    CHECK(opened.view->maps()->marks(kDifference)->cursor_key() == 5);
    CHECK_FALSE(opened.view->maps()->marks(kLeft)->cursor_key());
    opened.click(opened.plot(kDifference), 15, 7);
    CHECK(opened.desk.selection().query == 15);
    CHECK(opened.desk.selection().key == 7);
    QTest::keyClick(opened.view.get(), Qt::Key_Plus);
    opened.settle();
    CHECK(opened.plot(kRight).shown().queries() < 24);
    QTest::keyClick(opened.view.get(), Qt::Key_0);
    CHECK(opened.plot(kLeft).shown().queries() == 24);
    QTest::keyClick(opened.view.get(), Qt::Key_Right);
    opened.settle();
    CHECK(opened.desk.selection().head == 3);
    CHECK(opened.title("left_map_title").contains("head 3"));
    CHECK(opened.title("right_map_title").contains("head 3"));
}

TEST_CASE("Tokens of two texts are followed to their partners, and those without one are marked", "[view][compare]") {
    Compared opened({compared_analysis(1, {24}), compared_analysis(2, {31})});
    CHECK(opened.plot(kRight).content().queries == 31);
    CHECK(opened.plot(kDifference).content().queries == 24);
    CHECK(opened.view->maps()->marks(kLeft)->marked_queries() == 0);
    CHECK(opened.view->maps()->marks(kRight)->marked_keys() == 7);
    const QString message = opened.banner(opened.view->maps());
    INFO(message.toStdString());
    CHECK(message.contains("7 of 31 on the right"));
    // A pair of the right that the left does not have.
    opened.click(opened.plot(kRight), 30, 29);
    CHECK_FALSE(opened.desk.selection().query);
    CHECK(opened.words("compare_cell").startsWith("No partner on the left"));
    opened.click(opened.plot(kRight), 20, 3);
    CHECK(opened.desk.selection().query == 20);
    CHECK(opened.desk.selection().key == 3);
    // Ends lie on ends.
    opened.plot(kLeft).show_all();
    CHECK(opened.plot(kRight).shown().queries() == 31);
}

TEST_CASE("One analysis alone offers to compare two of its heads", "[view][compare]") {
    Compared opened({compared_analysis(1)});
    CHECK(opened.words("compare_note").contains("same head"));
    opened.part<QPushButton>("compare_next_head")->click();
    opened.settle();
    CHECK(opened.title("right_map_title").contains("layer 1 · head 3"));
    CHECK(opened.plot(kDifference).complete());
    const auto a = opened.weights(0, 2), b = opened.weights(0, 3);
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!std::isnan(a[i])) most = std::max(most, std::abs(static_cast<double>(b[i] - a[i])));
    CHECK(opened.view->maps()->reach() == Approx(most).epsilon(1e-5));
    // Swapped, the right is what was left; the selection stays.
    opened.part<QToolButton>("compare_swap")->click();
    opened.settle();
    CHECK(opened.desk.selection().head == 2);
    CHECK(opened.title("left_map_title").contains("layer 1 · head 3"));
    CHECK(opened.title("right_map_title").contains("head 2"));
    opened.mode("compare_heads");
    CHECK(opened.words("compare_note").contains("same analysis"));
    CHECK_FALSE(opened.view->figure());
}

TEST_CASE("Maps and their difference are of logits where that is chosen", "[view][compare]") {
    Compared opened({compared_analysis(1), compared_analysis(2)});
    const auto weights = opened.plot(kDifference).content().map;
    const double reach = opened.view->maps()->reach();
    opened.choose("compare_values", 1);
    CHECK(opened.plot(kDifference).content().map != weights);
    CHECK(opened.plot(kLeft).content().thumbnail.empty());
    CHECK(opened.view->maps()->reach() > reach);
    CHECK(opened.view->maps()->linear_difference());
    opened.desk.select_tokens(9, 4);
    opened.settle();
    const auto score = [&](std::size_t study) {
        opened.studies[study]->row(0, 1, 2, 9);
        opened.settle();
        return static_cast<double>(opened.studies[study]->row(0, 1, 2, 9)->scores[4]);
    };
    const QString words = opened.words("compare_cell");
    CHECK(words.contains(number_label(QString::number(score(0), 'g', 4).toDouble())));
    CHECK(words.contains("difference"));
    const auto wish = opened.view->figure();
    REQUIRE(wish);
    CHECK(wish->options.values == figures::MapValues::logits);
    CHECK(wish->options.scale == figures::CellScale::linear);
    const QJsonObject state = opened.view->state();
    opened.show();
    opened.view->restore(state);
    opened.settle();
    CHECK(opened.view->maps()->look().logits());
    CHECK(opened.view->state() == state);
}

TEST_CASE("Without recorded maps thumbnails stand for them, and a run with maps is offered", "[view][compare]") {
    tests::SyntheticAnalysis plain = compared_analysis(2);
    plain.record.maps = false;
    Compared opened({compared_analysis(1), plain});
    CHECK(opened.plot(kRight).content().map == 0);
    CHECK_FALSE(opened.plot(kRight).content().thumbnail.empty());
    CHECK_FALSE(opened.plot(kDifference).content().thumbnail.empty());
    QSignalSpy wanted(&opened.desk, &Desk::run_wanted);
    opened.view->maps()->findChild<QPushButton*>(QStringLiteral("banner_action"))->click();
    REQUIRE(wanted.count() == 1);
    CHECK(wanted[0][0].value<RunRequest>().maps);
    CHECK(wanted[0][0].value<RunRequest>().study == opened.studies[1]->id());
    CHECK_FALSE(opened.view->figure());
}

TEST_CASE("What is compared is saved, restored and exported", "[view][compare]") {
    Compared opened({compared_analysis(1), compared_analysis(2), compared_analysis(3)});
    // The one opened last is offered first.
    CHECK(opened.title("right_map_title").contains("Compared: synthetic (c)"));
    opened.choose("compare_study", 1);
    CHECK(opened.title("right_map_title").contains("Compared: synthetic (b)"));
    opened.plot(kLeft).show_cells({4, 14, 2, 12});
    opened.settle();
    auto wish = opened.view->figure();
    REQUIRE(wish);
    CHECK(wish->recipe == "difference");
    CHECK(wish->studies == std::vector<int>{opened.studies[0]->id(), opened.studies[1]->id()});
    CHECK(wish->options.layer == 1);
    CHECK(wish->options.head == 2);
    CHECK(wish->options.from_query == 4);
    CHECK(wish->options.to_key == 12);
    opened.choose("compare_head", 2);
    CHECK(opened.title("right_map_title").contains("head 1"));
    wish = opened.view->figure();
    REQUIRE(wish);
    CHECK(wish->options.other_head == 1);
    opened.mode("compare_heads");
    wish = opened.view->figure();
    REQUIRE(wish);
    CHECK(wish->options.indicator == "sink");
    const QJsonObject state = opened.view->state();
    opened.show();
    opened.view->restore(state);
    opened.settle();
    CHECK(opened.view->state() == state);
    CHECK(opened.view->mode() == CompareMode::heads);
    CHECK(opened.view->choice().study == opened.studies[1]->id());
    opened.mode("compare_maps");
    CHECK(opened.plot(kRight).shown().q_begin == 4);
    opened.view->restore(QJsonObject{{"mode", 3}, {"site", "x"}, {"maps", 1}});
    opened.settle();
    CHECK_FALSE(opened.view->choice().site);
}

TEST_CASE("A comparison fills in while the right analysis runs", "[view][compare]") {
    Compared opened({compared_analysis(1)});
    const tests::SyntheticAnalysis a = compared_analysis(2);
    store::AnalysisWriter writer(opened.folder / "run.headscope.h5", tests::synthetic_header(a));
    tests::write_synthetic_layer(writer, a, 0, 0);
    Study* study = tests::open_study(opened.desk, writer.partial_path());
    study->set_running();
    opened.settle();
    CHECK(opened.banner(opened.view->maps()).contains("layer 1 is not computed yet"));
    CHECK(opened.plot(kDifference).content().map == 0);
    opened.mode("compare_heads");
    CHECK(opened.banner(opened.view->heads()).contains("1 of 3 layers"));
    CHECK_FALSE(opened.view->heads()->grid()->content().rows[1].done);
    tests::write_synthetic_layer(writer, a, 0, 1);
    study->tell_site_done(0, 1);
    opened.settle();
    CHECK(opened.banner(opened.view->heads()).contains("2 of 3 layers"));
    CHECK(opened.view->heads()->grid()->content().rows[1].done);
    CHECK(std::isfinite(opened.view->heads()->grid()->content().cells.values[4]));
    opened.mode("compare_maps");
    CHECK(opened.plot(kDifference).content().map != 0);
    CHECK(opened.plot(kDifference).complete());
}

TEST_CASE("An analysis may be closed while it is compared", "[view][compare]") {
    for (const char* mode : {"compare_maps", "compare_heads", "compare_text"}) {
        Compared opened({compared_analysis(1), compared_analysis(2)});
        opened.mode(mode);
        opened.desk.remove(opened.studies[1]->id());
        opened.view->text()->area(false)->description(3);
        opened.settle();
        CHECK(opened.words("compare_note").contains("same"));
        opened.desk.remove(opened.studies[0]->id());
        opened.settle();
        CHECK(opened.desk.studies().empty());
    }
}
