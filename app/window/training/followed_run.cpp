// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/training/followed_run.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/run/journal.h"
#include "core/run/run_history.h"
#include "core/training/job/job.h"
#include "core/training/job/job_name.h"
#include "core/workspace/finished_run.h"

namespace headscope::app {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostRuns = 500;           ///< newest runs that are looked at
constexpr std::uint64_t kLastWords = 1U << 20U;  ///< bytes at a journal's end that hold the run's state
// A copy of a run takes 64 bytes a step: long runs are published at these intervals.
constexpr std::size_t kLong = 20'000, kVeryLong = 100'000;
constexpr std::chrono::milliseconds kSeldom{1000}, kVerySeldom{2000};

/// Reads the last events of the journal alone: a user's journals may be gigabytes, and a run records its end last.
bool is_interrupted(const fs::path& folder) {
    const fs::path journal = training::RunFolder{folder}.journal();
    std::error_code error;
    if (!fs::exists(journal, error))
        return workspace::live_run(training::read_run(folder)).status() == workspace::RunStatus::interrupted;
    if (training::being_written(journal)) return false;
    const std::uint64_t size = fs::file_size(journal, error);
    for (std::uint64_t bytes = error ? training::JournalReader::kAll : kLastWords;; bytes *= 16) {
        training::JournalReader reader(journal, bytes);
        std::optional<training::RunState> state;
        bool any = false;
        for (bool more = true; more;) {
            const auto batch = reader.read();
            for (const auto& event : batch.events) {
                any = true;
                if (std::holds_alternative<training::Started>(event.what)) state = training::RunState::running;
                if (const auto* to = std::get_if<training::StateChanged>(&event.what)) state = to->state;
            }
            more = batch.more;
        }
        // One event may be longer than what was looked at.
        const bool all = error || size <= bytes;
        if (!any && !all) continue;
        if (!state) return !all;
        return *state == training::RunState::running || *state == training::RunState::paused;
    }
}

/// The runs below `runs` that were written last, kMostRuns of them.
std::vector<fs::path> newest_runs(const fs::path& runs, const Cancellation& cancellation) {
    std::vector<std::pair<fs::file_time_type, fs::path>> all;
    std::error_code error;
    for (fs::directory_iterator at(runs, error), end; !error && at != end; at.increment(error)) {
        if (cancellation.requested()) throw Stopped();
        const training::RunFolder folder{at->path()};
        std::error_code none, neither;
        const auto written = fs::last_write_time(folder.journal(), none);
        const auto built = none ? fs::last_write_time(folder.run_file(), neither) : written;
        if (!none || !neither) all.emplace_back(built, folder.path);
    }
    std::sort(all.begin(), all.end(), std::greater<>());
    all.resize(std::min(all.size(), kMostRuns));
    std::vector<fs::path> newest;
    for (auto& [when, folder] : all) newest.push_back(std::move(folder));
    return newest;
}

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
    const bool was_written = record_.written;
    // First whether it is written: a process that ends in between has written all of it by then.
    const bool written = training::being_written(folder_.journal());
    for (bool more = true; more;) {
        const auto batch = reader_->read();
        if (batch.restarted) record_ = {};
        news_ |= batch.restarted || !batch.events.empty();
        try {
            for (const auto& event : batch.events) record_.add(event);
        } catch (...) {  // no memory: half of an event may be in it, and the rest of the batch is gone
            record_ = {};
            reader_.emplace(folder_.journal());
            throw;
        }
        more = batch.more;
    }
    record_.written = written;
    news_ |= written != was_written;
    // The trainer keeps the last few and the best one.
    std::erase_if(record_.snapshots, [this](const auto& snapshot) {
        std::error_code ignored;
        return training::snapshot_step(snapshot.name) < 0 || !fs::exists(folder_.snapshots() / snapshot.name, ignored);
    });
    return was_written && !written;
}

bool FollowedRun::due() const {
    if (!news_ || !published_) return news_;
    if (published_->status() != record_.status() || published_->written != record_.written) return true;
    const std::size_t steps = record_.steps.size();
    const auto apart = steps > kVeryLong ? kVerySeldom : steps > kLong ? kSeldom : std::chrono::milliseconds(0);
    return std::chrono::steady_clock::now() - told_ >= apart;
}

std::shared_ptr<const workspace::LiveRun> FollowedRun::publish() {
    before_.reset();
    auto made = std::make_shared<const workspace::LiveRun>(record_);
    before_ = std::exchange(published_, std::move(made));
    news_ = false;
    told_ = std::chrono::steady_clock::now();
    return published_;
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
    for (const fs::path& folder : newest_runs(runs, cancellation)) {
        if (cancellation.requested()) throw Stopped();
        try {
            if (!training::is_run_folder(folder)) continue;
            if (is_interrupted(folder)) found.push_back(folder);
        } catch (const Error&) {  // not one that could be resumed
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace headscope::app
