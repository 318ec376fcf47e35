// SPDX-License-Identifier: GPL-3.0-or-later
// The controllers of the window without the window: any widget is the parent of their dialogs.
#include <QComboBox>
#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>
#include <QWidget>

#include "app/window/analysis_controller.h"
#include "app/window/asks/asks_controller.h"
#include "app/window/evaluations_controller.h"
#include "app/window/figures_controller.h"
#include "app/window/files_controller.h"
#include "app/window/help_controller.h"
#include "app/window/pages_controller.h"
#include "app/window/runs_controller.h"
#include "app/window/session_controller.h"
#include "app/window/tasks_controller.h"
#include "core/run/journal.h"
#include "core/workspace/intervention_list.h"
#include "tests/catch_with_torch.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/figures/sample_asks.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/core/training/sample_run.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/device_box.h"
#include "widgets/panels/ask/ask_dialog.h"
#include "widgets/panels/ask/intervention_dialog.h"
#include "widgets/panels/reproduce_dialog.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::app;
using Page = PagesController::Page;
using test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

constexpr qint64 kPatience = 60'000;  // ms

template <class Condition>
bool comes(const Condition& condition) {
    QElapsedTimer clock;
    clock.start();
    while (!condition() && clock.elapsed() < kPatience) QTest::qWait(10);
    return condition();
}

QString name(const fs::path& path) {
    return QString::fromStdString(path.string());
}

/// All controllers around a plain widget. /bin/true is the process that looks at files first.
struct Controllers {
    bool application = (widgets::ensure_application(), true);
    QWidget parent;
    Context context{&parent, "/bin/true", 1};
    PagesController pages{context};
    FiguresController figures{context, pages};
    TasksController tasks{context};
    HelpController help{context, pages};
    AnalysisController analysis{context, pages};
    FilesController files{context, pages, analysis};
    RunsController runs{context, pages, files, analysis};
    EvaluationsController evaluations{context, pages, files};
    AsksController asks{context, pages, files};
    SessionController session{context,
                              {pages, analysis, files, runs, evaluations, asks},
                              {[] {
                                   return QJsonObject{{"kept", true}};
                               },
                               [this](const QJsonObject& layout) { restored_layout = layout; }}};
    QJsonObject restored_layout;
    QSignalSpy problems{&context, &Context::problem_found};

    Controllers() { Q_EMIT context.updated(); }
    bool enabled(const char* action) const { return context.actions.at(action)->isEnabled(); }
    void trigger(const char* action) const { context.actions.at(action)->trigger(); }
    bool has_study() {
        return comes([this] { return !context.desk.studies().empty(); });
    }
};

}  // namespace

TEST_CASE("A file opens to the front, is listed as recent and closes", "[app][controllers]") {
    const TemporaryFolder folder;
    const QString path = name(folder / "a.headscope.h5");
    tests::write_synthetic_analysis(folder / "a.headscope.h5");
    Controllers window;
    CHECK(window.pages.page() == Page::start);
    CHECK_FALSE(window.enabled("close_analysis"));
    window.files.open(path);
    REQUIRE(window.has_study());
    CHECK(comes([&] { return window.pages.page() == Page::analysis; }));
    CHECK(window.enabled("close_analysis"));
    CHECK(window.enabled("export"));
    REQUIRE(window.files.recent().contain(path));
    CHECK(window.files.recent().all().front().kind == "analysis");
    CHECK(window.problems.count() == 0);
    window.trigger("close_analysis");
    CHECK(comes([&] { return window.pages.page() == Page::start; }));
    CHECK_FALSE(window.enabled("close_analysis"));
}

