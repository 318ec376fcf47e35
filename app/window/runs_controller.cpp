// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/runs_controller.h"

#include <QFile>
#include <QFileInfo>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/window/analysis_controller.h"
#include "app/window/files_controller.h"
#include "app/window/pages_controller.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/training/job/toml_document.h"
#include "core/workspace/job_edit.h"
#include "widgets/file_dialog.h"

namespace headscope::app {
namespace {

using widgets::Run;
using widgets::RunShelf;

}  // namespace

RunsController::RunsController(Context& context, PagesController& pages, FilesController& files,
                               AnalysisController& analysis)
    : context_(context),
      pages_(pages),
      files_(files),
      analysis_(analysis),
      service_(&context.desk.runs(), context.program),
      costs_(&context.desk.runs(), context.program) {
    build_actions();
    connect_shelf();
    connect(&context_, &Context::updated, this, &RunsController::update);
    connect(&files_, &FilesController::run_found, &service_, &RunService::open);
    connect(&files_, &FilesController::job_found, this, &RunsController::read_job);
    connect(&service_, &RunService::opened, this, &RunsController::opened);
    connect(&service_, &RunService::told, &context_, &Context::report);
    connect(&service_, &RunService::failed, &context_, &Context::problem);
    connect(&service_, &RunService::not_opened, &context_.restoration, &Restoration::settle);
    connect(&costs_, &CostService::failed, &context_, &Context::problem);
    connect(&service_, &RunService::found, this, [this](const QStringList& folders) {
        interrupted_ = folders;
        offer_interrupted();
    });
    connect(&context_, &Context::devices_listed, this, [this] {
        widgets::JobDraft& draft = context_.desk.runs().draft();
        widgets::JobChoices choices = draft.choices();
        choices.devices = *context_.devices;
        draft.set_choices(std::move(choices));
    });
    connect(context_.tree, &widgets::ProjectTree::run_chosen, this, [this](int id) {
        context_.desk.runs().choose(id);
        pages_.show_view(QStringLiteral("run"));
    });
}

void RunsController::connect_shelf() {
    const RunShelf* shelf = &context_.desk.runs();
    connect(shelf, &RunShelf::runs_changed, this, [this] {
        if (!interrupted_.isEmpty()) offer_interrupted();
        Q_EMIT context_.updated();
        Q_EMIT context_.changed();
    });
    connect(shelf, &RunShelf::updated, &context_, &Context::updated);
    connect(shelf, &RunShelf::starting_changed, &context_, &Context::updated);
    connect(shelf, &RunShelf::moment_changed, &context_, &Context::updated);
    connect(shelf, &RunShelf::moment_changed, &context_, &Context::changed);
    connect(shelf, &RunShelf::open_wanted, this, &RunsController::choose_run);
    connect(shelf, &RunShelf::read_job_wanted, this, &RunsController::choose_job);
    connect(shelf, &RunShelf::save_job_wanted, this, &RunsController::save_job);
    connect(shelf, &RunShelf::analyse_wanted, this, &RunsController::analyze_snapshot);
    connect(shelf, &RunShelf::fork_wanted, this, [this] { pages_.show_view(QStringLiteral("train")); });
    connect(shelf, &RunShelf::folder_wanted, this, [this](int id) {
        if (const Run* run = context_.desk.runs().run(id)) files_.show_folder(run->path);
    });
}

void RunsController::build_actions() {
    RunShelf& shelf = context_.desk.runs();
    const auto add = [&](const char* name, const QString& text, const char* keys, const QString& tip,
                         std::function<void()> act) {
        context_.actions.add(name, text, QKeySequence(QLatin1String(keys)), tip, std::move(act));
    };
    add("train_start", tr("&Start the job"), "Ctrl+Shift+Return", tr("In a process of its own"),
        [&shelf] { Q_EMIT shelf.start_wanted(); });
    add("train_measure", tr("&Measure the job's speed"), "", tr("Trains for about a second"),
        [&shelf] { Q_EMIT shelf.calibrate_wanted(); });
    add("train_open", tr("&Open a run…"), "Ctrl+Alt+O", tr("A folder that a training job writes or wrote"),
        [&shelf] { Q_EMIT shelf.open_wanted(); });
    add("train_read_job", tr("&Read a job…"), "", tr("A TOML file into the form"),
        [&shelf] { Q_EMIT shelf.read_job_wanted(); });
    add("train_save_job", tr("Sa&ve the job…"), "", tr("As a TOML file"), [&shelf] { Q_EMIT shelf.save_job_wanted(); });
    const auto control = [&](const char* name, const QString& text, const char* keys, const QString& tip,
                             const char* action) {
        add(name, text, keys, tip, [&shelf, action] {
            if (const Run* run = shelf.current()) Q_EMIT shelf.control_wanted(run->id, QLatin1String(action), {});
        });
    };
    control("train_pause", tr("&Pause the run"), "", tr("After the step that is under way"), "pause");
    add("train_resume", tr("R&esume the run"), "", tr("Goes on where it is, or from its last snapshot"), [&shelf] {
        const Run* run = shelf.current();
        if (run && run->alive())
            Q_EMIT shelf.control_wanted(run->id, QStringLiteral("resume"), {});
        else if (run)
            Q_EMIT shelf.resume_wanted(run->id);
    });
    control("train_stop", tr("S&top the run"), "", tr("With a snapshot, from which it can be resumed"), "stop");
    control("train_snapshot", tr("Snapshot no&w"), "", tr("Writes a checkpoint"), "snapshot");
    control("train_evaluate", tr("E&valuate now"), "", tr("Measures the held-out loss"), "evaluate");
    add("train_analyse", tr("&Analyze the best snapshot"), "", tr("Runs the text panel's text through it"), [&shelf] {
        const Run* run = shelf.current();
        const auto* best = run ? run->record->best_snapshot() : nullptr;
        if (best) Q_EMIT shelf.analyse_wanted(run->id, QString::fromStdString(best->name));
    });
    add("train_close", tr("&Close the run"), "", tr("Its process goes on"), [&shelf] {
        if (const Run* run = shelf.current()) Q_EMIT shelf.close_wanted(run->id);
    });
}

void RunsController::update() {
    const RunShelf& shelf = context_.desk.runs();
    const Run* run = shelf.current();
    const auto enable = [this](const char* name, bool on) { context_.actions.enable(name, on); };
    const bool alive = run && run->alive(), free = shelf.starting().isEmpty();
    enable("train_start", free && !context_.desk.runs().draft().problem());
    enable("train_measure", free && !context_.desk.runs().draft().problem());
    enable("train_pause", run && run->status() == workspace::RunStatus::running);
    enable("train_resume", run && free && run->status() != workspace::RunStatus::running &&
                               run->status() != workspace::RunStatus::finished);
    for (const char* name : {"train_stop", "train_snapshot", "train_evaluate"}) enable(name, alive);
    enable("train_analyse", run && !run->record->snapshots.empty());
    enable("train_close", run != nullptr);
}

QString RunsController::status() const {
    const RunShelf& shelf = context_.desk.runs();
    if (!shelf.starting().isEmpty()) return shelf.starting();
    for (const Run& run : shelf.runs()) {
        if (!run.alive()) continue;
        const auto planned = run.record->planned_steps();
        return tr("%1: step %2%3")
            .arg(run.name)
            .arg(run.record->last_step())
            .arg(planned > 0 ? tr(" of %1").arg(planned) : QString());
    }
    return {};
}

QStringList RunsController::at_work() const {
    QStringList names;
    for (const Run& run : context_.desk.runs().runs())
        if (run.alive()) names << run.name;
    for (const QString& folder : service_.starting()) {
        const Run* run = context_.desk.runs().run_at(folder);
        if (run && run->alive()) continue;
        names << tr("%1, which is starting").arg(run ? run->name : QFileInfo(folder).fileName());
    }
    return names;
}

void RunsController::stop_all() {
    for (const Run& run : context_.desk.runs().runs())
        if (run.alive()) service_.control(run.id, QStringLiteral("stop"), {});
    service_.stop_starting();
}

void RunsController::opened(int id) {
    const Run* run = context_.desk.runs().run(id);
    if (!run) return;
    files_.recent().remember(
        {run->path, run->name, tr("run, step %1").arg(run->record->last_step()), QStringLiteral("run"), {}});
    if (!context_.restoration.brought_back(run->path)) pages_.show_view(QStringLiteral("run"));
    context_.restoration.settle(run->path);
}

void RunsController::choose_run() {
    widgets::ask_for_file(context_.window, {tr("Open the folder of a run"), {}, QFileDialog::Directory},
                          [this](const QString& path) { service_.open(path); });
}

void RunsController::choose_job() {
    widgets::ask_for_file(context_.window, {tr("Read a job"), tr("Jobs (*.toml);;All files (*)")},
                          [this](const QString& path) { read_job(path); });
}

void RunsController::read_job(const QString& path) {
    context_.ask_disk(path, [this, path, send = mailbox_.sender()] {
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
            if (!message.isEmpty()) return context_.problem(message);
            context_.desk.runs().draft().set_fork({});
            context_.desk.runs().draft().set_text(text);
            pages_.show_view(QStringLiteral("train"));
        });
    });
}

