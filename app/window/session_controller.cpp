// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/session_controller.h"

#include <unistd.h>

#include <QCoreApplication>
#include <algorithm>
#include <utility>

#include "app/window/analysis_controller.h"
#include "app/window/evaluations_controller.h"
#include "app/window/files_controller.h"
#include "app/window/pages_controller.h"
#include "app/window/runs_controller.h"
#include "app/window/training/calibration.h"
#include "core/base/error.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/head_set_store.h"

namespace headscope::app {
namespace {

constexpr int kCalibrateAfter = 1500;  ///< ms: the window has opened its first paths by then
constexpr int kSaveAfter = 1200;       ///< ms after the last change
// ms from a failed save to the next one, doubled each time.
constexpr int kSaveAgain = 5'000, kLongestPause = 300'000;

}  // namespace

SessionController::SessionController(Context& context, const Parts& parts, Layout layout)
    : context_(context), parts_(parts), layout_(std::move(layout)) {
    save_timer_.setSingleShot(true);
    restoring_timer_.setSingleShot(true);
    connect(&save_timer_, &QTimer::timeout, this, [this] { save_now(false); });
    connect(&restoring_timer_, &QTimer::timeout, this, &SessionController::stop_restoring);
    connect(&context_, &Context::changed, this, &SessionController::save_soon);
    connect(&context_.restoration, &Restoration::settled, this, &SessionController::settled);
    connect(&context_.engine, &Engine::rate_measured, this, &SessionController::keep_rate);
    // Saves at once: until the run begins, only the session lists its process.
    connect(&parts_.runs.service(), &RunService::starting_changed, this, [this] { save_now(false); });
    connect(context_.start, &widgets::StartPage::session_wanted, this, [this] { answer_offer(true); });
    connect(context_.start, &widgets::StartPage::session_declined, this, [this] { answer_offer(false); });
    qApp->installEventFilter(this);
}

SessionController::~SessionController() {
    let_go();
}

SessionController::Stored SessionController::read_stored(int threads, bool restore) {
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

void SessionController::begin(bool restore, const QStringList& paths) {
    saver_.post(this, [this, restore, paths, threads = context_.engine.threads(),
                       send = mailbox_.sender()](const Cancellation&) {
        auto stored = std::make_shared<const Stored>(read_stored(threads, restore));
        send([this, stored, restore, paths] { take(*stored, restore, paths); });
    });
}

void SessionController::take(const Stored& stored, bool restore, const QStringList& paths) {
    context_.folder = stored.folder;
    parts_.runs.service().set_folder(stored.folder);
    parts_.evaluations.service().set_folder(stored.folder);
    parts_.files.recent().set(stored.recent);
    if (!stored.problem.isEmpty()) context_.problem(stored.problem);
    keeper_ = stored.keeper;
    recording_ = keeper_ != nullptr;
    if (keeper_ && keeper_->another_window()) leave_session_to_another();
    if (!stored.session.problem.empty()) save_ended(QString::fromStdString(stored.session.problem));
    if (!stored.theme.isEmpty()) parts_.pages.set_theme(stored.theme);
    const std::optional<Session>&last = stored.session.last, &lost = stored.session.lost;
    if (last) {
        const Session all = lost ? joined(*last, *lost) : *last;
        parts_.files.set_names(all.names);
        restore_head_sets(all);
    }
    if (lost) {
        lost_ = lost;
        context_.start->offer_session(
            tr("Headscope was not closed the last time (%1). What was open and typed can be brought back.")
                .arg(lost->saved.toString(Qt::TextDate)));
    }
    if (last && !stored.session.died)
        this->restore(*last);
    else if (last)
        restore_layout(*last);
    open_given(paths);
    begin_history();
    if (restore) parts_.runs.service().look_for_interrupted();
    if (keeper_ && !keeper_->another_window())
        parts_.files.look_for_leftovers((last ? last->analyses : QStringList()) +
                                        (lost ? lost->analyses : QStringList()));
    if (stored.rate)
        context_.engine.set_rate(*stored.rate);
    else if (stored.problem.isEmpty() && stored.session.problem.empty())
        QTimer::singleShot(kCalibrateAfter, this, [this] { context_.engine.calibrate(context_.folder); });
}

void SessionController::keep_rate(double rate) {
    context_.engine.preview(context_.text->choice());  // with the time that it takes here
    if (context_.folder.empty()) return;
    saver_.post(this, [this, folder = context_.folder, threads = context_.engine.threads(), rate,
                       send = mailbox_.sender()](const Cancellation&) {
        try {
            save_rate(folder, threads, rate);
        } catch (const Error& error) {
            const QString message = QString::fromUtf8(error.what());
            send([this, message] { context_.problem(message); });
        }
    });
}

/// Opens paths of the command line at once: a session may wait for a disk, and comes behind them.
void SessionController::open_given(const QStringList& paths) {
    if (restoring_) context_.restoration.set_requested(paths);
    for (const QString& path : paths) parts_.files.open(path);
    context_.restoration.untouch();
}

void SessionController::answer_offer(bool bring_back) {
    context_.start->offer_session({});
    const auto lost = std::exchange(lost_, std::nullopt);
    answered_ = true;
    if (lost && bring_back)
        restore(joined(*lost, session(false)));
    else
        save_now(false);
}

void SessionController::begin_history() {
    parts_.pages.history().begin();
    save_soon();
}

Session SessionController::session(bool closed) const {
    const widgets::Desk& desk = context_.desk;
    Session session;
    session.saved = QDateTime::currentDateTime();
    session.closed = closed;
    session.process = static_cast<qint64>(::getpid());
    for (const auto& card : context_.engine.models()) session.models << card.path;
    for (const widgets::Study* study : desk.studies())
        session.analyses << QString::fromStdString(study->path().string());
    if (const QString& coming = parts_.analysis.coming_file(); !coming.isEmpty()) session.analyses << coming;
    for (const auto& one : desk.evaluations().all()) session.analyses << one.path;  // the opener distinguishes them
    for (const auto& one : desk.asks().all()) session.analyses << one.path;
    for (const widgets::Run& run : desk.runs().runs()) session.runs << run.path;
    for (const QString& folder : parts_.runs.service().starting())
        if (!session.runs.contains(folder)) session.runs << folder;
    session.models += context_.restoration.late().models;
    session.analyses += context_.restoration.late().analyses;
    session.runs += context_.restoration.late().runs;
    for (QStringList* list : {&session.models, &session.analyses, &session.runs}) list->removeDuplicates();
    if (const widgets::Run* run = desk.runs().current()) session.shown_run = run->path;
    const widgets::TextChoice choice = context_.text->choice();
    for (const auto& card : context_.engine.models())
        if (card.id == choice.model) session.chosen_model = card.path;
    if (const widgets::Study* study = desk.current())
        session.shown_analysis = QString::fromStdString(study->path().string());
    const QJsonObject now = parts_.pages.looks();
    session.selection = now["selection"].toObject();
    session.selection.remove(QStringLiteral("study"));  // ids are of this process
    session.views = now["views"].toObject();
    session.text = widgets::to_json(context_.text->kept_choice());
    session.window = layout_.take();
    session.window["evaluate"] = parts_.evaluations.choices();
    session.theme = parts_.pages.theme();
    session.front = parts_.pages.front_name();
    session.names = parts_.files.names();
    for (const auto& sets : desk.head_sets().all()) session.head_sets.push_back(sets.to_json().dump());
    session.head_sets.insert(session.head_sets.end(), unread_head_sets_.begin(), unread_head_sets_.end());
    if (!restoring_) return session;
    // Text, layout and sets of heads are restored already; the rest follows when everything is open.
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

void SessionController::save_soon() {
    if (in_action_) context_.restoration.touch();
    if (recording_ && !save_timer_.isActive()) save_timer_.start(save_pause_ > 0 ? save_pause_ : kSaveAfter);
}

void SessionController::save_now(bool closed) {
    if (!recording_) return;
    const bool settled = answered_ && (!restoring_ || closed);
    saver_.post(this, [this, keeper = keeper_, now = session(closed), recent = parts_.files.recent().all(), settled,
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

void SessionController::leave_session_to_another() {
    if (!recording_) return;
    recording_ = false;
    context_.report(tr("Another window keeps its session, or did meanwhile: this one's is not kept"));
}

/// A disk may be full for hours: reports the first failure only, and tries again at growing intervals.
void SessionController::save_ended(const QString& failure) {
    if (failure.isEmpty()) {
        if (save_pause_ == 0) return;
        save_pause_ = 0;
        if (save_timer_.isActive()) save_timer_.start(kSaveAfter);
        context_.report(tr("The session is saved again"));
        return;
    }
    if (save_pause_ == 0) context_.problem(failure);
    save_pause_ = std::clamp(2 * save_pause_, kSaveAgain, kLongestPause);
    if (recording_) save_timer_.start(save_pause_);
}

void SessionController::close() {
    save_timer_.stop();
    save_now(true);
    recording_ = false;
}

void SessionController::let_go() {
    recording_ = false;
    saver_.finish();
    keeper_.reset();
}

}  // namespace headscope::app
