// SPDX-License-Identifier: GPL-3.0-or-later
// Two sides of a comparison: maps that move together with their signed difference, heads, texts.
#include <QAbstractItemModelTester>
#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QMouseEvent>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <QToolButton>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/compare/changes_table.h"
#include "widgets/compare/heads_page.h"
#include "widgets/compare/link_marks.h"
#include "widgets/compare/maps_page.h"
#include "widgets/compare/text_page.h"
#include "widgets/map_plot.h"
#include "widgets/offscreen.h"
#include "widgets/text/banner.h"
#include "widgets/ticks.h"
#include "widgets/views/compare.h"
#include "widgets/views/overview_grid.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

tests::SyntheticAnalysis analysis(std::uint64_t seed, std::vector<std::int64_t> lengths = {24}) {
    tests::SyntheticAnalysis a;
    a.lengths = std::move(lengths);
    a.record.maps = true;
    a.seed = seed;
    return a;
}

struct Opened {
    explicit Opened(const std::vector<tests::SyntheticAnalysis>& all, const std::string& settings = "{}") {
        for (std::size_t i = 0; i < all.size(); ++i) {
            const auto path = folder / (std::string(1, static_cast<char>('a' + i)) + ".headscope.h5");
            store::AnalysisHeader header = tests::synthetic_header(all[i]);
            if (i > 0) header.settings_json = settings;
            store::AnalysisWriter writer(path, header);
            for (std::size_t s = 0; s < all[i].lengths.size(); ++s) {
                for (std::int32_t layer = 0; layer < all[i].layers; ++layer)
                    tests::write_synthetic_layer(writer, all[i], static_cast<std::int64_t>(s), layer);
                tests::write_synthetic_output(writer, all[i], static_cast<std::int64_t>(s));
            }
            writer.publish();
            studies.push_back(tests::open_study(desk, path));
        }
        desk.select_head(1, 2);
        show();
    }
    void show() {
        view.reset(static_cast<CompareView*>(tests::view_kind("compare").make(&desk, nullptr)));
        view->resize(1100, 640);
        view->show();
        settle();
    }
    void settle() {
        tests::settle(desk);
        tests::settle(desk);
    }
    template <class T>
    T* part(const char* name) const {
        T* found = view->findChild<T*>(QLatin1String(name));
        REQUIRE(found);
        return found;
    }
    QString words(const char* name) const { return part<QLabel>(name)->text(); }
    QString title(const char* name) const { return part<QLabel>(name)->toolTip(); }
    MapPlot& plot(CompareMaps::Which which) const { return *view->maps()->plot(which); }
    template <class Page>
    static QString banner(Page* page) {
        return page->template findChild<Banner*>()->text();
    }
    void mode(const char* name) {
        part<QToolButton>(name)->click();
        settle();
    }
    void choose(const char* box, int index) {
        auto* combo = part<QComboBox>(box);
        combo->setCurrentIndex(index);
        Q_EMIT combo->activated(index);
        settle();
    }
    static void mouse(QWidget& at, QEvent::Type type, QPointF place, Qt::MouseButton button) {
        QMouseEvent event(type, place, at.mapToGlobal(place), type == QEvent::MouseMove ? Qt::NoButton : button,
                          type == QEvent::MouseButtonRelease ? Qt::NoButton : button, Qt::NoModifier);
        QApplication::sendEvent(&at, &event);
    }
    void click(MapPlot& at, double query, double key) {
        const QPointF place(at.xAxis->coordToPixel(key + 0.5), at.yAxis->coordToPixel(query + 0.5));
        mouse(at, QEvent::MouseButtonPress, place, Qt::LeftButton);
        mouse(at, QEvent::MouseButtonRelease, place, Qt::LeftButton);
        settle();
    }
    void point(MapPlot& at, double query, double key) {
        mouse(at, QEvent::MouseMove, {at.xAxis->coordToPixel(key + 0.5), at.yAxis->coordToPixel(query + 0.5)},
              Qt::NoButton);
        settle();
    }
    std::vector<float> weights(std::size_t study, std::int64_t head = 2) {
        const auto map = studies[study]->map(0, 1, head);
        REQUIRE(map);
        return map->values({0, map->queries(), 0, map->keys()});
    }

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    std::vector<Study*> studies;
    std::unique_ptr<CompareView> view;
};

