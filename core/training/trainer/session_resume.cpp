// SPDX-License-Identifier: GPL-3.0-or-later
// Resuming a run: its last whole snapshot, the records of its journal, and what must be unchanged.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/process/machine.h"
#include "core/base/process/os_error.h"
#include "core/run/control.h"
#include "core/run/journal_reader.h"
#include "core/training/job/run_end.h"
#include "core/training/trainer/session_parts.h"
#include "kernels/backend.h"
#include "kernels/parallel.h"

namespace headscope::training {
namespace {

namespace fs = std::filesystem;

/// Only what does not change the computation may differ from the run's job.
void check_job(const JobFile& job, const JobFile& was, const fs::path& run) {
    const auto differences = job_differences(job, was, true);
    if (differences.empty()) return;
    std::string found = differences.front();
    if (differences.size() > 1) found += ", and " + std::to_string(differences.size() - 1) + " more";
    throw Error(ErrorCode::mismatch, shown(run),
                "expected the job that the run began with; train --from SNAPSHOT starts a run of another one",
                "found " + found);
}

/// If a run's journal is gone, run.h5 is the only record, and a new one will replace it.
void keep_run_file(Session& session) {
    const fs::path file = session.run.run_file();
    std::error_code error;
    if (!fs::is_regular_file(file, error)) return;
    fs::path aside;
    for (int number = 1; number == 1 || fs::exists(aside, error); ++number)
        aside = session.run.path / ("run-before-" + std::to_string(number) + ".h5");
    fs::rename(file, aside, error);
    if (error) throw os_error(error.value(), file, "expected to keep this record of a run whose journal is gone");
    session.problems.push_back("the journal lacks earlier records; " + shown(aside.filename()) +
                               " has them, as run.h5 had");
}

std::unique_ptr<JournalWriter> open_journal(const RunFolder& run) {
    try {
        return std::make_unique<JournalWriter>(run.journal());
    } catch (const Error& error) {
        if (error.code() != ErrorCode::mismatch) throw;
        throw Error(error.code(), error.where(),
                    error.expected() +
                        "; with this file moved away the run goes on from its snapshots, without its "
                        "history",
                    error.found());
    }
}

/// Changes after which the same numbers cannot be expected.
void check_machine(Session& session, const Started& before, int processes) {
    const auto tell = [&](const std::string& was, const std::string& is) {
        session.problems.push_back("the run was computed " + was + " until now and goes on " + is +
                                   "; from here on its numbers may differ in their last digits from those that it "
                                   "would have had");
    };
    const auto count = [](std::int64_t number, const char* one, const char* many) {
        return "by " + std::to_string(number) + (number == 1 ? one : many);
    };
    if (before.processes != processes)
        tell(count(before.processes, " process", " processes"), count(processes, " process", " processes"));
    else if (const std::int64_t threads = kernels::threads(); before.threads != threads)
        tell(count(before.threads, " thread", " threads"), count(threads, " thread", " threads"));
    else if (const std::string machine = processor_name(); before.machine != machine)
        tell("on " + before.machine, "on " + machine);
    else if (const std::string device = kernels::chosen_device(); !before.device.empty() && before.device != device)
        tell("on " + before.device, "on " + device);
}

/// The end of a run that goes on: that of its job, or the last plan of a job of minutes whose rates follow plans.
void adopt_end(Session& session) {
    if (follows_plans(session.job)) return;
    session.state.planned_steps = session.lengths.updates;
    std::erase_if(session.replays, [](const Replay& replay) { return replay.action == "plan"; });
}

}  // namespace

void open_resumed(Session& session, int processes, Progress& progress, const Cancellation& cancellation) {
    const JobFile was = stored_job(session.run.path);
    if (!session.job.tokenizer_given) session.job.data.tokenizer = was.data.tokenizer;  // whatever it would be now
    check_job(session.job, was, session.run.path);
    const auto wishes_to_others = found_control(session.run);
    session.journal = open_journal(session.run);
    clear_control(session.run, wishes_to_others);
    session.run.remove_partials();
    if (session.journal->cut() > 0)
        session.problems.push_back("the journal ended in " + std::to_string(session.journal->cut()) +
                                   " bytes of an event that was never whole; they were cut off");
    session.snapshots = std::make_unique<SnapshotStore>(session.run);
    session.snapshots->clean();
    const std::vector<Event> events = read_journal(session.run.journal());
    TrainingState state;
    const std::int64_t step = session.snapshots->newest_whole(state, session.problems, cancellation);
    const Started *began = nullptr, *before = nullptr;
    std::int64_t last = 0;
    session.untold = step >= 0;
    for (const Event& event : events) {
        if (const auto* start = std::get_if<Started>(&event.what)) {
            if (began == nullptr) began = start;
            before = start;
        }
        if (const auto* one = std::get_if<Snapshot>(&event.what)) session.untold &= one->step != step;
        if (const auto* done = std::get_if<Step>(&event.what)) last = std::max(last, done->step);
        if (const auto* one = std::get_if<Validation>(&event.what)) session.validated_first |= one->step == 0;
        if (const auto* one = std::get_if<ProbeResult>(&event.what)) session.probed_first |= one->step == 0;
    }
    open_data(session, step >= 0 ? session.snapshots->folder(step) : fs::path(), progress, cancellation);
    check_end(session.job, was, state.step, state.planned_steps, session.source->epoch(), session.run.path);
    if (step >= 0) {
        const fs::path folder = session.snapshots->folder(step);
        check_job(read_job(state.job, "snapshot"), was, folder);
        check_data(session, state.data_hash, folder);
        open_snapshot(session, folder, progress, cancellation);
        adopt(session, state, folder);
        // The best may have been damaged: then the next one is.
        if (state.best_step >= 0 && !fs::exists(session.snapshots->folder(state.best_step))) {
            session.state.best_step = -1;
            session.state.best_validation = TrainingState().best_validation;
        }
        // A kill between a snapshot and its links, or one that was put aside.
        session.snapshots->link("last", step);
        session.snapshots->link("best", session.state.best_step);
    } else {
        for (const char* name : {"last", "best"}) session.snapshots->link(name, -1);
        if (began != nullptr) check_data(session, began->data_hash, session.run.journal());
        if (began != nullptr && began->step > 0)
            throw Error(ErrorCode::mismatch, shown(session.run.snapshots()),
                        "expected the snapshot that this run began from", "found none that is whole");
        begin_model(session, progress, cancellation);
    }
    if (began == nullptr && step >= 0) keep_run_file(session);
    session.resumed = began != nullptr;
    session.rewound = last > session.state.step;
    session.replays = replays_of(events, session.state.step);
    adopt_end(session);
    if (before != nullptr) check_machine(session, *before, processes);
    if (!session.run.exists() || !job_differences(session.job, was, false).empty()) write_job(session.run, session.job);
}

std::vector<Replay> replays_of(const std::vector<Event>& journal, std::int64_t from) {
    std::vector<Replay> all;
    for (const Event& event : journal) {
        const auto* control = std::get_if<Control>(&event.what);
        if (control == nullptr || control->step < from) continue;
        const Replay replay{control->step, control->action, control->value, control->id};
        if (std::find(all.begin(), all.end(), replay) != all.end()) continue;  // done again after a resume
        if (replay.action == "learning_rate" || replay.action == "plan") {
            std::erase_if(
                all, [&](const Replay& other) { return other.action == replay.action && other.step > replay.step; });
        }
        all.push_back(replay);
    }
    std::stable_sort(all.begin(), all.end(), [](const Replay& a, const Replay& b) { return a.step < b.step; });
    return all;
}

}  // namespace headscope::training
