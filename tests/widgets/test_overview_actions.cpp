// SPDX-License-Identifier: GPL-3.0-or-later
// What is done with the heads of the overview: copied, saved, switched off, marked, named, exported.
#include <QApplication>
#include <QClipboard>
#include <QJsonArray>
#include <QPlainTextEdit>
#include <QSignalSpy>
#include <QTest>
#include <QThread>
#include <fstream>
#include <sstream>

#include "tests/widgets/overview_fixture.h"
#include "widgets/desk/head_set_store.h"
#include "widgets/views/overview/overview_files.h"
#include "widgets/views/overview/overview_sets.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::ShownOverview;

namespace {

std::string contents(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("Rows are copied and the table is saved as it is shown", "[overview]") {
    ShownOverview shown;
    shown.filter()->setText("layer = 1");
    const int sink = shown.view.panel()->model()->column("sink");
    shown.table()->sortByColumn(sink, Qt::DescendingOrder);
    shown.table()->selectRow(0);
    shown.table()->setFocus();
    QTest::keyClick(shown.table(), Qt::Key_C, Qt::ControlModifier);
    const QStringList lines = QApplication::clipboard()->text().split('\n', Qt::SkipEmptyParts);
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].startsWith("layer\tsite\thead\tkey_value_head\tentropy"));
    CHECK(lines[1].split('\t').size() == lines[0].split('\t').size());
    CHECK(lines[1].startsWith("1\t1\t"));
    CHECK_FALSE(lines[0].contains("virtual_sink"));  // no values: not shown

    QSignalSpy told(&shown.desk, &Desk::told);
    shown.view.panel()->save(shown.folder / "t.csv", TableFormat::csv);
    tests::settle(shown.desk);
    REQUIRE(told.count() == 1);
    const TableCut cut = shown.view.panel()->cut(false);
    CHECK(cut.rows.size() == 4);
    CHECK(contents(shown.folder / "t.csv") == cut.text(TableFormat::csv));
    CHECK(cut.table->value(cut.rows[0], *cut.table->column("sink")) >=
          cut.table->value(cut.rows[1], *cut.table->column("sink")));
    shown.view.panel()->copy(TableFormat::latex, false);
    CHECK(QApplication::clipboard()->text().startsWith("\\begin{tabular}"));
    QSignalSpy failed(&shown.desk, &Desk::failed);
    shown.view.panel()->save(shown.folder / "no such folder/t.csv", TableFormat::csv);
    tests::settle(shown.desk);
    CHECK(failed.count() == 1);
}

TEST_CASE("A table is saved though the window is closed right after", "[overview]") {
    const test::TemporaryFolder folder;
    ensure_application();
    {
        Desk desk;
        QObject view;
        const Mailbox mailbox(&view);
        desk.reader().post(nullptr, [](const Cancellation& stop) {  // values are being read
            while (!stop.requested()) QThread::msleep(1);
        });
        save_text(&desk, mailbox.sender(), folder / "t.csv", [] { return std::string("layer,head\n"); });
    }
    CHECK(contents(folder / "t.csv") == "layer,head\n");
}

TEST_CASE("Heads are collected to be switched off in the next run", "[overview]") {
    ShownOverview shown;
    QSignalSpy wanted(&shown.desk, &Desk::run_wanted);
    shown.view.run_again();
    CHECK(wanted.count() == 0);
    shown.desk.select_head(1, 1);
    tests::settle(shown.desk);
    shown.view.switch_off(true);
    shown.desk.select_head(0, 3);
    tests::settle(shown.desk);
    shown.view.switch_off(false);
    shown.view.switch_off(false);
    CHECK(shown.label("switched") == QStringLiteral("Off in the next run: 0 · 3 (zero), 1 · 1 (mean)"));
    CHECK(shown.view.grid()->content().off[5]);
    shown.desk.select_head(0, 0);
    tests::settle(shown.desk);
    shown.view.switch_off(false);
    shown.view.switch_off(std::nullopt);
    shown.view.run_again();
    REQUIRE(wanted.count() == 1);
    const auto wish = wanted[0][0].value<RunRequest>();
    CHECK(wish.study == shown.study->id());
    REQUIRE(wish.switched_off.size() == 2);
    CHECK(wish.switched_off[0].head == 3);
    CHECK_FALSE(wish.switched_off[0].mean);
    CHECK(wish.switched_off[1].mean);
}

TEST_CASE("Heads are marked by key, shown as such, and selected again", "[overview]") {
    ShownOverview shown;
    QSignalSpy changed(&shown.desk, &Desk::changed);
    shown.desk.select_head(1, 1);
    tests::settle(shown.desk);
    QTest::keyClick(shown.view.grid(), Qt::Key_Space);
    tests::settle(shown.desk);
    CHECK(changed.count() == 2);  // the selection, the mark
    CHECK(shown.view.grid()->content().marked[5]);
    CHECK(shown.label("head_title").startsWith(QStringLiteral("★ Layer 1, head 1")));
    CHECK(shown.view.panel()->model()->headerData(5, Qt::Vertical, Qt::DisplayRole).toString() ==
          QStringLiteral("★ 1 · 1"));
    shown.table()->setFocus();
    shown.view.panel()->select({1, 2});
    tests::settle(shown.desk);
    CHECK(shown.desk.selection().head == 1);
    QTest::keyClick(shown.table(), Qt::Key_Space);
    const workspace::HeadSets sets = shown.desk.head_sets().of(*shown.study);
    CHECK(sets.marked().size() == 3);
    Q_EMIT shown.view.sets()->select_wanted(sets.marked());
    CHECK(shown.view.panel()->selected_rows() == std::vector<std::size_t>{1, 2, 5});
    QTest::keyClick(shown.table(), Qt::Key_Space);
    CHECK(shown.desk.head_sets().of(*shown.study).marked().empty());
}