TEST_CASE("An ask file opens into its tool's view without an analysis, and the session lists it",
          "[app][controllers][ask]") {
    const TemporaryFolder folder;
    const QString path = name(folder / "a.ask.h5");
    store::write_ask(folder / "a.ask.h5", test::sample_ask("ablate"));
    Controllers window;
    CHECK_FALSE(window.enabled("close_asks"));
    window.files.open(path);
    REQUIRE(comes([&] { return !window.context.desk.asks().all().empty(); }));
    CHECK(window.pages.page() == Page::analysis);
    CHECK(window.pages.front_name() == "ablation_heads");
    CHECK(window.files.recent().all().front().kind == "ask");
    CHECK(window.files.recent().all().front().detail == "ablate, 2 texts");
    CHECK(window.session.session(false).analyses.contains(path));
    CHECK(window.enabled("export"));
    CHECK(window.problems.count() == 0);
    window.trigger("close_asks");
    CHECK(window.pages.page() == Page::start);
    CHECK_FALSE(window.enabled("close_asks"));
}

TEST_CASE("The dialog of ask gets open checkpoints and the text panel's texts", "[app][controllers][ask]") {
    Controllers window;
    window.trigger("ask");
    auto* dialog = window.parent.findChild<widgets::AskDialog*>();
    REQUIRE(dialog);
    CHECK(dialog->problem().contains("Open a checkpoint"));
    window.trigger("open_sample");
    REQUIRE(comes([&] { return !window.context.engine.models().empty(); }));
    dialog->set_folder("/made/asks");
    CHECK(dialog->problem().isEmpty());
    CHECK(dialog->choice().model == window.context.engine.models().front().path);
    const QStringList words = dialog->words();
    CHECK(words.contains("--text"));  // the bundled text, which the command knows no name of
    CHECK(words.indexOf("lens") == 1);
    Q_EMIT window.context.desk.asks().ask_wanted("attribution");
    CHECK(dialog->choice().tool == "attribution");
    CHECK(dialog->problem().contains("the answer"));
}

TEST_CASE("The report of a replay is read off the window's thread", "[app][controllers]") {
    const TemporaryFolder folder;
    Controllers window;
    window.trigger("reproduce");
    auto* dialog = window.parent.findChild<widgets::ReproduceDialog*>();
    REQUIRE(dialog);
    Q_EMIT dialog->open_wanted(name(folder.path()));
    CHECK(comes([&] { return window.problems.count() == 1; }));  // no report.md
    test::write_file(folder / "report.md", "Claims that held: none");
    Q_EMIT dialog->open_wanted(name(folder.path()));
    const auto report = [&] { return window.parent.findChild<QWidget*>("report_window"); };
    CHECK(report() == nullptr);
    CHECK(comes([&] { return report() != nullptr; }));
    CHECK(window.problems.count() == 1);
}

TEST_CASE("Heads that are switched off become rows of interventions", "[app][controllers][interventions]") {
    const TemporaryFolder folder;
    tests::write_synthetic_analysis(folder / "a.headscope.h5");
    Controllers window;
    window.files.open(name(folder / "a.headscope.h5"));
    REQUIRE(window.has_study());
    widgets::RunRequest request;
    request.study = window.context.desk.studies().front()->id();
    request.switched_off = {{1, 0, false}, {1, 2, false}, {2, 3, true}};
    Q_EMIT window.context.desk.interventions_wanted(request);
    auto* dialog = window.parent.findChild<widgets::InterventionDialog*>();
    REQUIRE(dialog);
    const std::vector<workspace::InterventionRow> expected{{"head_output", "1", "0,2", "", "zero", ""},
                                                           {"head_output", "2", "3", "", "mean", ""}};
    const bool same = workspace::intervention_rows(dialog->interventions().toml.toStdString(), "text") == expected;
    CHECK(same);
    CHECK(window.context.text->interventions().toml.isEmpty());
    Q_EMIT dialog->applied(dialog->interventions());
    CHECK_FALSE(window.context.text->choice().interventions.toml.isEmpty());
    // Files: written and read off the window's thread.
    const QString plan = name(folder / "plan.toml");
    Q_EMIT dialog->save_wanted(plan, dialog->interventions().toml);
    REQUIRE(comes([&] { return fs::exists(folder / "plan.toml"); }));
    REQUIRE(comes([&] { return dialog->interventions().place == plan; }));
    dialog->set_interventions({});
    Q_EMIT dialog->read_wanted(plan);
    CHECK(comes([&] { return dialog->interventions().place == plan; }));
    Q_EMIT dialog->read_wanted(name(folder / "none.toml"));
    CHECK(comes([&] { return window.problems.count() == 1; }));
}

