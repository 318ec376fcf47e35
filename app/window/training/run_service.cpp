// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/training/run_service.h"

#include <QDir>
#include <algorithm>
#include <utility>

#include "app/window/launch.h"
#include "app/window/training/followed_run.h"
#include "app/window/training/job_estimate.h"
#include "core/base/error.h"
#include "core/run/control.h"
#include "core/run/run_folder.h"
#include "core/run/run_history.h"
#include "core/training/job/run_end.h"
#include "core/workspace/job_edit.h"

namespace headscope::app {
namespace {

constexpr int kPoll = 250;           // ms between looks at journals that grow
constexpr int kSeldom = 8;           ///< polls between looks at runs without a process
constexpr int kEstimateAfter = 120;  // ms after the job's last change

QString message_of(const char* where) {
    return QString::fromUtf8(current_error(where).what());
}

/// Moves the end of a job that a fork at update `done` has reached: as many updates again as the run had. `planned`:
/// the run's updates, which a job of epochs does not say.
void extend(training::JobFile& job, std::int64_t begin, std::int64_t done, std::int64_t planned) {
    const std::int64_t end = job.training.epochs ? planned : training::planned_updates(job);
    if (end <= 0 || done < end) return;
    const std::int64_t more = std::max<std::int64_t>(done - begin, 1);
    if (job.training.steps) job.training.steps = done + more;
    if (job.training.tokens) job.training.tokens = (done + more) * job.step_tokens();
    if (job.training.epochs)
        job.training.epochs = *job.training.epochs * static_cast<double>(done + more) / static_cast<double>(done);
}

}  // namespace

bool looks_like_run(const QString& path) {
    return training::is_run_folder(path.toStdString());
}

RunService::RunService(widgets::RunShelf* shelf, std::string program, QObject* parent)
    : QObject(parent), shelf_(shelf), program_(std::move(program)) {
    shelf_->draft().set_choices(job_choices());
    poll_.setInterval(kPoll);
    connect(&poll_, &QTimer::timeout, this, &RunService::poll);
    estimate_soon_.setSingleShot(true);
    estimate_soon_.setInterval(kEstimateAfter);
    connect(&estimate_soon_, &QTimer::timeout, this, &RunService::estimate);
    connect(&shelf_->draft(), &widgets::JobDraft::changed, &estimate_soon_, qOverload<>(&QTimer::start));
    connect(shelf_, &widgets::RunShelf::start_wanted, this, &RunService::start);
    connect(shelf_, &widgets::RunShelf::calibrate_wanted, this, &RunService::calibrate);
    connect(shelf_, &widgets::RunShelf::control_wanted, this, &RunService::control);
    connect(shelf_, &widgets::RunShelf::resume_wanted, this, &RunService::resume);
    connect(shelf_, &widgets::RunShelf::fork_wanted, this, &RunService::fork);
    connect(shelf_, &widgets::RunShelf::close_wanted, this, &RunService::close);
    estimate_soon_.start();
}

RunService::~RunService() {
    stop_calibrating();
    mailbox_.close();
    files_.cancel(this);
    estimates_.cancel(this);
    measurements_.cancel(this);
    looks_.cancel(this);
    looks_.cancel(&mends_);
    files_.finish();  // requests to stop runs that the user made while closing the window
}

// ---- what a job will take

void RunService::estimate() {
    if (shelf_->draft().problem()) {
        shelf_->draft().set_estimate({});
        return;
    }
    const training::JobFile job = shelf_->draft().job();
    const auto known = speeds_.find(speed_key(job));
    const double speed = known == speeds_.end() ? 0 : known->second;
    estimates_.cancel(this);
    estimates_.post(this, [this, job, speed, send = mailbox_.sender()](const Cancellation& cancellation) {
        auto made = std::make_shared<widgets::JobEstimate>(estimate_job(job, speed, cancellation));
        if (speed > 0) made->calibration = tr("Measured here with this job, for about a second");
        if (cancellation.requested()) return;
        send([this, made] { shelf_->draft().set_estimate(*made); });
    });
}

void RunService::calibrate() {
    if (!may_start(true) || shelf_->draft().problem() || calibration_) return;
    calibrating_key_ = speed_key(shelf_->draft().job());
    calibration_ = std::make_shared<std::atomic<bool>>(false);
    tell_starting();
    // On a worker of its own: data may have to be made first, and journals must not wait.
    measurements_.post(this, [this, given_up = calibration_, job = shelf_->draft().job(), program = program_,
                              folder = folder_, send = mailbox_.sender()](const Cancellation& cancellation) {
        double speed = 0;
        QString words;
        try {
            speed = measure_speed(job, program, folder, *given_up, cancellation);
        } catch (const Stopped&) {
        } catch (...) {
            words = message_of("calibration");
        }
        send([this, speed, words] { calibrated(speed, words); });
    });
}

void RunService::stop_calibrating() {
    if (calibration_) *calibration_ = true;
}

void RunService::calibrated(double tokens_per_second, const QString& words) {
    calibration_.reset();
    tell_starting();
    if (tokens_per_second > 0) speeds_[calibrating_key_] = tokens_per_second;
    if (!words.isEmpty()) {
        widgets::JobEstimate estimate = shelf_->draft().estimate();
        estimate.calibration = words;
        estimate.problem = problem_of_words(words);
        shelf_->draft().set_estimate(std::move(estimate));
        Q_EMIT failed(words);
        return;
    }
    estimate();
}

// ---- folders that are open

void RunService::open(const QString& folder) {
    read(folder);
}

void RunService::read(const QString& folder, const std::shared_ptr<Launch>& begun) {
    files_.post(this, [this, folder, begun, user = folder_, send = mailbox_.sender()](const Cancellation&) {
        try {
            const std::filesystem::path path = folder.toStdString();
            const auto launch = begun || training::is_run_folder(path) ? nullptr : find_launch(path, user);
            if (launch) return send([this, folder, launch] { wait_at(folder, launch); });
            auto followed = std::make_shared<FollowedRun>(path);
            followed->read();
            send([this, folder, followed, begun, name = QString::fromStdString(followed->name()),
                  record = followed->publish()] {
                attach(folder, followed, name, record);
                end_starting(begun);
                Q_EMIT told(tr("Opened the run %1").arg(folder));
            });
            mend(path);
        } catch (const Stopped&) {
        } catch (...) {
            const QString message = message_of("run");
            send([this, folder, begun, message] {
                end_starting(begun);
                Q_EMIT failed(message);
                Q_EMIT not_opened(folder);
            });
        }
    });
}

/// run.h5 of a run that died, which takes as long as its journal is.
void RunService::mend(const std::filesystem::path& folder) {
    looks_.post(&mends_, [folder](const Cancellation&) { training::mend_run_file(folder); });
}

void RunService::attach(const QString& folder, std::shared_ptr<FollowedRun> followed, const QString& name,
                        const std::shared_ptr<const workspace::LiveRun>& record) {
    const int id = shelf_->add(folder, name);
    shelf_->take(id, record);
    std::swap(followed_[id], followed);
    if (followed) files_.let_go(std::move(followed));  // before a resume
    if (!poll_.isActive()) poll_.start();
    Q_EMIT opened(id);
}

void RunService::close(int run) {
    const widgets::Run* closed = shelf_->run(run);
    if (most_bytes_ > 0 && closed && closed->alive() && is_own(closed->path)) control(run, QStringLiteral("stop"), {});
    auto followed = followed_.extract(run);
    shelf_->remove(run);
    if (followed) files_.let_go(std::move(followed.mapped()));
    if (followed_.empty()) poll_.stop();
}

void RunService::poll() {
    if (polling_) return;
    ++turn_;
    std::map<int, std::shared_ptr<FollowedRun>> due;
    for (const auto& [id, followed] : followed_) {
        const widgets::Run* run = shelf_->run(id);
        if (run && (run->alive() || !run->waiting.isEmpty() || turn_ % kSeldom == 0)) due[id] = followed;
    }
    if (due.empty()) return;
    polling_ = true;
    files_.post(this, [this, due, send = mailbox_.sender()](const Cancellation&) {
        for (const auto& [id, followed] : due) {
            std::shared_ptr<const workspace::LiveRun> record;
            QString failure;
            QStringList waiting;
            try {
                if (followed->read()) mend(followed->folder());
                if (followed->due()) record = followed->publish();
                waiting = followed->waiting();
            } catch (...) {
                failure = message_of("run");
            }
            send([this, run = id, record, failure, waiting] {
                shelf_->fail(run, failure);  // empty: the earlier failure is over
                if (record) shelf_->take(run, record);
                if (failure.isEmpty()) shelf_->set_waiting(run, waiting);
            });
        }
        send([this] { polling_ = false; });
    });
}

void RunService::look_for_interrupted() {
    looks_.post(this, [this, folder = folder_ / "runs", send = mailbox_.sender()](const Cancellation& cancellation) {
        QStringList folders;
        for (const auto& path : interrupted_runs(folder, cancellation))
            folders << QString::fromStdString(path.string());
        if (!folders.isEmpty()) send([this, folders] { Q_EMIT found(folders); });
    });
}

// ---- what is done with runs

void RunService::control(int id, const QString& action, const QString& value) {
    const auto place = followed_.find(id);
    if (place == followed_.end()) return;
    const widgets::Run* run = shelf_->run(id);
    if (run) shelf_->set_waiting(id, QStringList(run->waiting) << action);
    files_.post(&wishes_,
                [this, id, followed = place->second, action, value, send = mailbox_.sender()](const Cancellation&) {
                    try {
                        followed->ask(training::action_of(action.toStdString()), value.toStdString());
                    } catch (...) {
                        const QString message = message_of("control");
                        send([this, message] { Q_EMIT failed(message); });
                    }
                    const QStringList waiting = followed->waiting();
                    send([this, id, waiting] { shelf_->set_waiting(id, waiting); });
                });
}

std::filesystem::path RunService::snapshot_folder(int id, const QString& snapshot) const {
    const widgets::Run* run = shelf_->run(id);
    // The name is a journal's, which may come from anywhere.
    if (!run || training::snapshot_step(snapshot.toStdString()) < 0) return {};
    return training::RunFolder{run->path.toStdString()}.snapshots() / snapshot.toStdString();
}

void RunService::fork(int id, const QString& snapshot) {
    const widgets::Run* run = shelf_->run(id);
    if (!run || !run->record->started) return;
    try {
        training::JobFile job = training::read_job(run->record->started->job, "job");
        job.name = run->name.toStdString() + ", from " + snapshot.toStdString();
        extend(job, run->record->begin_step(), training::snapshot_step(snapshot.toStdString()),
               run->record->planned_steps());
        // Writes the keys that differ from the first job only, so that the text stays readable.
        const std::string text = workspace::edited_job(widgets::JobDraft::first_text().toStdString(), job);
        shelf_->draft().set_text(QString::fromStdString(text));
        shelf_->draft().set_fork({QString::fromStdString(snapshot_folder(id, snapshot).string()),
                                  tr("%1 of %2").arg(snapshot, run->name), true});
        Q_EMIT told(tr("A new job that goes on from %1: change what you like and start it").arg(snapshot));
    } catch (const Error& error) {
        Q_EMIT failed(QString::fromUtf8(error.what()));
    }
}

/// It was started by this window or one before.
bool RunService::is_own(const QString& path) const {
    return std::filesystem::path(path.toStdString()).parent_path() == folder_ / "runs";
}

bool RunService::may_start(bool draft) const {
    if (most_bytes_ <= 0) return true;
    for (const widgets::Run& run : shelf_->runs())
        if (run.alive()) return false;
    const double bytes = shelf_->draft().estimate().memory;
    return !draft || (bytes > 0 && bytes <= most_bytes_);
}

void RunService::start() {
    if (!may_start(true) || shelf_->draft().problem() || !shelf_->starting().isEmpty()) return;
    auto launch = std::make_shared<Launch>();
    launch->job = shelf_->draft().job();
    launch->folder = folder_;
    launch->from = shelf_->draft().fork().path.toStdString();
    launch->fresh_optimizer = !shelf_->draft().fork().keep_optimizer;
    this->launch(std::move(launch));
}

void RunService::resume(int id) {
    const widgets::Run* run = shelf_->run(id);
    if (!may_start(false) || !run || run->alive() || !shelf_->starting().isEmpty()) return;
    auto launch = std::make_shared<Launch>();
    launch->run = run->path.toStdString();
    launch->folder = folder_;
    launch->resume = true;
    this->launch(std::move(launch));
}

void RunService::launch(std::shared_ptr<Launch> launch) {
    starting_.push_back({launch, {}, launch->resume});
    tell_starting();
    files_.post(this, [this, launch, program = program_, send = mailbox_.sender()](const Cancellation&) {
        QString failure;
        try {
            // A run.h5 that is being made now would be older than the one that the process makes.
            if (launch->resume) looks_.forget(&mends_);
            begin_training(*launch, program);
        } catch (...) {
            failure = message_of("training");
        }
        send([this, launch, failure, folder = QString::fromStdString(launch->run.string())] {
            if (failure.isEmpty()) return wait_at(folder, launch);
            end_starting(launch);
            Q_EMIT failed(failure);
        });
    });
}

/// Until the journal in this folder begins. From now on the folder is the user's, whatever becomes of the window.
void RunService::wait_at(const QString& folder, const std::shared_ptr<Launch>& launch) {
    const QString path = QDir::cleanPath(folder);
    const auto own =
        std::find_if(starting_.begin(), starting_.end(), [&](const auto& one) { return one.launch == launch; });
    const bool ours = own != starting_.end();
    if (ours || !starting().contains(path)) {
        if (ours)
            own->folder = path;
        else
            starting_.push_back({launch, path, false});
        tell_starting();
        wait_for(launch);
        Q_EMIT starting_changed();
    }
    if (!ours) Q_EMIT not_opened(folder);
}

/// Which may take as long as the data take to be made, or the process has ended.
void RunService::wait_for(std::shared_ptr<Launch> launch) {
    QTimer::singleShot(kPoll, this, [this, launch] {
        files_.post(this, [this, launch, send = mailbox_.sender()](const Cancellation&) {
            const LaunchState state = look_at(*launch);
            send([this, launch, state] {
                if (state.what == LaunchState::What::waiting) return wait_for(launch);
                if (state.what == LaunchState::What::begun)
                    return read(QString::fromStdString(launch->run.string()), launch);
                end_starting(launch);
                widgets::JobEstimate estimate = shelf_->draft().estimate();
                estimate.problem = problem_of_words(state.words);
                if (!launch->resume) shelf_->draft().set_estimate(std::move(estimate));
                Q_EMIT failed(state.words);
            });
        });
    });
}

void RunService::end_starting(const std::shared_ptr<Launch>& launch) {
    if (std::erase_if(starting_, [&](const Starting& one) { return one.launch == launch; }) == 0) return;
    tell_starting();
    Q_EMIT starting_changed();
}

void RunService::tell_starting() {
    if (!starting_.empty())
        shelf_->set_starting(starting_.front().resume ? tr("Resuming…") : tr("Starting…"));
    else
        shelf_->set_starting(calibration_ ? tr("Measuring…") : QString());
}

QStringList RunService::starting() const {
    QStringList folders;
    for (const Starting& one : starting_)
        if (!one.folder.isEmpty()) folders << one.folder;
    return folders;
}

void RunService::stop_starting() {
    for (const Starting& one : starting_)
        if (!one.folder.isEmpty())
            files_.post(&wishes_, [launch = one.launch](const Cancellation&) { stop_launch(*launch); });
}

}  // namespace headscope::app
