// SPDX-License-Identifier: GPL-3.0-or-later
// Opening things, and what was open lately.
#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QToolButton>
#include <algorithm>
#include <chrono>
#include <thread>

#include "app/window/files/copy_file.h"
#include "app/window/files/model_place.h"
#include "app/window/main_window.h"
#include "core/base/ask_aside.h"
#include "core/base/error.h"
#include "core/base/file_identity.h"
#include "widgets/file_dialog.h"
#include "widgets/panels/export_dialog.h"
#include "widgets/panels/start_page.h"
#include "widgets/panels/text_panel.h"
#include "widgets/training/facts.h"

namespace headscope::app {
namespace {

constexpr std::size_t kMostRecent = 24;
constexpr std::chrono::milliseconds kRecentPatience{200};
const char kRecentItems = 0;  ///< owner of tasks that look at them

enum class PathKind { model, analysis, run, job, text };

/// What a path most likely is; asks the disk, so not on the window's thread.
PathKind kind_of(const QString& path) {
    if (Opener::looks_like_analysis(path)) return PathKind::analysis;
    const QFileInfo info(path);
    if (info.isDir() && looks_like_run(path)) return PathKind::run;
    if (info.isDir() || !info.exists()) return PathKind::model;
    if (path.endsWith(QLatin1String(".toml"))) return PathKind::job;
    for (const char* ending : {".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".index.json", "config.json"})
        if (path.endsWith(QLatin1String(ending))) return PathKind::model;
    return PathKind::text;
}

}  // namespace

void MainWindow::choose_model() {
    widgets::ask_for_file(this,
                          {tr("Open a checkpoint: a folder with config.json and weights"), {}, QFileDialog::Directory},
                          [this](const QString& path) { open_path(path); });
}

void MainWindow::choose_analysis() {
    widgets::ask_for_file(this,
                          {tr("Open an analysis"), tr("Analyses and evaluations (*.h5 *.partial);;All files (*)")},
                          [this](const QString& path) { open_path(path); });
}

void MainWindow::open_sample() {
    const std::filesystem::path folder =
        std::filesystem::path(engine_.resources()) / "samples" / "llama-kjv-shakespeare";
    widgets::TextChoice choice = text_->choice();
    choice.sources.assign(1, {widgets::TextSource::Kind::example, QStringLiteral("lantern")});
    choice.length = 0;
    text_->set_choice(choice);
    open_path(QString::fromStdString(folder.string()));
}

void MainWindow::open_path(const QString& path) {
    touched_ = true;
    if (brought_back(path)) given_ << path;  // for the user now, too
    ask_disk(path, [this, path, runs = running_study_ != 0, send = mailbox_.sender()] {
        const PathKind kind = kind_of(path);
        const AdapterFound adapter = kind == PathKind::model ? find_adapter(path) : AdapterFound{};
        const auto file = runs ? identity_of(path.toStdString()) : std::nullopt;
        send([this, path, kind, adapter, file] {
            widgets::Study* running = file ? desk_.study(running_study_) : nullptr;
            if (running && running->running() && running->is(*file))
                show_study(running);  // it is being written: no other process can read it
            else if (kind == PathKind::analysis)
                opener_.open(path);
            else if (kind == PathKind::run)
                service_.open(path);
            else if (kind != PathKind::model && restoring_ && given_.contains(path))
                given_texts_ << path;  // what the session brings back would take its place
            else if (kind == PathKind::job)
                read_job(path);
            else if (kind == PathKind::text)
                take_text(path);
            else if (!adapter.text.isEmpty())
                offer_adapter(path, adapter);
            else
                engine_.open_model(path);
        });
    });
}

/// In the order in which it was asked, but for a disk that takes long: the others' turn comes, and its own when it
/// answers.
void MainWindow::ask_disk(const QString& path, const std::function<void()>& question) {
    looker_.post(this, [this, path, question, send = mailbox_.sender()](const Cancellation&) {
        try {
            const auto answer = ask_aside([question] { return question(), true; });
            if (answer.wait_for(kRecentPatience) != std::future_status::ready)
                send([this, path] { tell(tr("Waiting for the disk of %1").arg(path)); });
        } catch (const Error&) {
            question();  // no thread to ask on
        }
    });
}

void MainWindow::show_study(widgets::Study* study) {
    desk_.select_study(study->id());
    show_page(Page::analysis);
    remember(*study);
}

void MainWindow::show_model(int model) {
    text_->begin_with_model(model);
    for (const auto& card : engine_.models())
        if (card.id == model && card.tensors_only) return show_tensors(model);
    // Its notice says what comes next; a snapshot's and a view's wish to run come with their texts.
    if (page() != Page::analysis && waiting_snapshot_.isEmpty() && !waiting_wish_) show_page(Page::analysis);
    text_->focus_next_step();
}

void MainWindow::opened_study(widgets::Study* study) {
    const QString path = QString::fromStdString(study->path().string());
    give_name(study);
    const bool of_run = !run_file_.isEmpty() && path == run_file_;
    if (of_run) {
        run_file_.clear();
        for (const auto& [sequence, site] : early_sites_) study->tell_site_done(sequence, site);
        early_sites_.clear();
    }
    if (of_run && engine_.running()) {
        running_study_ = study->id();
        study->set_running();
        desk_.select_study(study->id());
    } else {
        brought_back(path) ? remember(*study) : show_study(study);
        if (of_run && study->complete() && run_choice_ && !run_choice_->switch_off.isEmpty()) show_changes();
    }
    const auto tell_problems = [this, study] {
        for (const QString& text : study->problems()) problem(tr("%1: %2").arg(study->name(), text));
    };
    tell_problems();
    connect(study, &widgets::Study::problems_found, this, tell_problems);
    connect(study, &widgets::Study::arrived, this, [this, study] { picture_recent(study); });
    picture_recent(study);
    settled(path);
    if (leftovers_.contains(path)) offer_leftovers();
}

void MainWindow::remember(const widgets::Study& study) {
    remember({QString::fromStdString(study.path().string()),
              study.name(),
              tr("%1, %2").arg(study.model_name(), widgets::sequences_words(study.sequences())),
              QStringLiteral("analysis"),
              {}});
}

void MainWindow::remember(const Recent& item) {
    Recent kept = item;
    for (const Recent& old : recent_)
        if (old.path == item.path && kept.thumbnail.isEmpty()) kept.thumbnail = old.thumbnail;
    std::erase_if(recent_, [&](const Recent& old) { return old.path == item.path; });
    recent_.insert(recent_.begin(), kept);
    if (recent_.size() > kMostRecent) recent_.resize(kMostRecent);
    show_recent();
    save_soon();
}

void MainWindow::picture_recent(widgets::Study* study) {
    if (!study->complete()) return;
    const auto picture = study->ask<QByteArray>("recent", -3, -3, [dark = desk_.theme().dark](const auto& file) {
        return std::make_shared<const QByteArray>(recent_picture(file, dark));
    });
    if (!picture) return;
    const QString path = QString::fromStdString(study->path().string());
    for (Recent& item : recent_) {
        if (item.path != path || !item.thumbnail.isEmpty()) continue;
        item.thumbnail = *picture;
        show_recent();
        save_soon();
    }
}

void MainWindow::show_recent() {
    // Whether they are still there is asked where it may take time: a disk that sleeps, a network that is gone.
    // Two hundred files that are dropped at once are one list.
    recents_.cancel(&kRecentItems);
    recents_.post(&kRecentItems, [this, items = recent_, send = mailbox_.sender()](const Cancellation& stop) {
        std::vector<widgets::RecentItem> shown;
        QStringList paths;
        for (const Recent& item : items) {
            widgets::RecentItem recent;
            recent.kind = item.kind == QLatin1String("model")        ? widgets::RecentItem::Kind::model
                          : item.kind == QLatin1String("run")        ? widgets::RecentItem::Kind::run
                          : item.kind == QLatin1String("evaluation") ? widgets::RecentItem::Kind::evaluation
                                                                     : widgets::RecentItem::Kind::analysis;
            recent.path = item.path;
            recent.name = item.name;
            recent.detail = item.detail;
            recent.thumbnail = QImage::fromData(item.thumbnail, "PNG");
            shown.push_back(std::move(recent));
            paths << ModelPlace::of(item.path).path;
        }
        using State = PathStates::State;
        // The list does not wait for a disk that sleeps: what it says comes later.
        for (bool first = true; !stop.requested(); first = false) {
            if (!first) std::this_thread::sleep_for(kRecentPatience);
            const auto states = states_of_recent_.ask(paths, kRecentPatience);
            paths.clear();
            bool changed = first;
            for (widgets::RecentItem& item : shown) {
                const auto state = states.find(ModelPlace::of(item.path).path);
                if (state == states.end()) continue;
                changed = changed || state->second != State::silent;
                item.missing = state->second == State::missing;
                item.silent = state->second == State::silent;
                if (item.silent) paths << ModelPlace::of(item.path).path;
            }
            if (changed && !stop.requested()) send([this, shown] { start_->set_recent(shown); });
            if (paths.isEmpty()) break;
        }
    });
}

void MainWindow::save_copy(int id) {
    const widgets::Study* study = desk_.study(id);
    if (!study || !study->complete()) return;
    const std::filesystem::path source = study->path();
    widgets::ask_for_file(
        this, {tr("Save a copy of the analysis"), tr("Analyses (*.headscope.h5)"), QFileDialog::AnyFile},
        [this, source](const QString& chosen) {
            QString path = chosen;
            if (!path.endsWith(QLatin1String(".h5"))) path += QStringLiteral(".headscope.h5");
            copier_.post(this, [this, source, path, send = mailbox_.sender()](const Cancellation& cancellation) {
                try {
                    copy_whole(source, path.toStdString(), cancellation);
                    send([this, path] { tell(tr("Saved %1").arg(path)); });
                } catch (const Stopped&) {
                } catch (const Error& error) {
                    const QString message = QString::fromUtf8(error.what());
                    send([this, message] { problem(message); });
                }
            });
        });
}

void MainWindow::export_front() {
    const widgets::Study* study = desk_.current();
    const widgets::View* view = front_view();
    const auto wish = view ? view->figure() : std::nullopt;
    // What is in front may be a list without a figure.
    const QList<QAction*> commands = view ? view->commands() : QList<QAction*>();
    const auto table = std::find_if(commands.begin(), commands.end(), [this](const QAction* command) {
        return command->objectName() == front_name() + QLatin1String("_save_table");
    });
    if (wish) {
        export_figure(*wish);
    } else if (table != commands.end()) {
        tell(tr("No tensor is chosen: their list is saved as CSV"));
        (*table)->trigger();
    } else if (study && page() != Page::training) {
        export_figure({"indicators",
                       {},
                       {study->id()},
                       {},
                       tr("What is in front has no figure as it is now: these are the indicators of the analysis.")});
    } else {
        tell(desk_.runs().runs().empty() && desk_.evaluations().all().empty()
                 ? tr("There is no figure of what is shown: open a run or an evaluation first")
                 : tr("This view has no figure as it is now: runs, their timeline, costs and evaluations have"));
    }
}

/// Buttons of the two things that every view's figure can become.
QWidget* MainWindow::make_figure_buttons(QWidget* parent) {
    auto* buttons = new QWidget(parent);
    auto* row = new QHBoxLayout(buttons);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(2);
    const auto add = [&](const char* name, const QString& text) {
        auto* button = new QToolButton(buttons);
        QAction* action = by_name_.at(QLatin1String(name));
        button->setObjectName(QLatin1String(name) + QStringLiteral("_button"));
        button->setText(text);
        button->setAccessibleName(text);
        button->setToolTip(action->toolTip());
        button->setAutoRaise(true);
        connect(button, &QToolButton::clicked, action, &QAction::trigger);
        row->addWidget(button);
    };
    add("copy_picture", tr("Copy"));
    add("export", tr("Export…"));
    return buttons;
}

widgets::ExportDialog* MainWindow::export_dialog() {
    if (!export_) {
        export_ = new widgets::ExportDialog(&desk_, options_.program, this);
        connect(export_, &widgets::ExportDialog::told, this, &MainWindow::tell);
        connect(export_, &widgets::ExportDialog::failed, this, &MainWindow::problem);
    }
    return export_;
}

void MainWindow::export_figure(const widgets::FigureWish& wish) {
    export_dialog()->show_wish(wish);
    export_->show();
    export_->raise();
    export_->activateWindow();
}

void MainWindow::closeEvent(QCloseEvent* event) {
    if (!ask_about_work()) {
        event->ignore();
        return;
    }
    service_.stop_calibrating();
    save_timer_.stop();
    save_now(true);
    recording_ = false;
    engine_.stop();
    event->accept();
    // Not left to the last window: a dialog that is open would keep the process, with nothing to end it by.
    QMetaObject::invokeMethod(
        qApp, [] { QCoreApplication::exit(0); }, Qt::QueuedConnection);
}

}  // namespace headscope::app
