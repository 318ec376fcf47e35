// SPDX-License-Identifier: GPL-3.0-or-later
// The overview: heat map, table and filter follow the selection and what is there.
#include <QCompleter>
#include <QHeaderView>
#include <QSignalSpy>
#include <QTest>

#include "core/base/io/output_file.h"
#include "tests/widgets/overview_fixture.h"
#include "widgets/views/overview/overview_sets.h"
#include "widgets/views/overview/overview_words.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::ShownOverview;

TEST_CASE("A click, arrows and the table move the one selection", "[overview]") {
    ShownOverview shown;
    QTest::mouseClick(shown.view.grid(), Qt::LeftButton, {}, shown.cell(1, 2));
    CHECK(shown.desk.selection().site == 1);
    CHECK(shown.desk.selection().head == 2);
    tests::settle(shown.desk);
    CHECK(shown.current() == 6);
    QTest::keyClick(shown.view.grid(), Qt::Key_Right);
    QTest::keyClick(shown.view.grid(), Qt::Key_Down);
    QTest::keyClick(shown.view.grid(), Qt::Key_Home);
    tests::settle(shown.desk);
    CHECK(shown.desk.selection().site == 2);
    CHECK(shown.desk.selection().head == 0);
    CHECK(shown.current() == 8);
    shown.table()->horizontalHeader();
    const QRect row = shown.table()->visualRect(shown.table()->model()->index(3, HeadTableModel::kMeasures));
    QTest::mouseClick(shown.table()->viewport(), Qt::LeftButton, {}, row.center());
    CHECK(shown.desk.selection().site == 0);
    CHECK(shown.desk.selection().head == 3);
    tests::settle(shown.desk);
    CHECK(shown.label("head_title").startsWith("Layer 0, head 3"));
    CHECK(shown.label("head_title").contains("heads 2 and 3 share their keys"));
    CHECK_FALSE(shown.label("head_words").isEmpty());
}

TEST_CASE("A double click or Enter opens the map of the head", "[overview]") {
    ShownOverview shown;
    QSignalSpy wanted(&shown.desk, &Desk::view_wanted);
    QTest::mouseDClick(shown.view.grid(), Qt::LeftButton, {}, shown.cell(2, 1));
    REQUIRE(wanted.count() == 1);
    CHECK(wanted[0][0].toString() == "map");
    CHECK(shown.desk.selection().site == 2);
    tests::settle(shown.desk);
    QTest::keyClick(shown.view.grid(), Qt::Key_Return);
    CHECK(wanted.count() == 2);
}

TEST_CASE("The head under the pointer is shown with its value", "[overview]") {
    ShownOverview shown;
    QTest::mouseMove(shown.view.grid(), shown.cell(0, 0));
    QTest::mouseMove(shown.view.grid(), shown.cell(1, 3));
    const auto heads = shown.study->heads(0);
    const double sink = heads->value(7, *heads->column("sink"));
    CHECK(shown.label("pointed") ==
          QStringLiteral("Layer 1, head 3 · Sink: %1").arg(shown.view.grid()->content().cells.format.text(sink)));
}

TEST_CASE("A filter hides rows, dims cells and counts heads", "[overview]") {
    ShownOverview shown;
    const QColor before = shown.view.grid()->colour(0, 1);
    QTest::keyClicks(shown.filter(), "layer >= 1 and head = 2");
    CHECK(shown.view.panel()->filter()->error().isEmpty());
    CHECK(shown.label("count") == "2 of 12 heads");
    CHECK(shown.view.panel()->shown_rows() == std::vector<std::size_t>{6, 10});
    CHECK(shown.view.grid()->colour(0, 1) != before);
    CHECK(shown.view.grid()->content().dimmed[0]);
    CHECK_FALSE(shown.view.grid()->content().dimmed[6]);
    // The selection is not changed by hiding its row.
    CHECK(shown.desk.selection().head == 0);
    CHECK(shown.view.panel()->selected_rows().empty());
    shown.filter()->clear();
    CHECK(shown.label("count") == "12 heads");
    CHECK(shown.view.grid()->colour(0, 1) == before);
    CHECK(shown.current() == 0);
}

TEST_CASE("A wrong filter shows its error and place under the field, and keeps the earlier heads", "[overview]") {
    ShownOverview shown;
    shown.filter()->setText("head = 1");
    shown.filter()->setText("head = 1 and sinkk > 2");
    const FilterField& field = *shown.view.panel()->filter();
    CHECK(field.error().startsWith("character 14: expected the name of a column (sink?)"));
    const auto* label = shown.view.findChild<QLabel*>("filter_error");
    CHECK(label->isVisible());
    CHECK(label->text().contains(">s</span>inkk"));
    CHECK(field.count() == 3);
    shown.filter()->setText(QStringLiteral("ü > 1"));
    CHECK(field.error().startsWith("character 1:"));
    shown.filter()->setText("head = 1 and");
    CHECK(field.error().startsWith("character 13:"));
    shown.filter()->setText("head = 0");
    CHECK_FALSE(label->isVisible());
    CHECK(field.count() == 3);
}

