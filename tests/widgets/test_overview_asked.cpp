// SPDX-License-Identifier: GPL-3.0-or-later
// Scores of open ask files as columns of the overview.
#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <cmath>
#include <memory>

#include "tests/core/figures/sample_asks.h"
#include "tests/widgets/overview_fixture.h"
#include "tests/widgets/run_fixture.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/views/all_heads/all_heads.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::ShownOverview;

namespace {

/// Four layers of four heads, as the sample ask files have them, and of their fingerprint.
tests::SyntheticAnalysis of_sample_model() {
    tests::SyntheticAnalysis a;
    a.layers = 4;
    return a;
}

int take(ShownOverview& shown, const char* path, const store::AskRecord& record) {
    const int id = shown.desk.asks().take(QLatin1String(path), std::make_shared<const store::AskRecord>(record));
    tests::settle(shown.desk);
    return id;
}

bool has_column(const ShownOverview& shown, const char* name) {
    const bool in_table = shown.view.panel()->model()->column(QLatin1String(name)) >= 0;
    const bool in_box = shown.view.findChild<QComboBox*>("measure")->findData(QLatin1String(name)) >= 0;
    CHECK(in_table == in_box);
    return in_table;
}

/// Mean of the sample's two texts: sample_ask() fills kinds with |sin(0.7 (i + 1))|.
double induction(std::size_t row) {
    return (std::abs(std::sin(0.7 * static_cast<double>(row + 1))) +
            std::abs(std::sin(0.7 * static_cast<double>(row + 17)))) /
           2;
}

}  // namespace

TEST_CASE("The overview has the scores of an ask file of its model as columns", "[overview][ask]") {
    ShownOverview shown(of_sample_model());
    CHECK_FALSE(has_column(shown, "kind_induction"));
    const int id = take(shown, "/made/kinds.ask.h5", test::sample_ask("kinds"));
    REQUIRE(has_column(shown, "kind_induction"));
    const HeadTableModel& model = *shown.view.panel()->model();
    const int column = model.column("kind_induction");
    CHECK(model.title(column) == "Induction (kinds)");
    CHECK(model.number(5, column) == Approx(induction(5)));
    const QString tip = model.headerData(column, Qt::Horizontal, Qt::ToolTipRole).toString();
    CHECK(tip.contains("<tt>kind_induction</tt>"));
    CHECK(tip.contains("Source: /made/kinds.ask.h5"));

    shown.table()->sortByColumn(column, Qt::DescendingOrder);
    const std::vector<std::size_t> rows = shown.view.panel()->shown_rows();
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) CHECK(induction(rows[i]) >= induction(rows[i + 1]));
    CHECK(shown.view.panel()->cut(false).text(TableFormat::csv).find(",kind_induction") != std::string::npos);

    shown.view.set_measure("kind_induction");
    CHECK(shown.label("definition").startsWith("<b>Induction (kinds)</b>"));
    CHECK(shown.label("pointed").contains("Induction (kinds): "));
    const auto figure = shown.view.figure();
    REQUIRE(figure);
    CHECK(figure->recipe == "head-kinds");
    CHECK(figure->paths == QStringList{"/made/kinds.ask.h5"});

    shown.desk.asks().remove(id);
    tests::settle(shown.desk);
    CHECK_FALSE(has_column(shown, "kind_induction"));
    CHECK(shown.view.measure() == "sink");
    CHECK(shown.view.figure()->recipe == "indicators");
    CHECK(shown.view.panel()->shown_rows().size() == 16);
}

TEST_CASE("A filter names columns of ask files, and All heads applies it", "[overview][ask]") {
    ShownOverview shown(of_sample_model());
    AllHeads wall(&shown.desk, nullptr);
    wall.resize(600, 500);
    wall.show();
    const int id = take(shown, "/made/ablate.ask.h5", test::sample_ask("ablate"));
    shown.filter()->setText("ablate_change > -0.7 and layer < 3");
    tests::settle(shown.desk);
    CHECK(shown.view.panel()->filter()->error().isEmpty());
    const std::size_t count = shown.view.panel()->filter()->count();
    CHECK(count == 6);
    const auto note = [&] { return wall.findChild<QLabel*>("note")->text(); };
    CHECK(note().contains(QStringLiteral("%1 of 16 heads match").arg(count)));
    shown.desk.asks().remove(id);
    tests::settle(shown.desk);
    CHECK(shown.view.panel()->filter()->error().startsWith("character 1: expected the name of a column"));
    CHECK(shown.view.panel()->filter()->count() == 16);
    CHECK(note().contains("does not apply to this analysis"));
}

