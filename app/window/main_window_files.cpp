// SPDX-License-Identifier: GPL-3.0-or-later
// Opening things, what was open lately, and the session.
#include <unistd.h>

#include <QApplication>
#include <QBuffer>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QMimeData>
#include <QPointer>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/window/copy_file.h"
#include "app/window/main_window.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "widgets/desk/head_set_store.h"
#include "widgets/panels/export_dialog.h"
#include "widgets/panels/start_page.h"
#include "widgets/panels/text_panel.h"

namespace headscope::app {
namespace {

constexpr std::size_t kMostRecent = 24;

/// A file dialog that does not hold up the window.
void choose(QWidget* parent, const QString& title, QFileDialog::FileMode mode, const QString& filter,
            std::function<void(const QString&)> act) {
    auto* dialog = new QFileDialog(parent, title, QString(), filter);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setObjectName(QStringLiteral("file_dialog"));
    dialog->setFileMode(mode);
    if (mode == QFileDialog::AnyFile) dialog->setAcceptMode(QFileDialog::AcceptSave);
    QObject::connect(dialog, &QFileDialog::fileSelected, parent, [act = std::move(act)](const QString& path) {
        if (!path.isEmpty()) act(path);
    });
    dialog->open();
}

bool is_alive(qint64 process) {
    return process > 0 && (::kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM);
}

enum class PathKind { model, analysis, text };

/// What a path most likely is; asks the disk, so not on the window's thread.
PathKind kind_of(const QString& path) {
    if (Opener::looks_like_analysis(path)) return PathKind::analysis;
    const QFileInfo info(path);
    if (info.isDir() || !info.exists()) return PathKind::model;
    for (const char* ending : {".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".index.json", "config.json"})
        if (path.endsWith(QLatin1String(ending))) return PathKind::model;
    return PathKind::text;
}

}  // namespace

void MainWindow::choose_model() {
    choose(this, tr("Open a checkpoint: a folder with config.json and weights"), QFileDialog::Directory, {},
           [this](const QString& path) { open_path(path); });
}

void MainWindow::choose_analysis() {
    choose(this, tr("Open an analysis"), QFileDialog::ExistingFile,
           tr("Analyses (*.headscope.h5 *.h5 *.partial);;All files (*)"),
           [this](const QString& path) { open_path(path); });
}

void MainWindow::open_sample() {
    const std::filesystem::path folder =
        std::filesystem::path(engine_.resources()) / "samples" / "llama-kjv-shakespeare";
    widgets::TextChoice choice = text_->choice();
    choice.sources.assign(1, {widgets::TextSource::Kind::example, QStringLiteral("lantern")});
    text_->set_choice(choice);
    open_path(QString::fromStdString(folder.string()));
}

void MainWindow::open_path(const QString& path) {
    saver_.post(this, [this, path, send = mailbox_.sender()](const Cancellation&) {
        const PathKind kind = kind_of(path);
        send([this, path, kind] {
            if (kind == PathKind::analysis)
                opener_.open(path);
            else if (kind == PathKind::text)
                text_->add_file(path);
            else
                engine_.open_model(path);
        });
    });
}

void MainWindow::opened_study(widgets::Study* study) {
    if (engine_.running() && running_study_ == 0 && run_choice_ && !study->complete()) {
        running_study_ = study->id();
        study->set_running();
        desk_.select_study(study->id());
        Q_EMIT desk_.studies_changed();
    } else {
        if (!restoring_) desk_.select_study(study->id());
        remember({QString::fromStdString(study->path().string()),
                  study->name(),
                  tr("%1, %2 sequences").arg(study->model_name()).arg(study->sequences()),
                  QStringLiteral("analysis"),
                  {}});
    }
    connect(study, &widgets::Study::arrived, this, [this, study] { picture_recent(study); });
    picture_recent(study);
    restore_when_open();
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
    saver_.post(this, [this, items = recent_, send = mailbox_.sender()](const Cancellation&) {
        std::vector<widgets::RecentItem> shown;
        for (const Recent& item : items) {
            widgets::RecentItem recent;
            recent.kind = item.kind == QLatin1String("model") ? widgets::RecentItem::Kind::model
                                                              : widgets::RecentItem::Kind::analysis;
            recent.path = item.path;
            recent.name = item.name;
            recent.detail = item.detail;
            recent.missing = !QFileInfo::exists(item.path);
            recent.thumbnail = QImage::fromData(item.thumbnail, "PNG");
            shown.push_back(std::move(recent));
        }
        send([this, shown] { start_->set_recent(shown); });
    });
}

void MainWindow::save_copy(int id) {
    const widgets::Study* study = desk_.study(id);
    if (!study || !study->complete()) return;
    const std::filesystem::path source = study->path();
    choose(this, tr("Save a copy of the analysis"), QFileDialog::AnyFile, tr("Analyses (*.headscope.h5)"),
           [this, source](const QString& chosen) {
               QString path = chosen;
               if (!path.endsWith(QLatin1String(".h5"))) path += QStringLiteral(".headscope.h5");
               saver_.post(this, [this, source, path, send = mailbox_.sender()](const Cancellation& cancellation) {
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

widgets::View* MainWindow::front_view() const {
    for (const auto& [name, view] : views_)
        if (view->isVisible() && !view->visibleRegion().isEmpty()) return view;
    return nullptr;
}

QString MainWindow::front_name() const {
    const widgets::View* front = front_view();
    for (const auto& [name, view] : views_)
        if (view == front) return name;
    return {};
}

void MainWindow::export_front() {
    const widgets::Study* study = desk_.current();
    if (!study) return;
    const widgets::View* view = front_view();
    const auto wish = view ? view->figure() : std::nullopt;
    export_figure(wish.value_or(widgets::FigureWish{"indicators", {}, {study->id()}}));
}

void MainWindow::export_figure(const widgets::FigureWish& wish) {
    if (!export_) {
        export_ = new widgets::ExportDialog(&desk_, options_.program, this);
        connect(export_, &widgets::ExportDialog::told, this, &MainWindow::tell);
    }
    export_->show_wish(wish);
    export_->show();
    export_->raise();
    export_->activateWindow();
}

MainWindow::Stored MainWindow::read_stored() {
    Stored stored;
    try {
        stored.folder = data_folder();
    } catch (const Error& error) {
        stored.problem = QString::fromUtf8(error.what());
        return stored;
    }
    stored.recent = load_recent(stored.folder);
    stored.last = load_session(stored.folder);
    if (stored.last && !stored.last->closed) {
        stored.other_window = is_alive(stored.last->process) && stored.last->process != ::getpid();
        if (!stored.other_window && !stored.last->empty()) put_session_aside(stored.folder);
        stored.last.reset();
    }
    if (!stored.other_window) stored.lost = load_lost_session(stored.folder);
    return stored;
}

void MainWindow::load_state() {
    saver_.post(this, [this, send = mailbox_.sender()](const Cancellation&) {
        auto stored = std::make_shared<const Stored>(read_stored());
        send([this, stored] { begin(*stored); });
    });
}

void MainWindow::begin(const Stored& stored) {
    data_ = stored.folder;
    recent_ = stored.recent;
    show_recent();
    if (!stored.problem.isEmpty()) problem(stored.problem);
    if (stored.other_window) tell(tr("Another window is open: this one's session is not kept"));
    recording_ = !stored.other_window && stored.problem.isEmpty() && options_.restore;
    if (const auto& like = stored.last ? stored.last : stored.lost) {
        theme_ = like->theme;
        if (const auto place = by_name_.find(QStringLiteral("theme_") + theme_); place != by_name_.end())
            place->second->setChecked(true);
        apply_theme();
    }
    if (stored.lost && options_.restore) {
        lost_session_ = stored.lost;
        start_->offer_session(tr("Headscope was not closed the last time (%1). What was open can be brought back.")
                                  .arg(stored.lost->saved.toString(Qt::TextDate)));
    }
    if (stored.last && !stored.last->empty() && options_.restore)
        restore_session(*stored.last);
    else
        open_given_paths();
    begin_recording();
}

void MainWindow::open_given_paths() {
    for (const QString& path : std::exchange(options_.paths, {})) open_path(path);
}

void MainWindow::settle_lost_session(bool bring_back) {
    start_->offer_session({});
    const auto session = std::exchange(lost_session_, std::nullopt);
    saver_.post(this, [folder = data_](const Cancellation&) { drop_lost_session(folder); });
    if (session && bring_back) restore_session(*session);
}

void MainWindow::begin_recording() {
    if (history_) history_->begin();
    save_soon();
}

void MainWindow::restore_session(const Session& session) {
    restoring_ = session;
    waiting_ = static_cast<int>(session.models.size() + session.analyses.size());
    text_->set_choice(widgets::text_choice_from(session.text));
    restore_head_sets(session);
    if (const auto geometry = session.window["geometry"].toString(); !geometry.isEmpty())
        restoreGeometry(QByteArray::fromBase64(geometry.toLatin1()));
    restoreState(QByteArray::fromBase64(session.window["docks"].toString().toLatin1()));
    area_->restoreState(QByteArray::fromBase64(session.window["views"].toString().toLatin1()));
    for (const QString& path : session.models) engine_.open_model(path);
    for (const QString& path : session.analyses) opener_.open(path);
    if (waiting_ > 0) return;
    restoring_.reset();
    open_given_paths();
}

void MainWindow::restore_head_sets(const Session& session) {
    std::vector<workspace::HeadSets> all;
    try {
        for (const std::string& text : session.head_sets) {
            const auto document = parse_json(text, "session.json: head_sets");
            all.push_back(workspace::HeadSets::from_json(JsonView(document, "session.json: head_sets")));
        }
        desk_.head_sets().restore(std::move(all));
    } catch (const Error& error) {
        problem(QString::fromUtf8(error.what()));
    }
}

void MainWindow::restore_when_open() {
    if (!restoring_ || --waiting_ > 0) return;
    const Session session = std::move(*restoring_);
    restoring_.reset();
    text_->choose_model(engine_.model_at(session.chosen_model));
    for (const widgets::Study* study : desk_.studies())
        if (QString::fromStdString(study->path().string()) == session.shown_analysis) desk_.select_study(study->id());
    restore_looks({{"selection", session.selection}, {"views", session.views}});
    if (!session.front.isEmpty()) show_view(session.front);
    open_given_paths();
    begin_recording();
}

QJsonObject MainWindow::looks() const {
    const widgets::Selection& selection = desk_.selection();
    const auto optional = [](const std::optional<std::int64_t>& value) {
        return value ? QJsonValue(static_cast<double>(*value)) : QJsonValue();
    };
    QJsonObject views;
    for (const auto& [name, view] : views_) views[name] = view->state();
    return {{"selection", QJsonObject{{"study", selection.study},
                                      {"sequence", optional(selection.sequence)},
                                      {"site", static_cast<double>(selection.site)},
                                      {"head", static_cast<double>(selection.head)},
                                      {"query", optional(selection.query)},
                                      {"key", optional(selection.key)}}},
            {"views", views}};
}

void MainWindow::restore_looks(const QJsonObject& looks) {
    const QJsonObject stored = looks["selection"].toObject();
    const auto optional = [&](const char* name) -> std::optional<std::int64_t> {
        const QJsonValue value = stored[QLatin1String(name)];
        return value.isDouble() ? std::optional<std::int64_t>(static_cast<std::int64_t>(value.toDouble()))
                                : std::nullopt;
    };
    widgets::Selection selection = desk_.selection();
    const int study = stored["study"].toInt();
    if (desk_.study(study)) selection.study = study;
    selection.sequence = optional("sequence");
    selection.site = static_cast<std::int64_t>(stored["site"].toDouble());
    selection.head = static_cast<std::int64_t>(stored["head"].toDouble());
    selection.query = optional("query");
    selection.key = optional("key");
    desk_.select(selection);
    const QJsonObject views = looks["views"].toObject();
    for (const auto& [name, view] : views_)
        if (views.contains(name)) view->restore(views[name].toObject());
}

Session MainWindow::session(bool closed) const {
    Session session;
    session.saved = QDateTime::currentDateTime();
    session.closed = closed;
    session.process = static_cast<qint64>(::getpid());
    for (const auto& card : engine_.models()) session.models << card.path;
    for (const widgets::Study* study : desk_.studies())
        session.analyses << QString::fromStdString(study->path().string());
    const widgets::TextChoice choice = text_->choice();
    for (const auto& card : engine_.models())
        if (card.id == choice.model) session.chosen_model = card.path;
    if (const widgets::Study* study = desk_.current())
        session.shown_analysis = QString::fromStdString(study->path().string());
    const QJsonObject now = looks();
    session.selection = now["selection"].toObject();
    session.selection.remove(QStringLiteral("study"));  // ids are of this process
    session.views = now["views"].toObject();
    session.text = widgets::to_json(choice);
    session.window = {{"geometry", QString::fromLatin1(saveGeometry().toBase64())},
                      {"docks", QString::fromLatin1(saveState().toBase64())},
                      {"views", QString::fromLatin1(area_->saveState().toBase64())}};
    session.theme = theme_;
    session.front = front_name();
    for (const auto& sets : desk_.head_sets().all()) session.head_sets.push_back(sets.to_json().dump());
    return session;
}

void MainWindow::save_soon() {
    if (recording_ && !save_timer_.isActive()) save_timer_.start();
}

void MainWindow::save_now(bool closed) {
    if (!recording_ || restoring_) return;
    saver_.post(this, [this, folder = data_, now = session(closed), recent = recent_,
                       send = mailbox_.sender()](const Cancellation&) {
        try {
            save_session(folder, now);
            save_recent(folder, recent);
        } catch (const Error& error) {
            const QString message = QString::fromUtf8(error.what());
            send([this, message] { problem(message); });
        }
    });
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls() || event->mimeData()->hasText()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    if (event->mimeData()->hasUrls()) {
        for (const QUrl& url : event->mimeData()->urls()) {
            const QString path = url.toLocalFile();
            if (path.isEmpty()) {
                problem(tr("[%1] expected a file of this machine").arg(url.toString()));
                continue;
            }
            open_path(path);
        }
    } else {
        widgets::TextChoice choice = text_->choice();
        choice.sources.push_back({widgets::TextSource::Kind::text, event->mimeData()->text()});
        text_->set_choice(choice);
    }
    event->acceptProposedAction();
}

void MainWindow::closeEvent(QCloseEvent* event) {
    save_timer_.stop();
    save_now(true);
    recording_ = false;
    engine_.stop();
    event->accept();
}

}  // namespace headscope::app