TEST_CASE("Names are completed in the middle of a filter", "[overview]") {
    ShownOverview shown;
    shown.filter()->setFocus();
    QTest::keyClicks(shown.filter(), "head = 1 and indu");
    auto* completer = shown.view.panel()->filter()->findChild<QCompleter*>();
    REQUIRE(completer);
    CHECK(completer->currentCompletion() == "induction");
    Q_EMIT completer->activated(completer->currentCompletion());
    CHECK(shown.filter()->text() == "head = 1 and induction");
}

TEST_CASE("All sequences are shown as mean and deviation", "[overview]") {
    tests::SyntheticAnalysis a;
    a.lengths = {24, 30, 17};
    ShownOverview shown(a);
    Selection selection = shown.desk.selection();
    selection.sequence.reset();
    shown.desk.select(selection);
    tests::settle(shown.desk);
    const int sink = shown.view.panel()->model()->column("sink");
    CHECK(shown.view.panel()->model()->index(5, sink).data().toString().contains(QStringLiteral(" ± ")));
    CHECK(shown.label("count").contains("of 3 sequences"));
    CHECK(shown.label("pointed").contains(QStringLiteral(" ± ")));
    const auto wish = shown.view.figure();
    REQUIRE(wish);
    CHECK(wish->options.all_sequences);
    CHECK_FALSE(wish->options.sequence);
}

TEST_CASE("Layers that are to come look different and fill in as they come", "[overview]") {
    ensure_application();
    const test::TemporaryFolder folder;
    const tests::SyntheticAnalysis a;
    store::AnalysisWriter writer(folder / "a.headscope.h5", tests::synthetic_header(a));
    tests::write_synthetic_layer(writer, a, 0, 0);
    Desk desk;
    Study* study = tests::open_study(desk, writer.partial_path());
    study->set_running();
    Overview view(&desk, nullptr);
    view.resize(900, 500);
    view.show();
    tests::settle(desk);
    const auto count = [&] { return view.findChild<QLabel*>("count")->text(); };
    CHECK(count() == QStringLiteral("12 heads · 1 of 3 layers so far"));
    CHECK(view.grid()->colour(1, 0) == desk.theme().none);
    CHECK(view.grid()->colour(0, 0) != desk.theme().none);
    const int sink = view.panel()->model()->column("sink");
    CHECK(view.panel()->model()->index(4, sink).data().toString() == QStringLiteral("…"));
    tests::write_synthetic_layer(writer, a, 0, 1);
    study->tell_site_done(0, 1);
    tests::settle(desk);
    CHECK(view.grid()->colour(1, 0) != desk.theme().none);
    CHECK(view.panel()->model()->index(4, sink).data().toString() != QStringLiteral("…"));
    study->tell_stopped();
    tests::settle(desk);
    CHECK(count() == QStringLiteral("12 heads · stopped after 2 of 3 layers"));
    view.grab();
}

TEST_CASE("The overview follows the theme and survives the study going away under it", "[overview]") {
    ShownOverview shown;
    const QColor light = shown.view.grid()->colour(2, 2);
    shown.desk.set_dark(true);
    tests::settle(shown.desk);
    CHECK(shown.view.grid()->colour(2, 2) != light);
    CHECK(shown.view.grab().toImage().pixelColor(20, 200).lightness() < 80);
    shown.desk.remove(shown.study->id());
    // Events that were under way when it went.
    QTest::mouseMove(shown.view.grid(), shown.cell(1, 1));
    QTest::mouseClick(shown.view.grid(), Qt::LeftButton, {}, shown.cell(1, 1));
    shown.view.switch_off(false);
    shown.view.run_again();
    CHECK_FALSE(shown.view.figure());
    tests::settle(shown.desk);
    CHECK_FALSE(shown.view.grid()->isVisible());
}

TEST_CASE("A head is described by what stands out", "[overview]") {
    auto table = std::make_shared<workspace::HeadTable>();
    table->columns = {"sink", "density", "local_focus_1"};
    for (int head = 0; head < 8; ++head) {
        table->rows.push_back({0, 0, head, head, "0", "Layer 0"});
        for (const double value : {head == 3 ? 0.8 : 0.1, 0.5, 0.05 + 0.001 * head}) table->values.push_back(value);
    }
    const QStringList sink = words_of_head(*table, 3);
    REQUIRE(sink.size() >= 2);
    CHECK(sink[0] == "puts 80 % of its weight on the first token");
    CHECK(sink[1] == "Sink 0.800: highest of 8");
    CHECK(words_of_head(*table, 4)[0] == "no single pattern holds most of its weight");
}
