// SPDX-License-Identifier: GPL-3.0-or-later
// Views of ask files: the shelf of open files, the figures and their options, clicks.
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <catch2/catch.hpp>

#include "core/figures/make_figure.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/figures/sample_asks.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/child.h"
#include "tests/widgets/desk_fixture.h"
#include "tests/widgets/run_fixture.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/panels/project_tree.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/text/banner.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

using tests::child;
using AskFile = std::shared_ptr<const store::AskRecord>;

struct ViewOfTool {
    const char *view, *recipe, *tool;
};
constexpr ViewOfTool kAskViews[] = {{"lens", "lens", "lens"},
                                    {"patch_layers", "patch-layers", "patch"},
                                    {"patch_heads", "patch-heads", "patch"},
                                    {"ablation_heads", "ablation-heads", "ablate"},
                                    {"attribution", "attribution", "attribution"},
                                    {"sink_rate", "sink-rate", "sinks"},
                                    {"massive_activations", "massive-activations", "sinks"},
                                    {"value_norms", "value-norms", "sinks"},
                                    {"corpus_scatter", "corpus-scatter", "corpus"},
                                    {"corpus_head", "corpus-head", "corpus"},
                                    {"series", "timeline", "series"},
                                    {"cache_error", "cache-error", "cache"},
                                    {"knockout", "knockout", "knockout"},
                                    {"steering", "steering", "steer"},
                                    {"head_kinds", "head-kinds", "kinds"},
                                    {"circuits", "circuits", "circuits"},
                                    {"generation", "generation", "generate"}};

AskFile made(const std::string& tool) {
    return std::make_shared<const store::AskRecord>(test::sample_ask(tool));
}

struct AskPageShown {
    explicit AskPageShown(const char* name, const std::vector<AskFile>& files = {}) {
        int number = 0;
        for (const AskFile& file : files) desk.asks().take(QStringLiteral("/made/%1.ask.h5").arg(++number), file);
        view.reset(tests::view_kind(name).make(&desk, nullptr));
        view->resize(900, 600);
        view->show();
        settle();
    }
    void settle() {
        tests::settle(desk);
        tests::settle(desk.runs());
        tests::settle(desk);
    }
    FigureView& picture() { return *view->findChild<FigureView*>(); }
    void choose(const char* box, const QString& text) {
        auto* combo = child<QComboBox>(*view, box);
        REQUIRE(combo->findText(text) >= 0);
        combo->setCurrentIndex(combo->findText(text));
        Q_EMIT combo->activated(combo->currentIndex());
        settle();
    }

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    std::unique_ptr<View> view;
};

std::string csv_of(const std::string& recipe, const AskFile& file, const figures::FigureOptions& options) {
    figures::FigureInputs inputs;
    inputs.asks.push_back(file);
    return figures::figure_csv(figures::make_figure(recipe, inputs, options));
}

}  // namespace

TEST_CASE("A view of a tool without an open file offers to run the tool", "[ask_view]") {
    for (const auto& [name, recipe, tool] : kAskViews) {
        INFO(name);
        AskPageShown page(name);
        QSignalSpy wanted(&page.desk.asks(), &AskShelf::ask_wanted);
        CHECK_FALSE(page.view->figure());
        child<QPushButton>(*page.view, "notice_action")->click();
        REQUIRE(wanted.count() == 1);
        CHECK(wanted.first().first().toString() == tool);
        CHECK(tests::view_kind(name).presence(page.desk) == Presence::none);
    }
}

TEST_CASE("A view of an ask file draws the figure that export makes", "[ask_view]") {
    for (const auto& [name, recipe, tool] : kAskViews) {
        INFO(name);
        const AskFile file = made(tool);
        AskPageShown page(name, {file});
        CHECK(tests::view_kind(name).presence(page.desk) == Presence::filled);
        CHECK(child<Banner>(*page.view, "failure")->text().isEmpty());
        REQUIRE(page.picture().figure());
        REQUIRE(page.view->figure());
        CHECK(page.view->figure()->recipe == recipe);
        CHECK(page.view->figure()->paths == QStringList{QStringLiteral("/made/1.ask.h5")});
        CHECK(figures::figure_csv(*page.picture().figure()) == csv_of(recipe, file, page.view->figure()->options));
        CHECK_FALSE(child<QComboBox>(*page.view, "ask_file")->isVisibleTo(page.view.get()));
    }
}

