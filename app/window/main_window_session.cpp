// SPDX-License-Identifier: GPL-3.0-or-later
// The session: what is open and how it is looked at, kept while the window is and brought back by the next one.
#include <unistd.h>

#include <QDockWidget>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/window/calibration.h"
#include "app/window/main_window.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "widgets/desk/head_set_store.h"
#include "widgets/panels/start_page.h"
#include "widgets/panels/text_panel.h"

namespace headscope::app {
namespace {

constexpr int kCalibrateAfter = 1500;  ///< ms: when what the window opens with is there

bool is_alive(qint64 process) {
    return process > 0 && (::kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM);
}

}  // namespace

MainWindow::Stored MainWindow::read_stored(int threads) {
    Stored stored;
    try {
        stored.folder = data_folder();
    } catch (const Error& error) {
        stored.problem = QString::fromUtf8(error.what());
        return stored;
    }
    stored.recent = load_recent(stored.folder);
    stored.rate = load_rate(stored.folder, threads);
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
    saver_.post(this, [this, threads = engine_.threads(), send = mailbox_.sender()](const Cancellation&) {
        auto stored = std::make_shared<const Stored>(read_stored(threads));
        send([this, stored] { begin(*stored); });
    });
}

void MainWindow::begin(const Stored& stored) {
    data_ = stored.folder;
    service_.set_folder(data_);
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
    if (options_.restore) service_.look_for_interrupted();
    if (stored.rate)
        engine_.set_rate(*stored.rate);
    else if (stored.problem.isEmpty())
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
    waiting_ = static_cast<int>(session.models.size() + session.analyses.size() + session.runs.size());
    text_->set_choice(widgets::text_choice_from(session.text));
    restore_head_sets(session);
    if (const auto geometry = session.window["geometry"].toString(); !geometry.isEmpty())
        restoreGeometry(QByteArray::fromBase64(geometry.toLatin1()));
    restoreState(QByteArray::fromBase64(session.window["docks"].toString().toLatin1()));
    text_dock_->setVisible(session.window["text_panel"].toBool(!text_dock_->isHidden()));
    area_->restoreState(QByteArray::fromBase64(session.window["views"].toString().toLatin1()));
    training_area_->restoreState(QByteArray::fromBase64(session.window["training"].toString().toLatin1()));
    for (const QString& path : session.models) engine_.open_model(path);
    for (const QString& path : session.analyses) opener_.open(path);
    for (const QString& path : session.runs) service_.open(path);
    if (waiting_ > 0) return;
    waiting_ = 1;
    restore_when_open();
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
    if (const widgets::Run* run = desk_.runs().run_at(session.shown_run)) desk_.runs().choose(run->id);
    restore_looks({{"selection", session.selection}, {"views", session.views}});
    // Tensors are looked at without an analysis, too.
    if (session.front == QLatin1String("tensors") && !engine_.models().empty()) show_page(Page::analysis);
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
    for (const widgets::Run& run : desk_.runs().runs()) session.runs << run.path;
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
    session.text = widgets::to_json(choice);
    session.window = {{"geometry", QString::fromLatin1(saveGeometry().toBase64())},
                      {"docks", QString::fromLatin1(saveState().toBase64())},
                      {"views", QString::fromLatin1(area_->saveState().toBase64())},
                      {"training", QString::fromLatin1(training_area_->saveState().toBase64())},
                      {"text_panel", page() == Page::training ? text_wanted_ : !text_dock_->isHidden()}};
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

}  // namespace headscope::app
