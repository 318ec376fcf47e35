// SPDX-License-Identifier: GPL-3.0-or-later
// Pages of views: which are on tabs, in which groups, alone and side by side.
#include <QMenu>
#include <QSignalSpy>
#include <QSplitter>
#include <QTest>
#include <set>

#include "tests/widgets/child.h"
#include "tests/widgets/frame/frame_fixture.h"
#include "widgets/frame/tab_button.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::child;
using tests::Frame;

namespace {

constexpr auto kAnalysis = ViewKind::Area::analysis;
constexpr auto kTraining = ViewKind::Area::training;

/// Titles of the groups in sight, with the menu of all others.
QStringList groups_of(const ViewArea& area) {
    QStringList titles;
    for (const auto* button : area.findChildren<TabButton*>())
        if (button->isVisible() && button->objectName().startsWith(QLatin1String("group_"))) titles << button->text();
    return titles;
}

/// Names of views behind "More".
QStringList more_of(ViewArea& area) {
    QMenu* menu = child<TabButton>(area, "group_more")->menu();
    Q_EMIT menu->aboutToShow();
    QStringList names;
    for (const QAction* entry : menu->actions())
        if (entry->objectName().startsWith(QLatin1String("more_"))) names << entry->objectName().mid(5);
    return names;
}

void press(ViewArea& area, const char* name) {
    QTest::mouseClick(child<TabButton>(area, name), Qt::LeftButton);
}

}  // namespace

TEST_CASE("Tabs are of the views that an analysis fills", "[frame]") {
    Frame frame;
    ViewArea& area = frame.page(kAnalysis);
    // Nothing is open: the first view alone shows a notice.
    CHECK(area.on_tabs() == QStringList{"overview"});
    frame.open_plain();
    CHECK(area.on_tabs() == QStringList{"overview", "all_heads", "map", "lines", "on_text", "loss", "logits", "mass",
                                        "radar", "compare"});
    CHECK(groups_of(area) == QStringList{"Heads", "Map", "Text", "Distributions", "Layers", "Compare", "More"});
    frame.open_plain(true);
    CHECK(area.on_tabs().contains("states"));
    frame.open_lazy();
    CHECK(area.on_tabs() == QStringList{"overview", "all_heads", "map", "lines", "on_text", "loss", "logits", "mass",
                                        "offsets", "radar", "states", "bias", "compare"});
    frame.open_recurrent();
    CHECK(area.on_tabs() == QStringList{"overview", "all_heads", "map", "lines", "on_text", "loss", "token_types",
                                        "branch_weights", "logits", "mass", "radar", "compare"});
    frame.open_heads();
    CHECK(area.on_tabs().contains("head_embeddings"));
    CHECK_FALSE(area.on_tabs().contains("token_types"));
    frame.desk.set_tensors(&frame.tensors);
    CHECK(area.on_tabs().contains("tensors"));
    frame.desk.set_tensors(nullptr);
}

TEST_CASE("Every view of a page is on a tab or behind More, and says why there", "[frame]") {
    Frame frame;
    frame.open_plain();
    for (const auto which : {kAnalysis, kTraining}) {
        ViewArea& area = frame.page(which);
        QStringList all = area.on_tabs() + more_of(area);
        all.removeDuplicates();
        all.sort();
        QStringList expected;
        for (const auto& [name, view] : area.views()) expected << name;
        CHECK(all == expected);
    }
    ViewArea& area = frame.page(kAnalysis);
    CHECK(more_of(area).contains("bias"));
    QStringList titles;
    for (const QAction* entry : child<TabButton>(area, "group_more")->menu()->actions())
        if (!entry->isEnabled() && !entry->isSeparator()) titles << entry->text();
    CHECK(titles == QStringList{"Not recorded in this analysis", "Nothing to show of this model"});
}

TEST_CASE("Training has tabs of runs and results once some are open", "[frame]") {
    Frame frame;
    ViewArea& area = frame.page(kTraining);
    CHECK(area.on_tabs() == QStringList{"train", "layout", "cost"});
    CHECK(groups_of(area) == QStringList{"Job", "Cost", "More"});
    frame.open_run();
    CHECK(area.on_tabs() == QStringList{"train", "layout", "run", "timeline", "cost"});
    frame.desk.evaluations().take("/made/tasks",
                                  std::make_shared<const store::Evaluation>(test::sample_task_evaluation()));
    CHECK(area.on_tabs().contains("tasks"));
    CHECK_FALSE(area.on_tabs().contains("ruler"));
    CHECK_FALSE(area.on_tabs().contains("latency"));
    frame.open_evaluations();
    for (const char* view :
         {"context_perplexity", "position_perplexity", "tasks", "ruler", "latency", "ablation", "scaling"})
        CHECK(area.on_tabs().contains(QLatin1String(view)));
    CHECK(groups_of(area).size() <= 8);
}

