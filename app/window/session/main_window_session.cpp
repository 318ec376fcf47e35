// SPDX-License-Identifier: GPL-3.0-or-later
// The session: what is open and how it is looked at, kept while the window is; main_window_restore.cpp brings it back.
#include <unistd.h>

#include <QDockWidget>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/window/main_window.h"
#include "app/window/training/calibration.h"
#include "core/base/error.h"
#include "widgets/desk/head_set_store.h"
#include "widgets/frame/view_area.h"
#include "widgets/panels/start_page.h"
#include "widgets/panels/text_panel.h"

namespace headscope::app {
namespace {

constexpr int kCalibrateAfter = 1500;  ///< ms: when what the window opens with is there
constexpr int kSaveAfter = 1200;       ///< ms after the last change
// ms until it is saved again where that failed: twice as many each time.
constexpr int kSaveAgain = 5'000, kLongestPause = 300'000;

}  // namespace

MainWindow::Stored MainWindow::read_stored(int threads, bool restore) {
    Stored stored;
    stored.folder = data_folder();
    try {
        stored.recent = load_recent(stored.folder);
        stored.rate = load_rate(stored.folder, threads);
        if (const auto last = load_session(stored.folder)) stored.theme = last->theme;
        if (restore) {
            stored.keeper = std::make_shared<SessionKeeper>(stored.folder);
            stored.session = stored.keeper->find();
        } else {
            make_data_folder(stored.folder);
        }
    } catch (const Error& error) {
        stored.problem = QString::fromUtf8(error.what());
    }
    return stored;
}

void MainWindow::load_state() {
    saver_.post(this, [this, threads = engine_.threads(), restore = options_.restore,
                       send = mailbox_.sender()](const Cancellation&) {
        auto stored = std::make_shared<const Stored>(read_stored(threads, restore));
        send([this, stored] { begin(*stored); });
    });
}

void MainWindow::begin(const Stored& stored) {
    data_ = stored.folder;
    service_.set_folder(data_);
    evaluations_.set_folder(data_);
    recent_ = stored.recent;
    show_recent();
    if (!stored.problem.isEmpty()) problem(stored.problem);
    keeper_ = stored.keeper;
    recording_ = keeper_ != nullptr;
    if (keeper_ && keeper_->another_window()) leave_session_to_another();
    if (!stored.session.problem.empty()) save_ended(QString::fromStdString(stored.session.problem));
    if (!stored.theme.isEmpty()) {
        theme_ = stored.theme;
        if (const auto place = by_name_.find(QStringLiteral("theme_") + theme_); place != by_name_.end())
            place->second->setChecked(true);
        apply_theme();
    }
    const std::optional<Session>&last = stored.session.last, &lost = stored.session.lost;
    if (last) names_ = lost ? joined(*last, *lost).names : last->names;
    if (last) restore_head_sets(lost ? joined(*last, *lost) : *last);
    if (lost) {
        lost_session_ = lost;
        start_->offer_session(
            tr("Headscope was not closed the last time (%1). What was open and typed can be brought back.")
                .arg(lost->saved.toString(Qt::TextDate)));
    }
    if (last && !stored.session.died)
        restore_session(*last);
    else if (last)
        restore_layout(*last);
    open_given_paths();
    begin_recording();
    if (options_.restore) service_.look_for_interrupted();
    if (keeper_ && !keeper_->another_window())
        look_for_leftovers((last ? last->analyses : QStringList()) + (lost ? lost->analyses : QStringList()));
    if (stored.rate)
        engine_.set_rate(*stored.rate);
    else if (stored.problem.isEmpty() && stored.session.problem.empty())
        QTimer::singleShot(kCalibrateAfter, this, [this] { engine_.calibrate(data_); });
}

void MainWindow::keep_rate(double rate) {
    engine_.preview(text_->choice());  // with the time that it takes here
    if (data_.empty()) return;
    saver_.post(
        this, [this, folder = data_, threads = engine_.threads(), rate, send = mailbox_.sender()](const Cancellation&) {
            try {
                save_rate(folder, threads, rate);
            } catch (const Error& error) {
                const QString message = QString::fromUtf8(error.what());
                send([this, message] { problem(message); });
            }
        });
}

/// At once: a session may wait for a disk. What it brings back later does not come before them.
void MainWindow::open_given_paths() {
    const QStringList paths = std::exchange(options_.paths, {});
    if (restoring_) given_ = paths;
    for (const QString& path : paths) open_path(path);
    touched_ = false;
}

void MainWindow::settle_lost_session(bool bring_back) {
    start_->offer_session({});
    const auto lost = std::exchange(lost_session_, std::nullopt);
    answered_ = true;
    if (lost && bring_back)
        restore_session(joined(*lost, session(false)));
    else
        save_now(false);
}

void MainWindow::begin_recording() {
    if (history_) history_->begin();
    save_soon();
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
    if (!run_file_.isEmpty()) session.analyses << run_file_;
    for (const auto& one : desk_.evaluations().all()) session.analyses << one.path;  // a file says which it is
    for (const widgets::Run& run : desk_.runs().runs()) session.runs << run.path;
    for (const QString& folder : service_.starting())
        if (!session.runs.contains(folder)) session.runs << folder;
    session.models += late_.models;
    session.analyses += late_.analyses;
    session.runs += late_.runs;
    for (QStringList* list : {&session.models, &session.analyses, &session.runs}) list->removeDuplicates();
    if (const widgets::Run* run = desk_.runs().current()) session.shown_run = run->path;
    const widgets::TextChoice choice = text_->choice();
    for (const auto& card : engine_.models())
        if (card.id == choice.model) session.chosen_model = card.path;
    if (const widgets::Study* study = desk_.current())
        session.shown_analysis = QString::fromStdString(study->path().string());
    const QJsonObject now = looks();
    session.selection = now["selection"].toObject();
    session.selection.remove(QStringLiteral("study"));  // ids are of this process
    session.views = now["views"].toObject();
    session.text = widgets::to_json(text_->kept_choice());
    session.window = {{"geometry", QString::fromLatin1(saveGeometry().toBase64())},
                      {"docks", QString::fromLatin1(saveState().toBase64())},
                      {"views", area_->state()},
                      {"training", training_area_->state()},
                      {"evaluate", evaluate_kept_},
                      {"text_panel", page() == Page::training ? text_wanted_ : !text_dock_->isHidden()}};
    session.theme = theme_;
    session.front = front_name();
    session.names = given_names();
    for (const auto& sets : desk_.head_sets().all()) session.head_sets.push_back(sets.to_json().dump());
    session.head_sets.insert(session.head_sets.end(), unread_head_sets_.begin(), unread_head_sets_.end());
    if (!restoring_) return session;
    // Text, layout and sets of heads are there already; the rest comes when everything is open.
    Session all = joined(*restoring_, session);
    all.saved = session.saved;
    all.closed = session.closed;
    all.process = session.process;
    all.text = session.text;
    all.window = session.window;
    all.theme = session.theme;
    all.head_sets = session.head_sets;
    all.names = session.names;
    return all;
}

void MainWindow::save_soon() {
    touched_ = touched_ || in_deed_;
    if (recording_ && !save_timer_.isActive()) save_timer_.start(save_pause_ > 0 ? save_pause_ : kSaveAfter);
}

void MainWindow::save_now(bool closed) {
    if (!recording_) return;
    const bool settled = answered_ && (!restoring_ || closed);
    saver_.post(this, [this, keeper = keeper_, now = session(closed), recent = recent_, settled,
                       send = mailbox_.sender()](const Cancellation&) {
        QString failure;
        try {
            if (!keeper->save(now, recent, settled)) return send([this] { leave_session_to_another(); });
        } catch (const Error& error) {
            failure = QString::fromUtf8(error.what());
        }
        send([this, failure] { save_ended(failure); });
    });
}

void MainWindow::leave_session_to_another() {
    if (!recording_) return;
    recording_ = false;
    tell(tr("Another window keeps its session, or did meanwhile: this one's is not kept"));
}

/// A disk may be full for hours: that is told once, and tried again more and more rarely.
void MainWindow::save_ended(const QString& failure) {
    if (failure.isEmpty()) {
        if (save_pause_ == 0) return;
        save_pause_ = 0;
        if (save_timer_.isActive()) save_timer_.start(kSaveAfter);
        tell(tr("The session is saved again"));
        return;
    }
    if (save_pause_ == 0) problem(failure);
    save_pause_ = std::clamp(2 * save_pause_, kSaveAgain, kLongestPause);
    if (recording_) save_timer_.start(save_pause_);
}

/// What must be on the disk at the end is there, and another window may keep its session.
void MainWindow::let_go() {
    recording_ = false;
    saver_.finish();
    keeper_.reset();
}

}  // namespace headscope::app
