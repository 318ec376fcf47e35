// SPDX-License-Identifier: GPL-3.0-or-later
// A comparison of all heads, and of texts.
#include <QAbstractItemModelTester>
#include <QTableView>
#include <cmath>

#include "tests/widgets/compare_fixture.h"
#include "widgets/views/compare/changes_table.h"
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

TEST_CASE("All heads of two analyses are compared, and a head leads to its maps", "[view][compare]") {
    Compared opened({compared_analysis(1), compared_analysis(2)},
                    R"({"switch_off": "0.1,1.0", "switch_off_how": "mean"})");
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
    CHECK(opened.words("compare_loss").contains("no change"));
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
    tests::SyntheticAnalysis wide = compared_analysis(2);
    wide.heads = 6;
    wide.layers = 2;
    Compared opened({compared_analysis(1), wide});
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
    Compared opened({compared_analysis(1, {24, 17}), compared_analysis(2, {24, 17})});
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
    Compared opened({compared_analysis(1, {24}), compared_analysis(2, {31})});
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