TEST_CASE("Ask files have a tab on the page of analyses", "[frame][ask]") {
    Frame frame;
    frame.open_plain();
    ViewArea& area = frame.page(kAnalysis);
    CHECK_FALSE(groups_of(area).contains("Ask"));
    frame.open_asks();
    CHECK(groups_of(area).contains("Ask"));
    for (const char* view : {"lens", "patch_layers", "patch_heads", "ablation_heads", "attribution", "sink_rate",
                             "massive_activations", "value_norms", "corpus_scatter", "corpus_head", "series",
                             "knockout", "steering", "head_kinds", "circuits", "generation"})
        CHECK(area.on_tabs().contains(QLatin1String(view)));
}

TEST_CASE("A group opens the view that was shown of it last", "[frame]") {
    Frame frame;
    frame.open_plain();
    ViewArea& area = frame.page(kAnalysis);
    QSignalSpy changed(&area, &ViewArea::changed);
    press(area, "group_map");
    CHECK(area.front() == "map");
    CHECK(child<TabButton>(area, "tab_lines")->isVisible());
    CHECK_FALSE(child<TabButton>(area, "tab_overview")->isVisible());
    press(area, "tab_lines");
    press(area, "group_compare");
    CHECK(area.front() == "compare");
    CHECK_FALSE(child<TabButton>(area, "tab_compare")->isVisible());  // the only one of its group
    press(area, "group_map");
    CHECK(area.front() == "lines");
    CHECK(changed.count() == 4);
    CHECK(child<TabButton>(area, "group_map")->isChecked());
    CHECK(child<TabButton>(area, "tab_lines")->isChecked());
}

TEST_CASE("A view without data is on a tab for as long as it is shown", "[frame]") {
    Frame frame;
    frame.open_plain();
    ViewArea& area = frame.page(kAnalysis);
    area.show_view("bias");
    CHECK(area.front() == "bias");
    CHECK(child<TabButton>(area, "tab_bias")->isVisible());
    CHECK(child<TabButton>(area, "group_layers")->isChecked());
    area.show_view("overview");
    CHECK_FALSE(area.on_tabs().contains("bias"));
    press(area, "group_layers");
    CHECK(area.front() == "radar");
    area.show_view("no such view");
    CHECK(area.front() == "radar");
}

TEST_CASE("Two views stand side by side, and the one with the keys is in front", "[frame]") {
    Frame frame;
    frame.open_plain();
    ViewArea& area = frame.page(kAnalysis);
    area.show_view("map");
    QTest::mouseClick(child<QToolButton>(area, "split_views"), Qt::LeftButton);
    CHECK(area.shown() == std::pair<QString, QString>("map", "on_text"));
    CHECK(area.views().at("map")->isVisible());
    CHECK(area.views().at("on_text")->isVisible());
    CHECK(area.front() == "map");
    area.show_view("on_text");  // where it is
    CHECK(area.shown() == std::pair<QString, QString>("map", "on_text"));
    CHECK(area.front() == "on_text");
    CHECK(area.front_view() == area.views().at("on_text"));
    press(area, "group_heads");  // tabs are of the left place
    CHECK(area.shown() == std::pair<QString, QString>("overview", "on_text"));
    CHECK(area.front() == "overview");
    area.show_beside("overview");  // they change places
    CHECK(area.shown() == std::pair<QString, QString>("on_text", "overview"));
    QTest::mouseClick(child<QToolButton>(area, "beside_close"), Qt::LeftButton);
    CHECK_FALSE(area.split());
    CHECK_FALSE(area.views().at("overview")->isVisible());
    CHECK(area.front() == "on_text");
    area.set_split(true);
    CHECK(area.shown() == std::pair<QString, QString>("on_text", "map"));
}

TEST_CASE("A page is restored as it was, and states of other versions change nothing", "[frame]") {
    Frame frame;
    frame.open_plain();
    ViewArea& area = frame.page(kAnalysis);
    area.show_view("lines");
    area.show_view("map");
    area.show_beside("loss");
    child<QSplitter>(area, "places")->setSizes({700, 300});
    area.show_view("loss");
    const QJsonObject state = area.state();
    ViewArea other(&frame.desk, kAnalysis);
    other.resize(1000, 600);
    other.show();
    other.restore(state);
    CHECK(other.shown() == area.shown());
    CHECK(other.front() == "loss");
    CHECK(std::abs(child<QSplitter>(other, "places")->sizes()[0] - child<QSplitter>(area, "places")->sizes()[0]) <= 2);
    CHECK(other.state() == area.state());
    for (const QJsonObject& wrong :
         {QJsonObject{}, QJsonObject{{"first", 7}, {"second", "nothing"}, {"sizes", "x"}, {"last", QJsonArray()}}}) {
        other.restore(wrong);
        CHECK(other.front() == "map");
        CHECK_FALSE(other.split());
    }
}

TEST_CASE("Names on tabs are whole in a narrow window", "[frame]") {
    Frame frame;
    frame.open_lazy();
    frame.open_run();
    frame.open_evaluations();
    for (const auto which : {kAnalysis, kTraining}) {
        ViewArea& area = frame.page(which, {560, 400});
        for (const auto* button : area.findChildren<TabButton*>()) {
            if (!button->isVisible()) continue;
            INFO(button->text().toStdString());
            CHECK(button->width() >= button->sizeHint().width());
            CHECK(area.rect().contains(
                button->geometry().translated(button->parentWidget()->mapTo(&area, QPoint(0, 0)))));
        }
    }
}
