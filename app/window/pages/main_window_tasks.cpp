// SPDX-License-Identifier: GPL-3.0-or-later
// Commands of the command line as dialogs: reproduce, convert, swap.
#include <QDir>
#include <QFile>
#include <QLabel>
#include <QMenuBar>

#include "app/commands/replay_pace.h"
#include "app/window/files/model_place.h"
#include "app/window/main_window.h"
#include "core/base/error.h"
#include "core/reproduce/papers.h"
#include "core/reproduce/plan.h"
#include "widgets/panels/convert_dialog.h"
#include "widgets/panels/guide_window.h"
#include "widgets/panels/reproduce_dialog.h"
#include "widgets/panels/text_panel.h"

namespace headscope::app {

void MainWindow::build_task_actions() {
    QMenu* menu = menuBar()->addMenu(tr("T&ools"));
    const auto add = [&](const char* name, const QString& text, const QString& tip, std::function<void()> act) {
        menu->addAction(add_action(name, text, {}, tip, std::move(act)));
    };
    add("reproduce", tr("&Reproduce a paper…"), tr("Trains, evaluates and reports, small, in a process of its own"),
        [this] {
            if (!reproduce_) {
                std::vector<widgets::ReproduceDialog::Paper> papers;
                for (const reproduce::Paper& paper : reproduce::papers())
                    papers.push_back({QString::fromStdString(paper.name), QString::fromStdString(paper.title),
                                      QString::fromStdString(paper.summary), paper.has_seeds});
                reproduce_ = new widgets::ReproduceDialog(papers, reproduce::Settings().minutes, this);
                make_task(reproduce_);
                connect(reproduce_, &widgets::ReproduceDialog::outlook_wanted, this, &MainWindow::look_ahead);
            }
            show_task(reproduce_);
            reproduce_->ask_outlook();
        });
    add("convert", tr("&Convert a checkpoint…"), tr("To safetensors, in another number type"), [this] {
        if (!convert_) {
            convert_ = new widgets::ConvertDialog(widgets::ConvertDialog::What::type, this);
            make_task(convert_);
        }
        show_task(convert_);
    });
    add("swap_mixers", tr("&Swap mixers…"), tr("A checkpoint with other mixers in some layers"), [this] {
        if (!swap_) {
            swap_ = new widgets::ConvertDialog(widgets::ConvertDialog::What::mixers, this);
            make_task(swap_);
        }
        show_task(swap_);
    });
    add("stop_task", tr("Stop the command"), tr("That one of these dialogs started"), [this] { tasks_.stop(); });
    connect(&tasks_, &TaskService::changed, this, &MainWindow::update_tasks);
    connect(&tasks_, &TaskService::stopped, this, [this] {
        if (task_) task_->set_failure(tr("Stopped"));
        tell(tr("%1: stopped").arg(tasks_.title()));
    });
    connect(&tasks_, &TaskService::ended, this, [this](const QString& failure) {
        if (!failure.isEmpty()) {
            if (task_) task_->set_failure(failure);
            return problem(failure);
        }
        if (task_) task_->set_result(tr("Done: %1").arg(task_->output()));
        tell(tr("%1: done").arg(tasks_.title()));
    });
    connect(&engine_, &Engine::models_changed, this, &MainWindow::offer_task_models);
}

/// Whether so many minutes can decide the paper's claims, by its last calibration on this machine.
void MainWindow::look_ahead(const QString& paper, double minutes, int seeds, int threads) {
    static const char outlooks = 0;  // an owner of their own: the latest choice counts
    reproduce::Settings settings;
    settings.minutes = minutes;
    settings.seeds = seeds;
    settings.threads = threads;
    looker_.cancel(&outlooks);
    looker_.post(&outlooks, [this, paper, settings, send = mailbox_.sender()](const Cancellation&) {
        QString warning;
        try {
            warning = QString::fromStdString(minutes_warning(paper.toStdString(), settings));
        } catch (const Error&) {  // nothing is known then
        }
        send([this, paper, minutes = settings.minutes, warning] {
            if (reproduce_) reproduce_->set_outlook(paper, minutes, warning);
        });
    });
}

void MainWindow::make_task(widgets::TaskDialog* dialog) {
    connect(dialog, &widgets::TaskDialog::start_wanted, this, [this, dialog](const QStringList& words) {
        if (tasks_.running()) return;
        task_ = dialog;
        tasks_.start(dialog->windowTitle(), words);
    });
    connect(dialog, &widgets::TaskDialog::stop_wanted, &tasks_, &TaskService::stop);
    connect(dialog, &widgets::TaskDialog::open_wanted, this,
            [this, dialog](const QString& output) { dialog == reproduce_ ? show_report(output) : open_path(output); });
}

void MainWindow::show_task(widgets::TaskDialog* dialog) {
    offer_task_models();
    dialog->set_running(tasks_.running(), task_ == dialog);
    dialog->show();
    dialog->raise();
    dialog->activateWindow();
}

void MainWindow::offer_task_models() {
    std::vector<widgets::ConvertDialog::Source> sources;
    QString chosen;
    for (const auto& card : engine_.models()) {
        const ModelPlace place = ModelPlace::of(card.path);
        sources.push_back({place.path, place.adapter, card.name, card.layers});
        if (card.id == text_->choice().model) chosen = place.path;
    }
    for (widgets::ConvertDialog* dialog : {convert_, swap_})
        if (dialog) dialog->set_sources(sources, chosen);
}

void MainWindow::update_tasks() {
    by_name_.at(QStringLiteral("stop_task"))->setEnabled(tasks_.running());
    for (widgets::TaskDialog* dialog : std::initializer_list<widgets::TaskDialog*>{reproduce_, convert_, swap_})
        if (dialog) dialog->set_running(tasks_.running(), task_ == dialog);
    if (task_ && tasks_.running()) task_->set_progress(tasks_.progress());
    update_training();
}

/// The report as text; what it was made of opens from the folder like anything else.
void MainWindow::show_report(const QString& folder) {
    const auto read = [folder](const QString& page) {
        QFile file(QDir(folder).filePath(page));
        return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
    };
    auto* window = new widgets::GuideWindow(read, this);
    window->setObjectName(QStringLiteral("report_window"));
    window->setWindowTitle(tr("Report: %1").arg(folder));
    window->setAttribute(Qt::WA_DeleteOnClose);
    window->show();
    if (!window->show_topic(QStringLiteral("report.md"), {}))
        problem(tr("[%1] expected the report of a replay, report.md; found none").arg(folder));
}

}  // namespace headscope::app