TEST_CASE("Options of the recipe are controls, and part of the exported figure", "[ask_view]") {
    AskPageShown page("patch_layers", {made("patch")});
    const auto options = [&] { return page.view->figure()->options; };
    CHECK(options() == figures::FigureOptions{});
    CHECK(child<QComboBox>(*page.view, "ask_sequence")->currentText() == "Text 0: The king saw the sea");
    QSignalSpy changed(page.view.get(), &View::state_changed);
    page.choose("ask_site", "Attention output");
    CHECK(options().site == "attention_output");
    CHECK(page.picture().figure()->panels.size() == 1);
    CHECK(child<QComboBox>(*page.view, "ask_site")->findText("Head output") < 0);  // a point of heads
    child<QCheckBox>(*page.view, "ask_normalize")->setChecked(true);
    page.settle();
    CHECK(options().normalized);
    page.choose("ask_sequence", "Text 1: The king saw the hill");
    CHECK(options().sequence == 1);
    CHECK(changed.count() == 3);
    const QJsonObject state = page.view->state();
    AskPageShown other("patch_layers", {made("patch")});
    other.view->restore(state);
    other.settle();
    CHECK(other.view->figure()->options == options());
    CHECK(child<QCheckBox>(*other.view, "ask_normalize")->isChecked());
    CHECK(child<QComboBox>(*other.view, "ask_site")->currentText() == "Attention output");
    other.view->restore({{"sequence", "none"}, {"site", "no_point"}, {"show", 3}});
    other.settle();
    CHECK(other.view->figure()->options == figures::FigureOptions{});
}

TEST_CASE("A choice of the recipe is a box whose first state is the default", "[ask_view]") {
    AskPageShown page("lens", {made("lens")});
    CHECK(child<QComboBox>(*page.view, "ask_show")->currentText() == "Probability");
    auto* box = child<QComboBox>(*page.view, "ask_show");
    box->setCurrentIndex(box->findText("Rank"));
    page.settle();
    CHECK(page.view->figure()->options.show == "rank");
    box->setCurrentIndex(box->findText("Probability"));
    page.settle();
    CHECK(page.view->figure()->options == figures::FigureOptions{});
}

TEST_CASE("The timeline of a series refuses options of runs by name", "[ask_view]") {
    const AskFile file = made("series");
    CHECK(csv_of("timeline", file, {}).size() > 20);
    figures::FigureOptions step, head, against;
    step.step = 3;
    head.head = 0;
    against.against = figures::Against::tokens;
    CHECK_THROWS_WITH(csv_of("timeline", file, step), Catch::Contains("--step"));
    CHECK_THROWS_WITH(csv_of("timeline", file, head), Catch::Contains("--head"));
    CHECK_THROWS_WITH(csv_of("timeline", file, against), Catch::Contains("--against"));
    CHECK_THROWS_WITH(csv_of("timeline", made("steer"), {}), Catch::Contains("ask series"));
}

TEST_CASE("Boxes of a file's measures, heads and indicators hold what the file has", "[ask_view]") {
    AskPageShown scatter("corpus_scatter", {made("corpus")});
    scatter.choose("ask_x", "Sink");
    CHECK(scatter.view->figure()->options.x == "sink");
    auto* measures = child<QComboBox>(*scatter.view, "ask_y");
    REQUIRE(measures->findData("std/sink") >= 0);
    scatter.choose("ask_y", measures->itemText(measures->findData("std/sink")));
    CHECK(scatter.view->figure()->options.y == "std/sink");
    CHECK(child<Banner>(*scatter.view, "failure")->text().isEmpty());
    AskPageShown head("corpus_head", {made("corpus")});
    CHECK(child<QComboBox>(*head.view, "ask_layer")->currentText() == "Layer: 0");
    head.choose("ask_layer", "Layer: 2");
    head.choose("ask_head", "Head: 3");
    CHECK(head.view->figure()->options.layer == 2);
    CHECK(head.picture().figure()->title == "Head 2.3 over a corpus");
    AskPageShown series("series", {made("series")});
    CHECK(series.picture().figure()->panels.size() == 3);  // the loss and two indicators
    series.choose("ask_indicator", "Sink");
    CHECK(series.picture().figure()->panels.size() == 2);
    for (const char* of_runs : {"ask_head", "ask_step", "ask_against"})
        CHECK(series.view->findChild<QWidget*>(QLatin1String(of_runs)) == nullptr);
}

