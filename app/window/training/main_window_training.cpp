// SPDX-License-Identifier: GPL-3.0-or-later
// Training in the window: joins the views of runs and of the job to the processes and folders.
#include <QDockWidget>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenuBar>
#include <QMessageBox>
#include <QPushButton>
#include <QStandardPaths>
#include <QToolButton>

#include "app/window/main_window.h"
#include "core/base/error.h"
#include "core/base/output_file.h"
#include "core/base/spawned.h"
#include "core/workspace/job_edit.h"
#include "widgets/file_dialog.h"
#include "widgets/panels/project_tree.h"
#include "widgets/panels/start_page.h"
#include "widgets/panels/text_panel.h"
#include "widgets/training/facts.h"

namespace headscope::app {
namespace {

using widgets::Run;
using widgets::RunShelf;

constexpr int kMostStatus = 300;  ///< pixels

}  // namespace

void MainWindow::connect_training() {
    RunShelf& shelf = desk_.runs();
    connect(&service_, &RunService::opened, this, &MainWindow::opened_run);
    connect(&service_, &RunService::told, this, &MainWindow::tell);
    connect(&service_, &RunService::failed, this, &MainWindow::problem);
    connect(&service_, &RunService::not_opened, this, &MainWindow::settled);
    // At once: until the run begins, the session alone knows of its process.
    connect(&service_, &RunService::starting_changed, this, [this] { save_now(false); });
    connect(&costs_, &CostService::failed, this, &MainWindow::problem);
    connect(&service_, &RunService::found, this, [this](const QStringList& folders) {
        interrupted_ = folders;
        offer_interrupted();
    });
    connect(&shelf, &RunShelf::runs_changed, this, [this] {
        if (!interrupted_.isEmpty()) offer_interrupted();
        update_actions();
        save_soon();
    });
    connect(&shelf, &RunShelf::updated, this, &MainWindow::update_training);
    connect(&shelf, &RunShelf::starting_changed, this, &MainWindow::update_training);
    connect(&shelf, &RunShelf::moment_changed, this, [this] {
        update_training();
        save_soon();
    });
    connect(&shelf, &RunShelf::open_wanted, this, &MainWindow::choose_run);
    connect(&shelf, &RunShelf::read_job_wanted, this, &MainWindow::choose_job);
    connect(&shelf, &RunShelf::save_job_wanted, this, &MainWindow::save_job);
    connect(&shelf, &RunShelf::analyse_wanted, this, &MainWindow::analyse_snapshot);
    connect(&shelf, &RunShelf::fork_wanted, this, [this] { show_view(QStringLiteral("train")); });
    connect(&shelf, &RunShelf::folder_wanted, this, [this](int id) {
        if (const Run* run = desk_.runs().run(id)) show_folder(run->path);
    });
    connect(tree_, &widgets::ProjectTree::run_chosen, this, [this](int id) {
        desk_.runs().choose(id);
        show_view(QStringLiteral("run"));
    });
    connect(start_, &widgets::StartPage::training_wanted, this, [this] { show_view(QStringLiteral("train")); });
}

void MainWindow::build_training_actions() {
    QMenu* menu = menuBar()->addMenu(tr("&Train"));
    RunShelf& shelf = desk_.runs();
    const auto add = [&](const char* name, const QString& text, const char* keys, const QString& tip,
                         std::function<void()> act) {
        menu->addAction(add_action(name, text, QKeySequence(QLatin1String(keys)), tip, std::move(act)));
    };
    add("train_new", tr("&New training"), "Ctrl+N", tr("Describe a job and start it"),
        [this] { show_view(QStringLiteral("train")); });
    add("train_start", tr("&Start the job"), "Ctrl+Shift+Return", tr("In a process of its own"),
        [&shelf] { Q_EMIT shelf.start_wanted(); });
    add("train_measure", tr("&Measure the job's speed"), "", tr("Trains for about a second"),
        [&shelf] { Q_EMIT shelf.calibrate_wanted(); });
    add("train_open", tr("&Open a run…"), "Ctrl+Alt+O", tr("A folder that a training job writes or wrote"),
        [&shelf] { Q_EMIT shelf.open_wanted(); });
    add("train_read_job", tr("&Read a job…"), "", tr("A TOML file into the form"),
        [&shelf] { Q_EMIT shelf.read_job_wanted(); });
    add("train_save_job", tr("Sa&ve the job…"), "", tr("As a TOML file"), [&shelf] { Q_EMIT shelf.save_job_wanted(); });
    menu->addSeparator();
    const auto wish = [&](const char* name, const QString& text, const char* keys, const QString& tip,
                          const char* action) {
        add(name, text, keys, tip, [&shelf, action] {
            if (const Run* run = shelf.current()) Q_EMIT shelf.control_wanted(run->id, QLatin1String(action), {});
        });
    };
    wish("train_pause", tr("&Pause the run"), "", tr("After the step that is under way"), "pause");
    add("train_resume", tr("R&esume the run"), "", tr("Goes on where it is, or from its last snapshot"), [&shelf] {
        const Run* run = shelf.current();
        if (run && run->alive())
            Q_EMIT shelf.control_wanted(run->id, QStringLiteral("resume"), {});
        else if (run)
            Q_EMIT shelf.resume_wanted(run->id);
    });
    wish("train_stop", tr("S&top the run"), "", tr("With a snapshot, from which it can be resumed"), "stop");
    wish("train_snapshot", tr("Snapshot no&w"), "", tr("Writes a checkpoint"), "snapshot");
    wish("train_evaluate", tr("E&valuate now"), "", tr("Measures the held-out loss"), "evaluate");
    add("train_analyse", tr("&Analyze the best snapshot"), "", tr("Runs the text panel's text through it"), [&shelf] {
        const Run* run = shelf.current();
        const auto* best = run ? run->record->best_snapshot() : nullptr;
        if (best) Q_EMIT shelf.analyse_wanted(run->id, QString::fromStdString(best->name));
    });
    add("train_close", tr("&Close the run"), "", tr("Its process goes on"), [&shelf] {
        if (const Run* run = shelf.current()) Q_EMIT shelf.close_wanted(run->id);
    });
    build_evaluation_actions(menu);

    // Which group of views is shown, at the end of the menu bar.
    auto* corner = new QWidget(menuBar());
    auto* row = new QHBoxLayout(corner);
    row->setContentsMargins(0, 0, 4, 0);
    row->setSpacing(0);
    const auto part = [&](const char* name, const QString& text, const QString& tip, Page page) {
        auto* made = new QToolButton(corner);
        made->setObjectName(QLatin1String(name));
        made->setText(text);
        made->setAccessibleName(text);
        made->setToolTip(tip);
        made->setCheckable(true);
        made->setAutoRaise(true);
        row->addWidget(made);
        connect(made, &QToolButton::clicked, this, [this, page] {
            const bool empty = page == Page::analysis && desk_.studies().empty();
            show_page(empty ? Page::start : page);
        });
        return made;
    };
    analysis_switch_ = part("page_analysis", tr("Analysis"), tr("Views of analyses"), Page::analysis);
    training_switch_ =
        part("page_training", tr("Training"), tr("Jobs, runs, timelines, costs, evaluations"), Page::training);
    menuBar()->setCornerWidget(corner, Qt::TopRightCorner);
}

void MainWindow::update_training() {
    if (!by_name_.contains(QStringLiteral("about"))) return;
    const RunShelf& shelf = desk_.runs();
    const Run* run = shelf.current();
    const auto enable = [this](const char* name, bool on) { by_name_.at(QLatin1String(name))->setEnabled(on); };
    const bool alive = run && run->alive(), free = shelf.starting().isEmpty();
    enable("train_start", free && !desk_.runs().draft().problem());
    enable("train_measure", free && !desk_.runs().draft().problem());
    enable("train_pause", run && run->status() == workspace::RunStatus::running);
    enable("train_resume", run && free && run->status() != workspace::RunStatus::running &&
                               run->status() != workspace::RunStatus::finished);
    for (const char* name : {"train_stop", "train_snapshot", "train_evaluate"}) enable(name, alive);
    enable("train_analyse", run && !run->record->snapshots.empty());
    enable("train_close", run != nullptr);
    update_evaluations();
    QString words = shelf.starting();
    for (const Run& one : shelf.runs()) {
        if (!one.alive() || !words.isEmpty()) continue;
        const auto planned = one.record->planned_steps();
        words = tr("%1: step %2%3")
                    .arg(one.name)
                    .arg(one.record->last_step())
                    .arg(planned > 0 ? tr(" of %1").arg(planned) : QString());
    }
    const widgets::EvaluationShelf& evaluations = desk_.evaluations();
    if (words.isEmpty() && !evaluations.evaluating().isEmpty())
        words = evaluations.progress().isEmpty() ? tr("evaluating") : tr("evaluating: %1").arg(evaluations.progress());
    if (words.isEmpty() && tasks_.running()) words = tr("%1: %2").arg(tasks_.title(), tasks_.progress());
    training_status_->setText(fontMetrics().elidedText(words, Qt::ElideRight, kMostStatus));
}

void MainWindow::opened_run(int id) {
    const Run* run = desk_.runs().run(id);
    if (!run) return;
    remember({run->path, run->name, tr("run, step %1").arg(run->record->last_step()), QStringLiteral("run"), {}});
    if (!brought_back(run->path)) show_view(QStringLiteral("run"));
    settled(run->path);
}

void MainWindow::choose_run() {
    widgets::ask_for_file(this, {tr("Open the folder of a run"), {}, QFileDialog::Directory},
                          [this](const QString& path) { service_.open(path); });
}

void MainWindow::choose_job() {
    widgets::ask_for_file(this, {tr("Read a job"), tr("Jobs (*.toml);;All files (*)")},
                          [this](const QString& path) { read_job(path); });
}

void MainWindow::read_job(const QString& path) {
    ask_disk(path, [this, path, send = mailbox_.sender()] {
        QString text, message;
        try {
            const training::JobFile job = training::read_job_file(path.toStdString());
            QFile file(path);
            if (file.open(QIODevice::ReadOnly))
                text = QString::fromStdString(
                    workspace::edited_job(file.readAll().toStdString(), training::with_absolute_paths(job)));
        } catch (const Error& error) {
            message = QString::fromUtf8(error.what());
        }
        send([this, text, message] {
            if (!message.isEmpty()) return problem(message);
            desk_.runs().draft().set_fork({});
            desk_.runs().draft().set_text(text);
            show_view(QStringLiteral("train"));
        });
    });
}

void MainWindow::save_job() {
    const widgets::FileQuestion question{tr("Save the job"), tr("Jobs (*.toml)"), QFileDialog::AnyFile};
    widgets::ask_for_file(this, question, [this](const QString& chosen) {
        const QString path = chosen.endsWith(QLatin1String(".toml")) ? chosen : chosen + QStringLiteral(".toml");
        desk_.writer().post(nullptr, [this, path, text = desk_.runs().draft().text().toStdString(),
                                      send = mailbox_.sender()](const Cancellation&) {
            QString message;
            try {
                OutputFile file(path.toStdString(), {}, "job");
                file.append(text);
                file.publish();
            } catch (const Error& error) {
                message = QString::fromUtf8(error.what());
            }
            send([this, path, message] { message.isEmpty() ? tell(tr("Saved %1").arg(path)) : problem(message); });
        });
    });
}

void MainWindow::analyse_snapshot(int run, const QString& snapshot) {
    if (engine_.running()) return problem(tr("A run is going on: stop it first"));
    waiting_snapshot_ = QString::fromStdString(service_.snapshot_folder(run, snapshot).string());
    if (waiting_snapshot_.isEmpty()) return;
    tell(tr("Opening %1 of %2").arg(snapshot, desk_.runs().run(run)->name));
    engine_.open_model(waiting_snapshot_);
}

void MainWindow::run_snapshot(int model) {
    if (engine_.model_at(waiting_snapshot_) != model) return;
    waiting_snapshot_.clear();
    widgets::TextChoice choice = text_->choice();
    const bool nothing = std::none_of(choice.sources.begin(), choice.sources.end(),
                                      [](const auto& source) { return source.used && !source.value.isEmpty(); });
    if (nothing) choice.sources.assign(1, {widgets::TextSource::Kind::example, QStringLiteral("lantern")});
    std::int64_t positions = 0;
    for (const auto& card : engine_.models())
        if (card.id == model) positions = card.max_positions;
    // Small models were trained on short texts, and in bytes a text is long: what they read is as long as they can.
    constexpr std::int64_t kLength = 256;
    std::int64_t most = nothing ? kLength : choice.beyond_positions ? 0 : positions;
    if (nothing && positions > 0) most = std::min(most, positions);
    if (most > 0 && (choice.length > most || (nothing && choice.length == 0))) choice.length = most;
    text_->set_choice(choice);
    choice.model = model;
    run(choice);
    show_page(desk_.studies().empty() ? Page::start : Page::analysis);
}

/// Those that are not open: an open one says it itself.
void MainWindow::offer_interrupted() {
    interrupted_.removeIf([this](const QString& folder) { return desk_.runs().run_at(folder) != nullptr; });
    start_->offer_runs(interrupted_);
    if (interrupted_.isEmpty()) return;
    tell(interrupted_.size() == 1
             ? tr("An interrupted run can be resumed: see the start page")
             : tr("%1 interrupted runs can be resumed: see the start page").arg(interrupted_.size()));
}

/// Not by QDesktopServices: it forks, and from the window's thread.
void MainWindow::show_folder(const QString& path) {
    if (folder_program_.isEmpty()) return;
    looker_.post(this, [this, path, program = folder_program_, send = mailbox_.sender()](const Cancellation&) {
        try {
            SpawnOptions options;
            options.program = QStandardPaths::findExecutable(program).toStdString();
            options.arguments = {path.toStdString()};
            options.own_session = true;
            if (options.program.empty())
                throw Error(ErrorCode::io, path.toStdString(),
                            "expected the program " + program.toStdString() + " to show this folder",
                            "found no program of that name");
            Spawned::start(options);
        } catch (const Error& error) {
            const QString message = QString::fromUtf8(error.what());
            send([this, message] { problem(message); });
        }
    });
}

/// What ends with the window, a sentence each.
QStringList MainWindow::work_that_ends() const {
    QStringList work;
    if (engine_.running()) {
        const widgets::Study* study = desk_.study(running_study_);
        work << tr("The analysis %1 is running. It stops; the layers that are done stay in a partial file, which the "
                   "next start offers.")
                    .arg(study ? study->name() : tr("of the chosen text"));
    }
    if (!desk_.evaluations().evaluating().isEmpty())
        work << tr("An evaluation is running. It stops, and its results are lost.");
    if (tasks_.running()) work << tr("%1 is running. It stops.").arg(tasks_.title());
    return work;
}

bool MainWindow::ask_about_work() {
    if (closing_) return true;
    QStringList names;
    for (const Run& run : desk_.runs().runs())
        if (run.alive()) names << run.name;
    for (const QString& folder : service_.starting()) {
        const Run* run = desk_.runs().run_at(folder);
        if (run && run->alive()) continue;
        names << tr("%1, which is starting").arg(run ? run->name : QFileInfo(folder).fileName());
    }
    QStringList words = work_that_ends();
    if (words.isEmpty() && names.isEmpty()) return true;
    if (!names.isEmpty())
        words << names.join(QLatin1Char('\n')) +
                     tr("\nA training process does not need the window: it can be watched again later.");
    auto* box = new QMessageBox(QMessageBox::Question, names.isEmpty() ? tr("Quit?") : tr("Training goes on"),
                                words.join(QStringLiteral("\n\n")), QMessageBox::NoButton, this);
    box->setObjectName(QStringLiteral("close_question"));
    box->setAttribute(Qt::WA_DeleteOnClose);
    auto* leave =
        box->addButton(names.isEmpty() ? tr("Stop it and quit") : tr("Leave it running"), QMessageBox::AcceptRole);
    leave->setObjectName(names.isEmpty() ? QStringLiteral("close_quit") : QStringLiteral("close_leave"));
    box->addButton(QMessageBox::Cancel);
    box->setDefaultButton(leave);
    connect(leave, &QAbstractButton::clicked, this, &MainWindow::end);
    if (!names.isEmpty()) {
        auto* stop = box->addButton(tr("Stop it"), QMessageBox::DestructiveRole);
        stop->setObjectName(QStringLiteral("close_stop"));
        connect(stop, &QAbstractButton::clicked, this, [this] {
            for (const Run& run : desk_.runs().runs())
                if (run.alive()) service_.control(run.id, QStringLiteral("stop"), {});
            service_.stop_starting();
            end();
        });
    }
    box->open();
    return false;
}

void MainWindow::end() {
    closing_ = true;
    close();
}

}  // namespace headscope::app