TEST_CASE("A path goes to the controller that reads it, or becomes a problem", "[app][controllers]") {
    const TemporaryFolder folder;
    test::write_file(folder / "text.txt", "In the beginning");
    test::write_file(folder / "job.toml", "name = \"sample\"\n");
    test::write_file(folder / "no.headscope.h5", "no HDF5");
    Controllers window;
    QSignalSpy texts(&window.files, &FilesController::text_found), jobs(&window.files, &FilesController::job_found);
    window.files.open(name(folder / "text.txt"));
    window.files.open(name(folder / "job.toml"));
    window.files.open(name(folder / "no.headscope.h5"));
    CHECK(comes([&] { return texts.count() == 1 && jobs.count() == 1 && window.problems.count() > 0; }));
    CHECK(window.context.desk.studies().empty());
}

TEST_CASE("A checkpoint opens into the text panel and the page of analyses", "[app][controllers]") {
    Controllers window;
    window.trigger("open_sample");
    REQUIRE(comes([&] { return !window.context.engine.models().empty(); }));
    CHECK(comes([&] { return window.pages.page() == Page::analysis; }));
    CHECK(window.context.text->choice().model == window.context.engine.models().front().id);
    CHECK(comes([&] { return window.enabled("run"); }));
    CHECK(window.files.recent().all().front().kind == "model");
}

TEST_CASE("The GPUs of the machine are offered for training and for evaluations", "[app][controllers]") {
    using Cards = std::vector<widgets::DeviceCard>;
    Controllers window;
    REQUIRE(comes([&] { return window.context.devices.has_value(); }));  // those of this machine
    const auto list = [&](const Cards& cards) {
        window.context.devices = cards;
        Q_EMIT window.context.devices_listed();
    };
    list(Cards(1, {QStringLiteral("cuda:0"), QStringLiteral("A card"), 8e9, QString()}));
    CHECK(window.context.desk.runs().draft().choices().devices.size() == 1);
    CHECK_FALSE(window.context.desk.runs().draft().choices().presets.empty());
    window.trigger("evaluate_models");
    const auto* box = window.parent.findChild<QComboBox*>(QStringLiteral("evaluate_device"));
    REQUIRE(box);
    CHECK(box->count() == 2);
    list({});
    CHECK(box->count() == 1);
    CHECK(window.context.desk.runs().draft().choices().devices.empty());
}

TEST_CASE("A run waits for its checkpoint while another one fails to open", "[app][controllers]") {
    const TemporaryFolder folder;
    Controllers window;
    window.analysis.run_snapshot(folder / "wanted", "wanted");
    REQUIRE(window.analysis.waits_with_text());
    window.analysis.model_failed(name(folder / "other"));
    CHECK(window.analysis.waits_with_text());
    window.analysis.model_failed(name(folder / "wanted"));
    CHECK_FALSE(window.analysis.waits_with_text());
}

TEST_CASE("Pages switch by view, by action and by what is open", "[app][controllers]") {
    Controllers window;
    PagesController& pages = window.pages;
    QSignalSpy training(&pages, &PagesController::training_comes);
    pages.show_view(QStringLiteral("map"));
    CHECK(pages.page() == Page::start);
    CHECK(pages.front_view() == nullptr);
    window.trigger("view_map");
    CHECK(pages.page() == Page::analysis);
    CHECK(pages.front_name() == "map");
    CHECK(training.count() == 0);
    window.trigger("train_new");
    CHECK(pages.page() == Page::training);
    CHECK(pages.front_name() == "train");
    CHECK(training.count() == 1);
    window.trigger("start_page");
    CHECK(pages.page() == Page::start);
    CHECK(pages.front_name().isEmpty());
    CHECK_FALSE(window.enabled("side_by_side"));
    CHECK(training.count() == 2);
    pages.set_theme(QStringLiteral("dark"));
    CHECK(window.context.desk.theme().dark);
    CHECK(window.context.actions.at("theme_dark")->isChecked());
    pages.set_theme(QStringLiteral("light"));
    CHECK_FALSE(window.context.desk.theme().dark);
}

