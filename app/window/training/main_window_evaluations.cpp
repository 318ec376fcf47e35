// SPDX-License-Identifier: GPL-3.0-or-later
// Evaluations in the window: opened, listed, made of the runs that are open.
#include <QMenu>
#include <algorithm>

#include "app/window/main_window.h"
#include "core/figures/recipes/evaluation_groups.h"
#include "core/store/evaluation_file.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/file_dialog.h"
#include "widgets/panels/project_tree.h"

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
    connect(&shelf, &EvaluationShelf::evaluating_changed, this, [this] {
        update_actions();
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
    add("open_evaluation", tr("Open an eval&uation…"), tr("A file NAME.evaluation.h5, as evaluate and reproduce write"),
        [this] { choose_evaluation(); });
    add("evaluate_runs", tr("Evaluate the open &runs"),
        tr("Perplexity and accuracy of their best snapshots, at several context lengths"),
        [this] { evaluations_.evaluate(); });
    add("stop_evaluating", tr("Stop evaluating"), tr("What is not written yet is lost"),
        [this] { evaluations_.stop(); });
    add("close_evaluations", tr("Close the evaluations"), tr("Their files stay"), [this] {
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

}  // namespace headscope::app