TEST_CASE("Measures of a corpus are columns of the overview, which its views open", "[overview][ask]") {
    ShownOverview shown(of_sample_model());
    const std::unique_ptr<View> page(tests::view_kind("corpus_scatter").make(&shown.desk, nullptr));
    page->resize(900, 600);
    page->show();
    take(shown, "/made/corpus.ask.h5", test::sample_ask("corpus"));
    tests::settle(shown.desk.runs());
    tests::settle(shown.desk);
    CHECK(has_column(shown, "corpus_qk_distance"));
    CHECK(has_column(shown, "corpus_mean_sink"));
    CHECK_FALSE(has_column(shown, "corpus_std_sink"));
    shown.filter()->setText("corpus_qk_distance < 0");
    tests::settle(shown.desk);
    CHECK(shown.view.panel()->filter()->error().isEmpty());
    auto* button = page->findChild<QPushButton*>("ask_overview");
    REQUIRE(button);
    CHECK(button->isVisibleTo(page.get()));
    button->click();
    CHECK(shown.view.measure() == "corpus_induction_score");
}

TEST_CASE("Ask files of other models and tools add no column", "[overview][ask]") {
    ShownOverview shown(of_sample_model());
    store::AskRecord other = test::sample_ask("kinds");
    other.model_sha256 = std::string(64, '1');
    take(shown, "/made/other.ask.h5", other);
    other = test::sample_ask("kinds");
    other.sites.back().heads = 3;
    take(shown, "/made/shape.ask.h5", other);
    take(shown, "/made/lens.ask.h5", test::sample_ask("lens"));
    CHECK_FALSE(has_column(shown, "kind_induction"));
    take(shown, "/made/kinds.ask.h5", test::sample_ask("kinds"));
    take(shown, "/made/again.ask.h5", test::sample_ask("kinds"));
    CHECK(has_column(shown, "kind_induction"));
    CHECK(has_column(shown, "kind_induction_2"));
    CHECK_FALSE(has_column(shown, "kind_induction_3"));
}

TEST_CASE("A view of an ask file colors the overview by its scores", "[overview][ask]") {
    ShownOverview shown(of_sample_model());
    const std::unique_ptr<View> page(tests::view_kind("ablation_heads").make(&shown.desk, nullptr));
    page->resize(900, 600);
    page->show();
    const auto* button = page->findChild<QPushButton*>("ask_overview");
    REQUIRE(button);
    store::AskRecord other = test::sample_ask("ablate");
    other.model_sha256 = std::string(64, '1');
    take(shown, "/made/other.ask.h5", other);
    tests::settle(shown.desk.runs());
    tests::settle(shown.desk);
    CHECK_FALSE(button->isVisibleTo(page.get()));
    take(shown, "/made/zero.ask.h5", test::sample_ask("ablate"));
    take(shown, "/made/mean.ask.h5", test::sample_ask("ablate"));
    tests::settle(shown.desk.runs());
    tests::settle(shown.desk);
    CHECK(button->isVisibleTo(page.get()));
    QSignalSpy wanted(&shown.desk, &Desk::view_wanted);
    page->findChild<QPushButton*>("ask_overview")->click();
    REQUIRE(wanted.count() == 1);
    CHECK(wanted.first().first().toString() == "overview");
    CHECK(shown.view.measure() == "ablate_change_2");
    CHECK(tests::view_kind("lens").make(&shown.desk, page.get())->findChild<QPushButton*>("ask_overview") == nullptr);
}

TEST_CASE("A restored choice of a column waits for its ask file", "[overview][ask]") {
    QJsonObject state;
    {
        ShownOverview before(of_sample_model());
        take(before, "/made/kinds.ask.h5", test::sample_ask("kinds"));
        before.view.set_measure("kind_self");
        before.table()->sortByColumn(before.view.panel()->model()->column("kind_previous"), Qt::DescendingOrder);
        state = before.view.state();
    }
    ShownOverview shown(of_sample_model());
    shown.view.restore(state);
    tests::settle(shown.desk);
    CHECK(shown.view.measure() == "sink");
    take(shown, "/made/kinds.ask.h5", test::sample_ask("kinds"));
    CHECK(shown.view.measure() == "kind_self");
    CHECK(shown.view.panel()->state()["sort"].toString() == "kind_previous");
    CHECK(shown.view.panel()->state()["descending"].toBool());
}