TEST_CASE("Undo brings back the views' states", "[app][controllers]") {
    const TemporaryFolder folder;
    tests::write_synthetic_analysis(folder / "a.headscope.h5");
    Controllers window;
    window.files.open(name(folder / "a.headscope.h5"));
    REQUIRE(window.has_study());
    window.pages.history().begin();
    CHECK_FALSE(window.enabled("undo"));
    window.trigger("next_layer");
    REQUIRE(comes([&] { return window.enabled("undo"); }));
    CHECK(window.context.desk.selection().site == 1);
    window.trigger("undo");
    CHECK(window.context.desk.selection().site == 0);
    CHECK(window.enabled("redo"));
}

TEST_CASE("A run's folder opens, is listed and closes", "[app][controllers]") {
    const TemporaryFolder folder;
    fs::create_directory(folder / "run");
    {
        training::JournalWriter writer(folder / "run" / training::kJournalName);
        writer.append(test::sample_start());
        for (int n = 1; n <= 5; ++n) writer.append(test::sample_step(n));
        writer.append(training::StateChanged{training::RunState::finished, 5, ""});
    }
    Controllers window;
    CHECK_FALSE(window.enabled("train_close"));
    window.files.open(name(folder / "run"));
    widgets::RunShelf& shelf = window.context.desk.runs();
    REQUIRE(comes([&] { return shelf.runs().size() == 1; }));
    CHECK(comes([&] { return window.pages.front_name() == "run"; }));
    CHECK(shelf.runs().front().record->last_step() == 5);
    CHECK(window.files.recent().all().front().kind == "run");
    CHECK(window.runs.at_work().isEmpty());
    CHECK(window.runs.status().isEmpty());
    CHECK(comes([&] { return window.enabled("train_close"); }));
    window.trigger("train_close");
    CHECK(comes([&] { return shelf.runs().empty(); }));
}

TEST_CASE("A session is saved and brought back", "[app][controllers]") {
    const TemporaryFolder folder;
    qputenv("XDG_DATA_HOME", QByteArray::fromStdString((folder / "data").string()));
    const QString path = name(folder / "a.headscope.h5");
    tests::write_synthetic_analysis(folder / "a.headscope.h5");
    {
        Controllers window;
        window.session.begin(true, {path});
        REQUIRE(window.has_study());
        window.context.desk.rename_study(window.context.desk.studies().front()->id(), QStringLiteral("kept name"));
        window.trigger("view_map");
        window.trigger("next_head");
        window.pages.set_theme(QStringLiteral("dark"));
        window.session.close();
        window.session.let_go();
    }
    Controllers window;
    window.session.begin(true, {});
    REQUIRE(window.has_study());
    CHECK(comes([&] { return window.pages.front_name() == "map"; }));
    const widgets::Study* study = window.context.desk.studies().front();
    CHECK(name(study->path()) == path);
    CHECK(study->name() == "kept name");
    CHECK(comes([&] { return !window.context.restoration.active(); }));
    CHECK(window.context.desk.selection().head == 1);
    CHECK(window.pages.theme() == "dark");
    CHECK(window.restored_layout["kept"].toBool());
    CHECK(window.problems.count() == 0);
    window.pages.set_theme(QStringLiteral("light"));
    SECTION("another window keeps none while this one does") {
        Controllers other;
        QSignalSpy reports(&other.context, &Context::reported);
        other.session.begin(true, {});
        CHECK(comes([&] { return reports.count() > 0; }));
        CHECK(other.context.desk.studies().empty());
    }
    SECTION("a session without what was closed") {
        window.trigger("close_analysis");
        CHECK(window.session.session(true).analyses.isEmpty());
    }
}