constexpr auto kLeft = CompareMaps::left, kRight = CompareMaps::right, kDifference = CompareMaps::difference;

}  // namespace

TEST_CASE("Two analyses are maps side by side, and what the right one has more", "[view][compare]") {
    Opened opened({analysis(1), analysis(2)});
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

TEST_CASE("Whichever is shown, the right side begins with another analysis", "[view][compare]") {
    Opened opened({analysis(1), analysis(2)});
    for (const Study* shown : opened.desk.studies()) {
        opened.desk.select_study(shown->id());
        const CompareSides sides = RightChoice{}.sides(opened.desk);
        CHECK(sides.left.study == shown);
        CHECK(sides.right.study != shown);
    }
}

TEST_CASE("The maps zoom, pan and point together", "[view][compare]") {
    Opened opened({analysis(1), analysis(2)});
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
    Opened opened({analysis(1, {24}), analysis(2, {31})});
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
    Opened opened({analysis(1)});
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
    // Swapped, the right is what was left.
    opened.part<QToolButton>("compare_swap")->click();
    opened.settle();
    CHECK(opened.desk.selection().head == 3);
    CHECK(opened.title("right_map_title").contains("head 2"));
    opened.mode("compare_heads");
    CHECK(opened.words("compare_note").contains("same analysis"));
    CHECK_FALSE(opened.view->figure());
}

TEST_CASE("All heads of two analyses are compared, and a head leads to its maps", "[view][compare]") {
    Opened opened({analysis(1), analysis(2)}, R"({"switch_off": "0.1,1.0", "switch_off_how": "mean"})");
    opened.mode("compare_heads");
    CompareHeads& page = *opened.view->heads();
    REQUIRE(page.comparison());
    CHECK(page.measure() == "sink");
    const auto& grid = page.grid()->content();
    REQUIRE(grid.rows.size() == 3);
    REQUIRE(grid.cells.values.size() == 12);
    const auto a = opened.studies[0]->heads(0), b = opened.studies[1]->heads(0);
    const auto sink = *a->column("sink");
    for (std::size_t row = 0; row < 12; ++row)
        CHECK(grid.cells.values[row] == b->value(row, sink) - a->value(row, sink));
    CHECK(grid.cells.scale.minimum == -grid.cells.scale.maximum);
    REQUIRE(grid.off.size() == 12);
    CHECK(grid.off[1]);
    CHECK(grid.off[4]);
    CHECK(opened.words("compare_switched").contains("0 · 1 (mean)"));
    CHECK(opened.words("compare_loss").contains("difference <b>0.0000</b>"));
    // The list follows the measure; the head of its first row differs most.
    auto* list = page.list();
    QAbstractItemModelTester tester(list->model(), QAbstractItemModelTester::FailureReportingMode::Fatal);
    std::size_t most = 0;
    for (std::size_t row = 0; row < 12; ++row)
        if (std::abs(grid.cells.values[row]) > std::abs(grid.cells.values[most])) most = row;
    CHECK(static_cast<ChangesModel*>(list->model())->head_row(0) == most);
    list->selectRow(0);
    opened.settle();
    CHECK(opened.desk.selection().site == a->rows[most].site);
    CHECK(opened.desk.selection().head == a->rows[most].head);
    opened.choose("compare_measure", 0);
    CHECK(static_cast<ChangesModel*>(list->model())->head_row(0) == page.comparison().changes->ranking[0]);
    CHECK(page.grid()->content().cells.scale.minimum == 0);
    Q_EMIT page.grid()->opened(2, 1);
    opened.settle();
    CHECK(opened.view->mode() == CompareMode::maps);
    CHECK(opened.title("left_map_title").contains("layer 2 · head 1"));
}

TEST_CASE("Analyses of other shapes say why their heads are not compared; their maps still are", "[view][compare]") {
    tests::SyntheticAnalysis wide = analysis(2);
    wide.heads = 6;
    wide.layers = 2;
    Opened opened({analysis(1), wide});
    CHECK(opened.plot(kDifference).complete());
    opened.mode("compare_heads");
    CHECK(opened.banner(opened.view->heads()).contains("3 layers of up to 4 heads"));
    CHECK_FALSE(opened.view->heads()->comparison());
    // The last layer that the right has stands for one that it lacks.
    opened.mode("compare_maps");
    opened.desk.select_head(2, 3);
    opened.settle();
    CHECK(opened.title("right_map_title").contains("layer 1 · head 3"));
}

TEST_CASE("Of all sequences heads compare means, maps and texts show the first", "[view][compare]") {
    Opened opened({analysis(1, {24, 17}), analysis(2, {24, 17})});
    Selection all = opened.desk.selection();
    all.sequence.reset();
    opened.desk.select(all);
    opened.settle();
    CHECK(opened.banner(opened.view->maps()).contains("sequence 0"));
    opened.mode("compare_text");
    CHECK(opened.banner(opened.view->text()).contains("sequence 0"));
    opened.mode("compare_heads");
    CHECK(opened.banner(opened.view->heads()).contains("Means over sequences"));
    CHECK(opened.words("compare_pointed").contains("±"));
    const auto wish = opened.view->figure();
    REQUIRE(wish);
    CHECK(wish->options.all_sequences);
    // Two sequences of one analysis.
    opened.desk.select([&] {
        Selection one = all;
        one.sequence = 0;
        return one;
    }());
    opened.choose("compare_study", 0);
    opened.choose("compare_sequence", 2);
    opened.mode("compare_maps");
    CHECK(opened.plot(kRight).content().queries == 17);
    CHECK(opened.view->maps()->marks(kLeft)->marked_keys() == 7);
}

TEST_CASE("Texts are coloured by how much more a token is looked at", "[view][compare]") {
    Opened opened({analysis(1, {24}), analysis(2, {31})});
    opened.mode("compare_text");
    auto *left = opened.view->text()->area(false), *right = opened.view->text()->area(true);
    REQUIRE(left->values().size() == 24);
    REQUIRE(right->values().size() == 31);
    const auto a = opened.studies[0]->column_mass(0, 1), b = opened.studies[1]->column_mass(0, 1);
    opened.settle();
    const auto mass = [](Study* study) { return study->column_mass(0, 1).value; };
    REQUIRE(mass(opened.studies[0]));
    const double expected = mass(opened.studies[1])->data[2 * 31 + 5] - mass(opened.studies[0])->data[2 * 24 + 5];
    CHECK(static_cast<double>(left->values()[5]) == Approx(expected).epsilon(1e-5));
    CHECK(right->values()[5] == left->values()[5]);
    CHECK(std::isnan(right->values()[30]));
    CHECK(right->unpaired() == 7);
    CHECK(left->unpaired() == 0);
    CHECK(right->description(30).contains("no partner"));
    Q_EMIT right->clicked(6, Qt::NoModifier);
    opened.settle();
    CHECK(opened.desk.selection().key == 6);
    CHECK(left->outlined() == 6);
    CHECK(right->outlined() == 6);
    const float head = left->values()[5];
    opened.part<QComboBox>("compare_scope")->setCurrentIndex(1);
    opened.settle();
    CHECK(left->values()[5] != head);
}

TEST_CASE("Maps and their difference are of logits where that is chosen", "[view][compare]") {
    Opened opened({analysis(1), analysis(2)});
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
    tests::SyntheticAnalysis plain = analysis(2);
    plain.record.maps = false;
    Opened opened({analysis(1), plain});
    CHECK(opened.plot(kRight).content().map == 0);
    CHECK_FALSE(opened.plot(kRight).content().thumbnail.empty());
    CHECK_FALSE(opened.plot(kDifference).content().thumbnail.empty());
    QSignalSpy wanted(&opened.desk, &Desk::run_wanted);
    opened.view->maps()->findChild<QPushButton*>(QStringLiteral("banner_action"))->click();
    REQUIRE(wanted.count() == 1);
    CHECK(wanted[0][0].value<RunWish>().maps);
    CHECK(wanted[0][0].value<RunWish>().study == opened.studies[1]->id());
    CHECK_FALSE(opened.view->figure());
}

TEST_CASE("What is compared is saved, restored and exported", "[view][compare]") {
    Opened opened({analysis(1), analysis(2), analysis(3)});
    // The one opened last is offered first.
    CHECK(opened.title("right_map_title").contains("Right: c"));
    opened.choose("compare_study", 1);
    CHECK(opened.title("right_map_title").contains("Right: b"));
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
    Opened opened({analysis(1)});
    const tests::SyntheticAnalysis a = analysis(2);
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
        Opened opened({analysis(1), analysis(2)});
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
