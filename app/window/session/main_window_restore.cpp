// SPDX-License-Identifier: GPL-3.0-or-later
// A session is brought back: what was open is opened, then shown as it was. Disks that do not answer, and what the user
// does meanwhile, come before that.
#include <QDir>
#include <QDockWidget>
#include <QFileInfo>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/window/main_window.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "widgets/desk/head_set_store.h"
#include "widgets/frame/view_area.h"
#include "widgets/panels/text_panel.h"

namespace headscope::app {
namespace {

constexpr int kMostRestoring = 10'000;  ///< ms: a disk that does not answer by then is not waited for

bool is_same(const QString& one, const QString& other) {
    return QDir::cleanPath(QFileInfo(one).absoluteFilePath()) == QDir::cleanPath(QFileInfo(other).absoluteFilePath());
}

bool has(const QStringList& paths, const QString& path) {
    return std::any_of(paths.begin(), paths.end(),
                       [&](const QString& one) { return !one.isEmpty() && is_same(one, path); });
}

}  // namespace

bool MainWindow::Paths::contain(const QString& path) const {
    return has(models, path) || has(analyses, path) || has(runs, path);
}

bool MainWindow::Paths::remove(const QString& path) {
    qsizetype removed = 0;
    for (QStringList* list : {&models, &analyses, &runs})
        removed += list->removeIf([&](const QString& one) { return is_same(one, path); });
    return removed > 0;
}

/// Until the last of it is open, what is saved is this, with what is new: the program may end at any moment.
void MainWindow::restore_session(Session session) {
    text_->set_choice(widgets::text_choice_from(session.text));
    restore_layout(session);
    if (restoring_)
        session = joined(std::move(session), *restoring_);
    else
        states_before_ = looks()["views"].toObject();
    restoring_ = std::move(session);
    late_session_.reset();
    touched_ = false;
    restoring_timer_.start(kMostRestoring);
    QStringList open, models, analyses, runs;
    for (const widgets::Study* study : desk_.studies()) open << QString::fromStdString(study->path().string());
    for (const auto& one : desk_.evaluations().all()) open << one.path;
    for (const QString& path : restoring_->models)
        if (engine_.model_at(path) == 0 && !opening_.models.contains(path)) models << path;
    for (const QString& path : restoring_->analyses)
        if (!open.contains(path) && !opening_.analyses.contains(path)) analyses << path;
    for (const QString& path : restoring_->runs)
        if (!desk_.runs().run_at(path) && !opening_.runs.contains(path)) runs << path;
    opening_.models += models;
    opening_.analyses += analyses;
    opening_.runs += runs;
    save_now(false);
    for (const QString& path : models) engine_.open_model(path, true);
    for (const QString& path : analyses) opener_.open(path);
    for (const QString& path : runs) service_.open(path);
    end_restoring();
}

void MainWindow::restore_layout(const Session& session) {
    const QJsonObject& window = session.window;
    if (window.isEmpty()) return;
    const auto bytes = [&](const char* name) {
        return QByteArray::fromBase64(window[QLatin1String(name)].toString().toLatin1());
    };
    if (const QByteArray geometry = bytes("geometry"); !geometry.isEmpty()) restoreGeometry(geometry);
    restoreState(bytes("docks"));
    evaluate_kept_ = window["evaluate"].toObject();
    text_dock_->setVisible(window["text_panel"].toBool(!text_dock_->isHidden()));
    area_->restore(window["views"].toObject());
    training_area_->restore(window["training"].toObject());
}

void MainWindow::restore_head_sets(const Session& session) {
    std::vector<workspace::HeadSets> all;
    for (const std::string& text : session.head_sets) {
        try {
            const auto document = parse_json(text, "session.json: head_sets");
            all.push_back(workspace::HeadSets::from_json(JsonView(document, "session.json: head_sets")));
        } catch (const Error& error) {
            unread_head_sets_.push_back(text);
            problem(QString::fromUtf8(error.what()));
        }
    }
    desk_.head_sets().restore(std::move(all));
}

/// Opened because it was open, and nobody asked for it again: it does not come to the front.
bool MainWindow::brought_back(const QString& path) const {
    return !has(given_, path) && (opening_.contain(path) || late_.contain(path));
}

void MainWindow::settled(const QString& path) {
    opening_.remove(path);
    const bool late = late_.remove(path);
    end_restoring();
    if (!restoring_) given_.removeIf([&](const QString& one) { return is_same(one, path); });
    if (!late || !late_session_) return;
    const Session& session = *late_session_;
    const bool shown = has({session.chosen_model, session.shown_analysis, session.shown_run}, path);
    if (!touched_ && (shown || late_.empty())) restore_shown(session);
    if (touched_ || late_.empty()) late_session_.reset();
}

/// The rest stays in the session, and is opened if its disk answers after all.
void MainWindow::stop_restoring() {
    if (!restoring_) return;
    tell(tr("Not all of the session is there yet: the rest comes when its disk answers"));
    late_.models += std::exchange(opening_.models, {});
    late_.analyses += std::exchange(opening_.analyses, {});
    late_.runs += std::exchange(opening_.runs, {});
    end_restoring();
}

void MainWindow::end_restoring() {
    if (!restoring_ || !opening_.empty()) return;
    const Session session = std::move(*restoring_);
    restoring_.reset();
    restoring_timer_.stop();
    restore_shown(session);
    if (!late_.empty() && !touched_ && given_.isEmpty()) late_session_ = session;
    show_given();
    begin_recording();
}

/// What was given on the command line, before what the session had in front.
void MainWindow::show_given() {
    for (const QString& path : std::as_const(given_)) {
        if (touched_) break;
        if (const int model = engine_.model_at(path); model != 0) show_model(model);
        for (widgets::Study* study : desk_.studies())
            if (is_same(QString::fromStdString(study->path().string()), path)) show_study(study);
        for (const auto& one : desk_.evaluations().all())
            if (is_same(one.path, path)) show_evaluation(*one.record);
        if (const widgets::Run* run = desk_.runs().run_at(path)) {
            desk_.runs().choose(run->id);
            show_view(QStringLiteral("run"));
        }
    }
    given_.removeIf([this](const QString& path) { return !late_.contain(path); });
    for (const QString& path : std::exchange(given_texts_, {})) open_path(path);
}

/// How it was looked at. Where the user has done something meanwhile that stays, and so do the views that it changed.
void MainWindow::restore_shown(const Session& session) {
    if (touched_) {
        for (const auto& [name, view] : views_)
            if (session.views.contains(name) && view->state() == states_before_[name].toObject())
                view->restore(session.views[name].toObject());
        return;
    }
    text_->choose_model(engine_.model_at(session.chosen_model));
    for (const widgets::Study* study : desk_.studies())
        if (QString::fromStdString(study->path().string()) == session.shown_analysis) desk_.select_study(study->id());
    if (const widgets::Run* run = desk_.runs().run_at(session.shown_run)) desk_.runs().choose(run->id);
    restore_looks({{"selection", session.selection}, {"views", session.views}});
    // Tensors and typed words are looked at without an analysis, too.
    const bool alone = session.front == QLatin1String("hash") ||
                       (session.front == QLatin1String("tensors") && !engine_.models().empty());
    if (!session.front.isEmpty()) show_view(session.front, alone);
}

/// A click may be for the window alone: it counts where something else is shown after it, or would be saved.
void MainWindow::see_deed() {
    if (in_deed_ || (!restoring_ && !late_session_)) return;
    in_deed_ = true;
    QMetaObject::invokeMethod(
        this,
        [this, front = front_name()] {
            in_deed_ = false;
            touched_ = touched_ || front_name() != front;
        },
        Qt::QueuedConnection);
}

}  // namespace headscope::app