TEST_CASE("Sets are named and notes written in their place, kept by model, and saved", "[overview]") {
    ShownOverview shown;
    const workspace::HeadKey head{2, 2, 3};
    shown.desk.select_head(2, 3);
    tests::settle(shown.desk);
    auto* text = shown.view.findChild<QPlainTextEdit*>("inline_text");
    CHECK_FALSE(text->isVisible());
    shown.view.sets()->ask_for_set({head});
    REQUIRE(text->isVisible());
    QTest::keyClick(text, Qt::Key_Return);
    CHECK(text->isVisible());  // a set without a name: an error is shown, the question stays
    CHECK_FALSE(shown.label("inline_wrong").isEmpty());
    QTest::keyClicks(text, "odd ones");
    QTest::keyClick(text, Qt::Key_Return);
    CHECK_FALSE(text->isVisible());
    shown.view.sets()->ask_for_note(head);
    QTest::keyClicks(text, "looks at the verb");
    QTest::keyClick(text, Qt::Key_Return, Qt::ControlModifier);
    tests::settle(shown.desk);
    CHECK(shown.label("head_title").endsWith("in odd ones"));
    CHECK(shown.label("head_note") == "looks at the verb");
    // A note that is being written when an analysis of another model is chosen is not that one's.
    tests::SyntheticAnalysis other_model;
    other_model.model_name = "another";
    other_model.model_sha256 = std::string(64, 'b');
    tests::write_synthetic_analysis(shown.folder / "other.headscope.h5", other_model);
    shown.view.sets()->ask_for_note(head);
    Study* of_other = tests::open_study(shown.desk, shown.folder / "other.headscope.h5");
    shown.desk.select_study(of_other->id());
    QTest::keyClicks(text, "!");
    QTest::keyClick(text, Qt::Key_Return, Qt::ControlModifier);
    CHECK(shown.desk.head_sets().of(*of_other).empty());
    shown.desk.remove(of_other->id());
    tests::settle(shown.desk);
    shown.view.sets()->ask_for_note(head);
    QTest::keyClick(text, Qt::Key_Escape);
    CHECK(shown.desk.head_sets().of(*shown.study).note(head) == "looks at the verb");

    QSignalSpy told(&shown.desk, &Desk::told);
    shown.view.sets()->save(shown.folder / "sets.csv");
    tests::settle(shown.desk);
    CHECK(told.count() == 1);
    CHECK(contents(shown.folder / "sets.csv").find("odd ones,looks at the verb") != std::string::npos);

    // They stay when the analysis is closed, and come back with the session.
    const auto all = shown.desk.head_sets().all();
    REQUIRE(all.size() == 1);
    shown.desk.remove(shown.study->id());
    CHECK(shown.desk.head_sets().all() == all);
    HeadSetStore other;
    other.restore(all);
    CHECK(other.all() == all);
}

TEST_CASE("What was chosen comes back, and nonsense is left alone", "[overview]") {
    ShownOverview shown;
    shown.view.set_measure("entropy_row_mean");
    shown.view.set_normalise(figures::Normalise::layer);
    shown.filter()->setText("head < 2");
    shown.table()->sortByColumn(shown.view.panel()->model()->column("sink"), Qt::DescendingOrder);
    const QJsonObject state = shown.view.state();
    // Before the values are there, as when a session opens.
    Overview other(&shown.desk, nullptr);
    other.resize(1000, 600);
    other.restore(state);
    other.show();
    tests::settle(shown.desk);
    CHECK(other.state() == state);
    CHECK(other.measure() == "entropy_row_mean");
    CHECK(other.panel()->shown_rows() == shown.view.panel()->shown_rows());
    const QJsonObject wrong{{"measure", 7},   {"scale", "upside down"}, {"filter", QJsonArray{1}},
                            {"sort", "none"}, {"splitter", "narrow"},   {"columns", 3}};
    other.restore(wrong);
    tests::settle(shown.desk);
    CHECK(other.measure() == "entropy_row_mean");
    CHECK(other.normalise() == figures::Normalise::layer);
    CHECK(other.panel()->filter()->text() == "head < 2");
}

TEST_CASE("The figure to export can be made for every measure", "[overview]") {
    ShownOverview shown;
    const auto columns = shown.study->heads(0)->columns;
    for (const std::string& column : columns) {
        shown.view.set_measure(QString::fromStdString(column));
        const auto wish = shown.view.figure();
        REQUIRE(wish);
        INFO(column);
        CHECK(wish->recipe == "indicators");  // the heat map on the screen, whatever the measure
        CHECK(wish->options.indicator == column);
        shown.study->figure(wish->recipe, wish->options);
        tests::settle(shown.desk);
        const auto figure = shown.study->figure(wish->recipe, wish->options);
        CHECK(figure.failure.toStdString() == "");
        REQUIRE(figure);
        REQUIRE(figure->panels.size() == 1);
        const auto& drawn = std::get<figures::HeatMap>(figure->panels[0].content).values;
        const auto& cells = shown.view.grid()->content().cells.values;
        if (drawn.size() != cells.size()) continue;  // of a layer
        for (std::size_t i = 0; i < cells.size(); ++i) {
            CHECK(std::isnan(drawn[i]) == std::isnan(cells[i]));
            if (!std::isnan(cells[i])) CHECK(drawn[i] == Approx(cells[i]).epsilon(1e-5));
        }
    }
}
