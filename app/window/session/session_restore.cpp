// SPDX-License-Identifier: GPL-3.0-or-later
// SessionController: opens what a session lists, then shows it as it was. The user's own actions and disks that do not
// answer take precedence.
#include <QKeyEvent>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/window/asks/asks_controller.h"
#include "app/window/evaluations_controller.h"
#include "app/window/files_controller.h"
#include "app/window/pages_controller.h"
#include "app/window/runs_controller.h"
#include "app/window/session_controller.h"
#include "core/base/error.h"
#include "core/base/json/json.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/head_set_store.h"

namespace headscope::app {
namespace {

constexpr int kMostRestoring = 10'000;  ///< ms: then restoring ends without disks that have not answered

/// Alt alone may be on its way to another window.
bool is_typed(const QEvent& event) {
    if (event.type() != QEvent::KeyPress && event.type() != QEvent::ShortcutOverride) return false;
    const int key = static_cast<const QKeyEvent&>(event).key();
    return key < Qt::Key_Shift || key > Qt::Key_Alt;
}

bool is_pointed(QEvent::Type type) {
    return type == QEvent::MouseButtonPress || type == QEvent::MouseButtonRelease ||
           type == QEvent::MouseButtonDblClick || type == QEvent::Wheel;
}

}  // namespace

/// Until the last path is open, this session with what is new is what is saved: the program may end at any moment.
void SessionController::restore(Session session) {
    const widgets::Desk& desk = context_.desk;
    const Restoration::Paths& opening = context_.restoration.opening();
    context_.text->set_choice(widgets::text_choice_from(session.text));
    restore_layout(session);
    if (restoring_)
        session = joined(std::move(session), *restoring_);
    else
        views_before_ = parts_.pages.looks()["views"].toObject();
    restoring_ = std::move(session);
    late_.reset();
    restoring_timer_.start(kMostRestoring);
    QStringList open;
    for (const widgets::Study* study : desk.studies()) open << QString::fromStdString(study->path().string());
    for (const auto& one : desk.evaluations().all()) open << one.path;
    for (const auto& one : desk.asks().all()) open << one.path;
    Restoration::Paths paths;
    for (const QString& path : restoring_->models)
        if (context_.engine.model_at(path) == 0 && !opening.models.contains(path)) paths.models << path;
    for (const QString& path : restoring_->analyses)
        if (!open.contains(path) && !opening.analyses.contains(path)) paths.analyses << path;
    for (const QString& path : restoring_->runs)
        if (!desk.runs().run_at(path) && !opening.runs.contains(path)) paths.runs << path;
    context_.restoration.begin(paths);
    save_now(false);
    for (const QString& path : std::as_const(paths.models)) context_.engine.open_model(path, true);
    for (const QString& path : std::as_const(paths.analyses)) context_.opener.open(path);
    for (const QString& path : std::as_const(paths.runs)) parts_.runs.service().open(path);
    end_restoring();
}

void SessionController::restore_layout(const Session& session) {
    if (session.window.isEmpty()) return;
    parts_.evaluations.set_choices(session.window["evaluate"].toObject());
    layout_.restore(session.window);
}

void SessionController::restore_head_sets(const Session& session) {
    std::vector<workspace::HeadSets> all;
    for (const std::string& text : session.head_sets) {
        try {
            const auto document = parse_json(text, "session.json: head_sets");
            all.push_back(workspace::HeadSets::from_json(JsonView(document, "session.json: head_sets")));
        } catch (const Error& error) {
            unread_head_sets_.push_back(text);
            context_.problem(QString::fromUtf8(error.what()));
        }
    }
    context_.desk.head_sets().restore(std::move(all));
}

void SessionController::settled(const QString& path, bool late) {
    Restoration& restoration = context_.restoration;
    end_restoring();
    if (!restoring_) restoration.forget_request(path);
    if (!late || !late_) return;
    const Session session = *late_;
    const QStringList shown{session.chosen_model, session.shown_analysis, session.shown_run};
    const bool was_shown = std::any_of(shown.begin(), shown.end(),
                                       [&](const QString& one) { return !one.isEmpty() && is_same_path(one, path); });
    const bool last = restoration.late().empty();
    if (!restoration.touched() && (was_shown || last)) restore_shown(session);
    if (restoration.touched() || last) late_.reset();
}

/// The remaining paths stay in the session, and are opened if their disk answers after all.
void SessionController::stop_restoring() {
    if (!restoring_) return;
    context_.report(tr("Not all of the session is there yet: the rest comes when its disk answers"));
    context_.restoration.make_late();
    end_restoring();
}

void SessionController::end_restoring() {
    Restoration& restoration = context_.restoration;
    if (!restoring_ || !restoration.opening().empty()) return;
    const Session session = *std::exchange(restoring_, std::nullopt);
    restoration.end();
    restoring_timer_.stop();
    restore_shown(session);
    if (!restoration.late().empty() && !restoration.touched() && restoration.requested().isEmpty()) late_ = session;
    show_requested();
    begin_history();
}

/// Paths of the command line come before what the session had in front.
void SessionController::show_requested() {
    widgets::Desk& desk = context_.desk;
    const QStringList requested = context_.restoration.requested();
    for (const QString& path : requested) {
        if (context_.restoration.touched()) break;
        if (const int model = context_.engine.model_at(path); model != 0) parts_.files.show_model(model);
        for (widgets::Study* study : desk.studies())
            if (is_same_path(QString::fromStdString(study->path().string()), path)) parts_.files.show(study);
        for (const auto& one : desk.evaluations().all())
            if (is_same_path(one.path, path)) parts_.evaluations.show(*one.record);
        for (const auto& one : desk.asks().all())
            if (is_same_path(one.path, path)) parts_.asks.show(one.id);
        if (const widgets::Run* run = desk.runs().run_at(path)) {
            desk.runs().choose(run->id);
            parts_.pages.show_view(QStringLiteral("run"));
        }
    }
    context_.restoration.forget_requests();
    for (const QString& path : context_.restoration.take_postponed()) parts_.files.open(path);
}

/// Shows the session as it was. If the user has acted meanwhile, restores only views that did not change since.
void SessionController::restore_shown(const Session& session) {
    widgets::Desk& desk = context_.desk;
    if (context_.restoration.touched()) {
        for (const auto& [name, view] : parts_.pages.views())
            if (session.views.contains(name) && view->state() == views_before_[name].toObject())
                view->restore(session.views[name].toObject());
        return;
    }
    context_.text->choose_model(context_.engine.model_at(session.chosen_model));
    for (const widgets::Study* study : desk.studies())
        if (QString::fromStdString(study->path().string()) == session.shown_analysis) desk.select_study(study->id());
    if (const widgets::Run* run = desk.runs().run_at(session.shown_run)) desk.runs().choose(run->id);
    parts_.pages.restore_looks({{"selection", session.selection}, {"views", session.views}});
    // Tensors, typed words and ask files are shown without an analysis, too.
    const auto& kinds = widgets::view_kinds();
    const bool of_asks = std::any_of(kinds.begin(), kinds.end(), [&](const widgets::ViewKind* kind) {
        return session.front == QLatin1String(kind->name) && kind->ask_tool && desk.asks().chosen(kind->ask_tool);
    });
    const bool alone = of_asks || session.front == QLatin1String("hash") ||
                       (session.front == QLatin1String("tensors") && !context_.engine.models().empty());
    if (!session.front.isEmpty()) parts_.pages.show_view(session.front, alone);
}

bool SessionController::eventFilter(QObject* object, QEvent* event) {
    if (is_typed(*event)) context_.restoration.touch();
    if (is_pointed(event->type())) note_action();
    return QObject::eventFilter(object, event);
}

/// A click may be for the window alone: it counts if another view is in front after it, or if it changes the session.
void SessionController::note_action() {
    if (in_action_ || (!restoring_ && !late_)) return;
    in_action_ = true;
    QMetaObject::invokeMethod(
        this,
        [this, front = parts_.pages.front_name()] {
            in_action_ = false;
            if (parts_.pages.front_name() != front) context_.restoration.touch();
        },
        Qt::QueuedConnection);
}

}  // namespace headscope::app
