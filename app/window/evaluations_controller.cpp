// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/evaluations_controller.h"

#include <algorithm>

#include "app/window/files_controller.h"
#include "app/window/pages_controller.h"
#include "app/window/training/evaluate_offer.h"
#include "core/base/error.h"
#include "core/figures/evaluation_groups.h"
#include "core/mixers/types/type.h"
#include "core/store/evaluation/evaluation_file.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/file_dialog.h"
#include "widgets/panels/evaluate_dialog.h"

namespace headscope::app {
namespace {

const QStringList kViews{QStringLiteral("context_perplexity"), QStringLiteral("ablation"), QStringLiteral("scaling")};

/// The view of its own that a file's first result has; empty: the three above draw it.
QString own_view(const store::Evaluation& record) {
    for (const char* recipe : {"position-perplexity", "tasks", "ruler", "latency"})
        if (!record.results.empty() && figures::draws(recipe, record.results.front()))
            return QString::fromLatin1(recipe).replace(QLatin1Char('-'), QLatin1Char('_'));
    return {};
}

/// The view of the three that shows most of a file.
QString best_view(const store::Evaluation& record) {
    const auto& results = record.results;
    if (std::any_of(results.begin(), results.end(), [&](const auto& one) {
            return one.length != results.front().length && one.task == results.front().task;
        }))
        return kViews[0];
    const bool mixed = std::any_of(record.models.begin(), record.models.end(),
                                   [](const auto& model) { return !mixers::is_standard(model.mixer); });
    return mixed ? kViews[1] : kViews[2];
}

}  // namespace

EvaluationsController::EvaluationsController(Context& context, PagesController& pages, FilesController& files)
    : context_(context), pages_(pages), files_(files), service_(&context.desk, context.program) {
    build_actions();
    connect_shelf();
    connect(&context_, &Context::updated, this, &EvaluationsController::update);
    connect(&context_.opener, &Opener::evaluation_read, this, &EvaluationsController::opened);
    connect(&service_, &EvaluationService::written, this, [this](const QString& path) {
        context_.report(tr("Evaluated: %1").arg(path));
        context_.opener.open(path);
    });
    connect(&service_, &EvaluationService::failed, &context_, &Context::problem);
    const auto offer_again = [this] {
        if (dialog_ && dialog_->isVisible()) offer_models();
    };
    connect(&context_.engine, &Engine::models_changed, this, offer_again);
    connect(context_.text, &widgets::TextPanel::changed, this, offer_again);
    connect(&context_.desk.runs(), &widgets::RunShelf::runs_changed, this, offer_again);
    connect(&context_, &Context::devices_listed, this, [this] {
        if (dialog_) dialog_->set_devices(*context_.devices);
    });
    connect(context_.tree, &widgets::ProjectTree::evaluation_chosen, this, [this](int id) {
        if (const auto* one = context_.desk.evaluations().find(id)) show(*one->record);
    });
    connect(context_.tree, &widgets::ProjectTree::evaluation_close_wanted, &context_.desk.evaluations(),
            &widgets::EvaluationShelf::remove);
}

void EvaluationsController::connect_shelf() {
    using widgets::EvaluationShelf;
    const EvaluationShelf* shelf = &context_.desk.evaluations();
    connect(shelf, &EvaluationShelf::changed, &context_, &Context::updated);
    connect(shelf, &EvaluationShelf::changed, &context_, &Context::changed);
    connect(shelf, &EvaluationShelf::progressed, &context_, &Context::updated);
    connect(shelf, &EvaluationShelf::plan_wanted, this, &EvaluationsController::show_dialog);
    connect(shelf, &EvaluationShelf::open_wanted, this, &EvaluationsController::choose_file);
    connect(shelf, &EvaluationShelf::evaluating_changed, this, [this] {
        Q_EMIT context_.updated();
        if (dialog_) dialog_->set_busy(running());
        if (running()) context_.report(context_.desk.evaluations().evaluating());
    });
}

void EvaluationsController::build_actions() {
    const auto add = [&](const char* name, const QString& text, const QString& tip, std::function<void()> act) {
        context_.actions.add(name, text, {}, tip, std::move(act));
    };
    add("open_evaluation", tr("Open an eval&uation…"),
        tr("Open a file NAME.evaluation.h5, as evaluate and reproduce write it"), [this] { choose_file(); });
    add("evaluate_models", tr("Evaluate mo&dels…"), tr("Choose models, tasks and data: a paper's table, items, texts"),
        [this] { show_dialog(); });
    add("evaluate_runs", tr("Evaluate the open &runs"),
        tr("Measure perplexity and accuracy of their best snapshots at several context lengths"),
        [this] { service_.evaluate(); });
    add("stop_evaluating", tr("Stop evaluating"), tr("Discards unfinished results"), [this] { service_.stop(); });
    add("close_evaluations", tr("Close the evaluations"), tr("Close them; their files stay"), [this] {
        while (!context_.desk.evaluations().all().empty())
            context_.desk.evaluations().remove(context_.desk.evaluations().all().back().id);
    });
}

void EvaluationsController::update() {
    const auto enable = [this](const char* name, bool on) { context_.actions.enable(name, on); };
    const auto& runs = context_.desk.runs().runs();
    const bool busy = !context_.desk.evaluations().evaluating().isEmpty();
    const bool some =
        std::any_of(runs.begin(), runs.end(), [](const widgets::Run& run) { return !run.record->snapshots.empty(); });
    enable("evaluate_runs", some && !busy);
    enable("evaluate_models", !busy);
    enable("stop_evaluating", busy);
    enable("close_evaluations", !context_.desk.evaluations().all().empty());
}

bool EvaluationsController::running() const {
    return !context_.desk.evaluations().evaluating().isEmpty();
}

QString EvaluationsController::status() const {
    if (!running()) return {};
    const QString& progress = context_.desk.evaluations().progress();
    return progress.isEmpty() ? tr("evaluating") : tr("evaluating: %1").arg(progress);
}

void EvaluationsController::choose_file() {
    widgets::ask_for_file(
        context_.window,
        {tr("Open an evaluation"), tr("Evaluations (*.evaluation.h5);;HDF5 files (*.h5);;All files (*)")},
        [this](const QString& path) { context_.opener.open(path); });
}

void EvaluationsController::opened(const QString& path, const std::shared_ptr<const store::Evaluation>& record) {
    const int id = context_.desk.evaluations().take(path, record);
    const widgets::OpenEvaluation& one = *context_.desk.evaluations().find(id);
    files_.recent().remember(
        {one.path, one.name, widgets::EvaluationShelf::about(*record), QStringLiteral("evaluation"), {}});
    if (!context_.restoration.brought_back(path)) show(*record);
    context_.restoration.settle(path);
}

void EvaluationsController::show(const store::Evaluation& record) {
    const QString front = pages_.front_name(), own = own_view(record);
    pages_.show_view(!own.isEmpty() ? own : kViews.contains(front) ? front : best_view(record));
}

void EvaluationsController::show_dialog() {
    if (!dialog_) make_dialog();
    offer_models();
    dialog_->show();
    dialog_->raise();
    dialog_->activateWindow();
}

void EvaluationsController::make_dialog() {
    dialog_ = new widgets::EvaluateDialog(context_.window);
    connect(dialog_, &widgets::EvaluateDialog::evaluate_wanted, this,
            [this](const QStringList& words, const QStringList& names) { service_.evaluate(words, names); });
    connect(dialog_, &widgets::EvaluateDialog::changed, this, [this] {
        choices_ = widgets::to_json(dialog_->choice());
        Q_EMIT context_.changed();
    });
    connect(dialog_, &widgets::EvaluateDialog::text_wanted, this,
            [this](const QString&, const QString& content) { write_typed(content); });
    dialog_->set_busy(running());
    if (context_.devices) dialog_->set_devices(*context_.devices);
    show_offer();
    dialog_->set_choice(widgets::evaluate_choice_from(choices_));
}

void EvaluationsController::write_typed(const QString& content) {
    context_.disk.post(this, [this, content, folder = context_.folder / "evaluations" / "texts",
                              send = mailbox_.sender()](const Cancellation&) {
        try {
            send([this, path = write_text(folder, content)] { dialog_->set_data(path); });
        } catch (const Error& error) {
            send([this, message = QString::fromUtf8(error.what())] { context_.problem(message); });
        }
    });
}

/// Shows the runs at once, and their snapshots when the disk answers.
void EvaluationsController::offer_models() {
    show_offer();
    for (const widgets::Run& open : context_.desk.runs().runs()) {
        const EvaluatedRun run{open.path, open.name, open.record};
        context_.ask_disk(run.folder, [this, run, send = mailbox_.sender()] {
            send([this, model = offered_run(run)] {
                if (const auto known = runs_.find(model.place); known != runs_.end() && known->second == model) return;
                runs_[model.place] = model;
                show_offer();
            });
        });
    }
}

void EvaluationsController::show_offer() {
    widgets::EvaluateOffer offer = offered_tasks();
    for (const auto& card : context_.engine.models()) offer.models.push_back(offered_model(card));
    for (const widgets::Run& run : context_.desk.runs().runs()) {
        const auto known = runs_.find(run.path);
        offer.models.push_back(
            known != runs_.end() ? known->second
                                 : widgets::EvaluateOffer::Model{run.path, run.name, run.path, tr("reading…"), false});
    }
    offer.texts =
        offered_texts(context_.engine.resources(), context_.text->examples(), context_.text->choice().sources);
    dialog_->set_offer(offer);
}

}  // namespace headscope::app