TEST_CASE("A click selects the head in an open analysis of the same model alone", "[ask_view]") {
    auto record = test::sample_ask("ablate");
    AskPageShown page("ablation_heads", {std::make_shared<const store::AskRecord>(record)});
    const figures::FigureData& figure = *page.picture().figure();
    CHECK(figure.panels.front().y.ticks.at(1).subject == figures::of_site(1));
    CHECK(figure.panels.front().x.ticks.at(2).subject == figures::of_head(2));
    const figures::Subject cell = figures::of_site(1).within(figures::of_head(2));
    Q_EMIT page.picture().clicked(cell);  // no analysis is open
    CHECK(page.desk.current() == nullptr);
    tests::SyntheticAnalysis other;
    other.model_sha256 = std::string(64, '1');
    tests::write_synthetic_analysis(page.folder / "other.headscope.h5", other);
    tests::write_synthetic_analysis(page.folder / "same.headscope.h5", {});
    Study* first = tests::open_study(page.desk, page.folder / "other.headscope.h5");
    page.desk.select_study(first->id());
    page.settle();
    Q_EMIT page.picture().clicked(cell);
    CHECK(page.desk.selection().study == first->id());
    CHECK(page.desk.selection().site == 0);
    Study* same = tests::open_study(page.desk, page.folder / "same.headscope.h5");
    page.settle();
    REQUIRE(same->sites().size() > 1);
    REQUIRE(same->sites()[1].heads > 2);
    Q_EMIT page.picture().clicked(cell);
    CHECK(page.desk.selection().study == same->id());
    CHECK(page.desk.selection().site == 1);
    CHECK(page.desk.selection().head == 2);
    page.settle();
    CHECK_FALSE(page.picture().marks().empty());
}

TEST_CASE("The newest file of a tool is drawn until another is chosen", "[ask_view]") {
    auto second = test::sample_ask("lens");
    second.sequences.resize(1);
    for (auto& dimension : second.dimensions)
        if (dimension.path == "/sequence") dimension.size = 1;
    for (auto& table : second.tables) table.values.resize(table.values.size() / 2);
    AskPageShown page("lens", {made("lens"), std::make_shared<const store::AskRecord>(second)});
    CHECK(page.view->figure()->paths.front() == "/made/2.ask.h5");
    auto* files = child<QComboBox>(*page.view, "ask_file");
    CHECK(files->isVisibleTo(page.view.get()));
    files->setCurrentIndex(0);
    Q_EMIT files->activated(0);
    page.settle();
    CHECK(page.view->figure()->paths.front() == "/made/1.ask.h5");
    page.desk.asks().remove(page.desk.asks().chosen("lens")->id);
    page.settle();
    CHECK(page.view->figure()->paths.front() == "/made/2.ask.h5");
    CHECK(page.desk.asks().chosen("patch") == nullptr);
}

TEST_CASE("The shelf lists files by tool and model, and takes a file again", "[ask_view]") {
    ensure_application();
    Desk desk;
    QSignalSpy changed(&desk.asks(), &AskShelf::changed);
    const int id = desk.asks().take("/made/a.ask.h5", made("lens"));
    CHECK(desk.asks().take("/made/./a.ask.h5", made("lens")) == id);
    desk.asks().take("/made/b.ask.h5", made("lens"));
    REQUIRE(desk.asks().all().size() == 2);
    CHECK(desk.asks().all()[0].name == "lens: made");
    CHECK(desk.asks().all()[1].name == "lens: made #2");
    CHECK(AskShelf::about(test::sample_ask("patch")) == "patch, 2 texts");
    auto partial = test::sample_ask("patch");
    partial.complete = false;
    CHECK(AskShelf::about(partial) == "patch, 2 texts, incomplete");
    ProjectTree tree(&desk);
    QSignalSpy chosen(&tree, &ProjectTree::ask_chosen);
    QTreeWidgetItem* asks = tree.topLevelItem(tree.topLevelItemCount() - 1);
    REQUIRE(asks->childCount() == 2);
    tree.setCurrentItem(asks->child(0));
    REQUIRE(chosen.count() == 1);
    CHECK(chosen.first().first().toInt() == id);
    desk.asks().remove(id);
    CHECK(asks->childCount() == 1);
    CHECK(changed.count() == 4);
}
