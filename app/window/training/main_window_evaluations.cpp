// SPDX-License-Identifier: GPL-3.0-or-later
// Evaluations in the window: opened, listed, made of the runs that are open.
#include <QFileInfo>
#include <QMenu>
#include <algorithm>

#include "app/window/files/model_place.h"
#include "app/window/main_window.h"
#include "app/window/training/evaluate_offer.h"
#include "core/figures/recipes/evaluation_groups.h"
#include "core/store/evaluation_file.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/file_dialog.h"
#include "widgets/panels/evaluate_dialog.h"
#include "widgets/panels/project_tree.h"
#include "widgets/panels/text_panel.h"

namespace headscope::app {
namespace {

const QStringList kViews{QStringLiteral("context_perplexity"), QStringLiteral("ablation"), QStringLiteral("scaling")};

/// The view that the first of a file's results have for themselves; empty: those above draw them.
QString own_view(const store::Evaluation& record) {
    for (const char* recipe : {"position-perplexity", "tasks", "ruler", "latency"})
        if (!record.results.empty() && figures::draws(recipe, record.results.front()))
            return QString::fromLatin1(recipe).replace(QLatin1Char('-'), QLatin1Char('_'));
    return {};
}

/// The view of the three that has most to say of a file.
QString best_view(const store::Evaluation& record) {
    const auto& results = record.results;
    if (std::any_of(results.begin(), results.end(), [&](const auto& one) {
            return one.length != results.front().length && one.task == results.front().task;
        }))
        return kViews[0];
    const bool mixed = std::any_of(record.models.begin(), record.models.end(),
                                   [](const auto& model) { return model.mixer != "standard"; });
    return mixed ? kViews[1] : kViews[2];
}

}  // namespace

void MainWindow::connect_evaluations() {
    using widgets::EvaluationShelf;
    EvaluationShelf& shelf = desk_.evaluations();
    connect(&opener_, &Opener::evaluation_read, this, &MainWindow::opened_evaluation);
    connect(&evaluations_, &EvaluationService::written, this, [this](const QString& path) {
        tell(tr("Evaluated: %1").arg(path));
        opener_.open(path);
    });
    connect(&evaluations_, &EvaluationService::failed, this, &MainWindow::problem);
    connect(&shelf, &EvaluationShelf::changed, this, [this] {
        update_actions();
        save_soon();
    });
    connect(&shelf, &EvaluationShelf::progressed, this, &MainWindow::update_training);
    connect(&shelf, &EvaluationShelf::plan_wanted, this, &MainWindow::ask_what_to_evaluate);
    connect(&shelf, &EvaluationShelf::analyse_wanted, this, &MainWindow::analyse_item);
    const auto offer_again = [this] {
        if (evaluate_ && evaluate_->isVisible()) offer_models();
    };
    connect(&engine_, &Engine::models_changed, this, offer_again);
    connect(text_, &widgets::TextPanel::changed, this, offer_again);
    connect(&desk_.runs(), &widgets::RunShelf::runs_changed, this, offer_again);
    connect(&shelf, &EvaluationShelf::evaluating_changed, this, [this] {
        update_actions();
        if (evaluate_) evaluate_->set_busy(!desk_.evaluations().evaluating().isEmpty());
        if (const QString& words = desk_.evaluations().evaluating(); !words.isEmpty()) tell(words);
    });
    connect(&shelf, &EvaluationShelf::open_wanted, this, &MainWindow::choose_evaluation);
    connect(tree_, &widgets::ProjectTree::evaluation_chosen, this, [this](int id) {
        if (const auto* one = desk_.evaluations().find(id)) show_evaluation(*one->record);
    });
    connect(tree_, &widgets::ProjectTree::evaluation_close_wanted, &shelf, &EvaluationShelf::remove);
}

void MainWindow::build_evaluation_actions(QMenu* menu) {
    const auto add = [&](const char* name, const QString& text, const QString& tip, std::function<void()> act) {
        menu->addAction(add_action(name, text, {}, tip, std::move(act)));
    };
    menu->addSeparator();
    add("open_evaluation", tr("Open an eval&uation…"),
        tr("Open a file NAME.evaluation.h5, as evaluate and reproduce write it"), [this] { choose_evaluation(); });
    add("evaluate_models", tr("Evaluate mo&dels…"), tr("Choose models, tasks and data: a paper's table, items, texts"),
        [this] { ask_what_to_evaluate(); });
    add("evaluate_runs", tr("Evaluate the open &runs"),
        tr("Measure perplexity and accuracy of their best snapshots at several context lengths"),
        [this] { evaluations_.evaluate(); });
    add("stop_evaluating", tr("Stop evaluating"), tr("Discards unfinished results"), [this] { evaluations_.stop(); });
    add("close_evaluations", tr("Close the evaluations"), tr("Close them; their files stay"), [this] {
        while (!desk_.evaluations().all().empty()) desk_.evaluations().remove(desk_.evaluations().all().back().id);
    });
}

void MainWindow::update_evaluations() {
    const auto enable = [this](const char* name, bool on) { by_name_.at(QLatin1String(name))->setEnabled(on); };
    const auto& runs = desk_.runs().runs();
    const bool busy = !desk_.evaluations().evaluating().isEmpty();
    const bool some =
        std::any_of(runs.begin(), runs.end(), [](const widgets::Run& run) { return !run.record->snapshots.empty(); });
    enable("evaluate_runs", some && !busy);
    enable("evaluate_models", !busy);
    enable("stop_evaluating", busy);
    enable("close_evaluations", !desk_.evaluations().all().empty());
}

void MainWindow::choose_evaluation() {
    widgets::ask_for_file(
        this, {tr("Open an evaluation"), tr("Evaluations (*.evaluation.h5);;HDF5 files (*.h5);;All files (*)")},
        [this](const QString& path) { opener_.open(path); });
}

void MainWindow::opened_evaluation(const QString& path, const std::shared_ptr<const store::Evaluation>& record) {
    const int id = desk_.evaluations().take(path, record);
    const widgets::OpenEvaluation& one = *desk_.evaluations().find(id);
    remember({one.path, one.name, widgets::EvaluationShelf::about(*record), QStringLiteral("evaluation"), {}});
    if (!brought_back(path)) show_evaluation(*record);
    settled(path);
}

void MainWindow::show_evaluation(const store::Evaluation& record) {
    const QString front = front_name(), own = own_view(record);
    show_view(!own.isEmpty() ? own : kViews.contains(front) ? front : best_view(record));
}

void MainWindow::ask_what_to_evaluate() {
    if (!evaluate_) {
        evaluate_ = new widgets::EvaluateDialog(this);
        connect(evaluate_, &widgets::EvaluateDialog::evaluate_wanted, this,
                [this](const QStringList& words, const QStringList& names) { evaluations_.evaluate(words, names); });
        connect(evaluate_, &widgets::EvaluateDialog::changed, this, [this] {
            evaluate_kept_ = widgets::to_json(evaluate_->choice());
            save_soon();
        });
        connect(evaluate_, &widgets::EvaluateDialog::text_wanted, this, [this](const QString&, const QString& content) {
            looker_.post(this, [this, content, folder = data_ / "evaluations" / "texts",
                                send = mailbox_.sender()](const Cancellation&) {
                try {
                    send([this, path = write_text(folder, content)] { evaluate_->set_data(path); });
                } catch (const Error& error) {
                    send([this, message = QString::fromUtf8(error.what())] { problem(message); });
                }
            });
        });
        evaluate_->set_busy(!desk_.evaluations().evaluating().isEmpty());
        show_offer();
        evaluate_->set_choice(widgets::evaluate_choice_from(evaluate_kept_));
    }
    offer_models();
    evaluate_->show();
    evaluate_->raise();
    evaluate_->activateWindow();
}

/// What is known of runs is shown at once; their snapshots are looked at aside.
void MainWindow::offer_models() {
    show_offer();
    for (const widgets::Run& open : desk_.runs().runs()) {
        const EvaluatedRun run{open.path, open.name, open.record};
        ask_disk(run.folder, [this, run, send = mailbox_.sender()] {
            send([this, model = offered_run(run)] {
                if (const auto known = offered_runs_.find(model.place);
                    known != offered_runs_.end() && known->second == model)
                    return;
                offered_runs_[model.place] = model;
                show_offer();
            });
        });
    }
}

void MainWindow::show_offer() {
    widgets::EvaluateOffer offer = offered_tasks();
    for (const auto& card : engine_.models()) offer.models.push_back(offered_model(card));
    for (const widgets::Run& run : desk_.runs().runs()) {
        const auto known = offered_runs_.find(run.path);
        offer.models.push_back(known != offered_runs_.end() ? known->second
                                                            : widgets::EvaluateOffer::Model{
                                                                  run.path, run.name, run.path, tr("reading…"), false});
    }
    offer.texts = offered_texts(engine_.resources(), text_->examples(), text_->choice().sources);
    evaluate_->set_offer(offer);
}

void MainWindow::analyse_item(const widgets::ItemAnalysis& item) {
    if (engine_.running()) return problem(tr("An analysis is running: stop it first"));
    ask_disk(item.model, [this, item, send = mailbox_.sender()] {
        const QFileInfo place(item.model);
        widgets::ItemAnalysis found = item;
        found.model = place.absoluteFilePath();
        send([this, found, there = place.exists()] {
            if (!there)
                return problem(tr("[%1] expected the checkpoint that was evaluated on %2; found nothing")
                                   .arg(found.model, found.what));
            waiting_item_ = found;
            const QString model = ModelPlace{found.model, found.adapter}.text();
            if (const int open = engine_.model_at(model); open != 0) return run_item(open);
            tell(tr("Opening %1 for %2").arg(found.model, found.what));
            engine_.open_model(model);
        });
    });
}

/// Beside the texts of the text panel, which stay; what is recorded is what it says.
void MainWindow::run_item(int model) {
    if (engine_.model_at(ModelPlace{waiting_item_->model, waiting_item_->adapter}.text()) != model) return;
    const widgets::ItemAnalysis item = *waiting_item_;
    waiting_item_.reset();
    text_->choose_model(model);
    widgets::TextChoice choice = text_->choice();
    choice.model = model;
    choice.pair.clear();
    choice.target.clear();
    choice.first = widgets::TextChoice::First::automatic;
    choice.chat = choice.repeat_token = choice.windows = false;
    choice.length = 0;
    choice.whole = true;  // an answer that is cut off is no answer
    bool two_towers = false;
    for (const auto& card : engine_.models())
        if (card.id == model) two_towers = card.encoder_decoder;
    const QString text = two_towers ? item.context : item.context + item.continuation;
    if (two_towers) choice.target = item.continuation;
    choice.sources.assign(1, {widgets::TextSource::Kind::text, text});
    run(choice);
    show_page(desk_.studies().empty() ? Page::start : Page::analysis);
}

}  // namespace headscope::app
