// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/followed_run.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/training/job.h"
#include "core/training/job_name.h"
#include "core/training/journal.h"
#include "core/training/run_history.h"
#include "core/workspace/finished_run.h"

namespace headscope::app {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostRuns = 500;  ///< folders that are looked at

}  // namespace

FollowedRun::FollowedRun(fs::path folder) : folder_{std::move(folder)}, reader_(folder_.journal()) {
    std::error_code ignored;
    if (fs::exists(folder_.journal(), ignored)) return;
    if (!training::is_run_folder(folder_.path))
        throw Error(ErrorCode::usage, escaped(folder_.path.string()),
                    "expected the folder of a run, with a journal or a run.h5", "found neither");
    record_ = workspace::live_run(training::read_run(folder_.path));
}

bool FollowedRun::read() {
    const std::uint64_t before = record_.events;
    const bool was_written = record_.written;
    // First whether it is written: a process that ends in between has written all of it by then.
    const bool written = training::being_written(folder_.journal());
    for (bool more = true; more;) {
        const auto batch = reader_.read();
        if (batch.restarted) record_ = {};
        for (const auto& event : batch.events) record_.add(event);
        more = batch.more;
    }
    record_.written = written;
    // The trainer keeps the last few and the best one.
    std::erase_if(record_.snapshots, [this](const auto& snapshot) {
        std::error_code ignored;
        return training::snapshot_step(snapshot.name) < 0 || !fs::exists(folder_.snapshots() / snapshot.name, ignored);
    });
    if (was_written && !written) training::mend_run_file(folder_.path);  // it may have died
    return record_.events != before || written != was_written;
}

std::shared_ptr<const workspace::LiveRun> FollowedRun::published() const {
    return std::make_shared<const workspace::LiveRun>(record_);
}

std::string FollowedRun::name() const {
    std::string name;
    if (record_.started && !record_.started->job.empty()) {
        name = training::job_name(record_.started->job);
    } else {
        try {
            name = training::read_job_file(folder_.job()).name;
        } catch (const Error&) {  // the folder's name is a name too
        }
    }
    return name.empty() ? folder_.path.filename().string() : name;
}

void FollowedRun::ask(training::ControlAction action, const std::string& value) {
    wishes_.push_back(
        {training::send_control(folder_, action, value), QString::fromLatin1(training::action_name(action))});
}

QStringList FollowedRun::waiting() {
    if (!record_.written) wishes_.clear();
    std::erase_if(wishes_, [this](const Wish& wish) {
        return std::any_of(record_.controls.begin(), record_.controls.end(),
                           [&](const auto& done) { return done.control.id == wish.id; });
    });
    QStringList names;
    for (const Wish& wish : wishes_) names << wish.action;
    return names;
}

std::vector<fs::path> interrupted_runs(const fs::path& runs, const Cancellation& cancellation) {
    std::vector<fs::path> found;
    std::error_code error;
    std::size_t looked_at = 0;
    for (fs::directory_iterator at(runs, error), end; !error && at != end && looked_at < kMostRuns;
         at.increment(error), ++looked_at) {
        if (cancellation.requested()) throw Stopped();
        try {
            if (!training::is_run_folder(at->path())) continue;
            FollowedRun run(at->path());
            run.read();
            if (run.published()->status() == workspace::RunStatus::interrupted) found.push_back(at->path());
        } catch (const Error&) {  // not one that could be resumed
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace headscope::app