void RunsController::train_on(const QString& path) {
    widgets::JobDraft& draft = context_.desk.runs().draft();
    nlohmann::json texts = draft.job().data.text;
    texts.push_back(path.toStdString());
    if (const auto refused = draft.set("data.text", training::toml_value(texts)))
        context_.problem(refused->text);
    else
        context_.report(tr("The job trains on %1").arg(path));
}

void RunsController::save_job() {
    const widgets::FileQuestion question{tr("Save the job"), tr("Jobs (*.toml)"), QFileDialog::AnyFile};
    widgets::ask_for_file(context_.window, question, [this](const QString& chosen) {
        const QString path = chosen.endsWith(QLatin1String(".toml")) ? chosen : chosen + QStringLiteral(".toml");
        context_.desk.writer().post(nullptr, [this, path, text = context_.desk.runs().draft().text().toStdString(),
                                              send = mailbox_.sender()](const Cancellation&) {
            QString message;
            try {
                write_whole_file(path.toStdString(), text, "job");
            } catch (const Error& error) {
                message = QString::fromUtf8(error.what());
            }
            send([this, path, message] {
                message.isEmpty() ? context_.report(tr("Saved %1").arg(path)) : context_.problem(message);
            });
        });
    });
}

void RunsController::analyze_snapshot(int run, const QString& snapshot) {
    const std::filesystem::path folder = service_.snapshot_folder(run, snapshot);
    if (folder.empty() && !context_.engine.running()) return;
    analysis_.run_snapshot(folder, tr("%1 of %2").arg(snapshot, context_.desk.runs().run(run)->name));
}

/// Offers interrupted runs that are not open; an open one offers it itself.
void RunsController::offer_interrupted() {
    interrupted_.removeIf([this](const QString& folder) { return context_.desk.runs().run_at(folder) != nullptr; });
    context_.start->offer_runs(interrupted_);
    if (interrupted_.isEmpty()) return;
    context_.report(interrupted_.size() == 1
                        ? tr("An interrupted run can be resumed: see the start page")
                        : tr("%1 interrupted runs can be resumed: see the start page").arg(interrupted_.size()));
}

}  // namespace headscope::app
