// SPDX-License-Identifier: GPL-3.0-or-later
// Runs that go on otherwise than they began: with another end, on another machine, with links and words that a kill
// left behind.
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/run/control.h"
#include "core/run/journal.h"
#include "core/run/journal_reader.h"
#include "core/run/run_folder.h"
#include "core/run/run_history.h"
#include "core/training/trainer/training_state.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using namespace headscope::training;
using namespace headscope::test;
namespace fs = std::filesystem;

namespace {

void copy_folder(const fs::path& from, const fs::path& to) {
    fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

TrainRequest resumed_with(const fs::path& run, const std::string& line) {
    TrainRequest request = resumed(run);
    set_key(request.job, line);
    return request;
}

/// The step that snapshots/NAME leads to; -1: there is no such link.
std::int64_t linked(const fs::path& run, const char* name) {
    std::error_code none;
    const fs::path target = fs::read_symlink(run / "snapshots" / name, none);
    if (none) return -1;
    CHECK(fs::exists(run / "snapshots" / target));
    return snapshot_step(target.string());
}

std::int64_t best_in_state(const fs::path& run, std::int64_t step) {
    const fs::path path = run / "snapshots" / snapshot_name(step) / kStateName;
    return read_state(read_json_file(path, 1'000'000, "training state"), "state").best_step;
}

}  // namespace

TEST_CASE("A run whose rates do not depend on its end may be given another one", "[training][resume][end]") {
    const TemporaryFolder folder;
    const fs::path longer = folder / "longer", run_path = folder / "run", killed = folder / "killed";
    std::vector<std::string> lines;
    std::int64_t first_stop = 12;  // the end of the shorter job
    SECTION("constant, after its end") {
        lines = {"schedule.kind=constant", "training.dropout=0.1"};
    }
    SECTION("wsd, before its fall") {
        lines = {"schedule.kind=wsd", "schedule.decay_share=0.25"};
        first_stop = 9;
    }
    SECTION("cosine, in warm-up") {
        lines = {"schedule.warmup_steps=6"};
        first_stop = 5;
    }
    JobFile job = small_job(folder, lines);
    TrainRequest request = fresh(job, run_path);
    request.stop_after = [&](std::int64_t step) { return step == first_stop; };
    run(request);
    set_key(job, "training.steps=18");
    run(fresh(job, longer));

    TrainRequest again = resumed_with(run_path, "training.steps=18");
    again.on_event = [&](const Event& event) {
        const auto* step = std::get_if<Step>(&event.what);
        if (step != nullptr && step->step == 14) copy_folder(run_path, killed);
    };
    const Told told = run(again);
    CHECK(told.all<Started>()[0].steps == 18);
    CHECK(told.outcome.step == 18);
    run(resumed(killed));  // its job has the new end
    for (const fs::path& path : {run_path, killed}) {
        CHECK(weights_of(path, 18) == weights_of(longer, 18));
        CHECK(optimizer_of(path, 18) == optimizer_of(longer, 18));
        CHECK(read_run(path).planned_steps == 18);
        CHECK(*stored_job(path).training.steps == 18);
    }
}

TEST_CASE("An end that rates depend on stays, and so does one that is passed", "[training][resume][end]") {
    const TemporaryFolder folder;
    const auto refused = [&](const std::vector<std::string>& lines, const std::string& end, const std::string& words) {
        const TemporaryFolder runs;
        TrainRequest request = fresh(small_job(folder, lines), runs / "run");
        request.stop_after = [](std::int64_t step) { return step == 11; };
        run(request);
        REQUIRE_THROWS_MATCHES(run(resumed_with(runs / "run", end)), Error, IsError(ErrorCode::mismatch, words));
        CHECK(run(resumed(runs / "run")).outcome.step == 12);  // nothing was lost
    };
    refused({}, "training.steps=18", "train --from SNAPSHOT starts another run");
    refused({}, "training.steps=18", "training.steps = 12");
    refused({"schedule.kind=linear"}, "training.tokens=9e3", "found training.tokens = 9000");
    refused({"schedule.kind=wsd", "schedule.decay_share=0.25"}, "training.steps=18", "11 updates done");
    refused({"schedule.kind=wsd", "schedule.decay_share=0.01"}, "training.minutes=1", "minutes");
    refused({"schedule.kind=constant"}, "training.steps=10", "after the 11 updates that are done");
}

TEST_CASE("With a constant schedule minutes may become more, or updates", "[training][resume][end]") {
    const TemporaryFolder folder;
    const fs::path path = folder / "run";
    run(fresh(small_job(folder, {"schedule.kind=constant", "training.minutes=0.005", "evaluation.every=0",
                                 "probe.every=0", "sample.every=0"}),
              path));
    const std::int64_t done = read_run(path).last_step();
    const Told more = run(resumed_with(path, "training.minutes=0.01"));
    CHECK(more.outcome.state == RunState::finished);
    CHECK(more.outcome.step > done);
    const std::int64_t end = more.outcome.step + 7;
    CHECK(run(resumed_with(path, "training.steps=" + std::to_string(end))).outcome.step == end);
}

TEST_CASE("Resuming with another number of threads is reported", "[training][resume]") {
    const TemporaryFolder folder;
    TrainRequest request = fresh(small_job(folder), folder / "run");
    request.stop_after = [](std::int64_t step) { return step == 5 || step == 7; };
    run(request, 2);
    request = resumed(folder / "run");
    request.stop_after = [](std::int64_t step) { return step == 7; };
    const auto log = run(request, 1).all<Log>();
    REQUIRE(log.size() == 1);
    CHECK(log[0].level == LogLevel::warning);
    CHECK(log[0].text.find("by 2 threads until now and goes on by 1 thread;") != std::string::npos);
    CHECK(run(resumed(folder / "run"), 1).all<Log>().empty());
}

TEST_CASE("The best snapshot is the same for the links, the states and the history", "[training][snapshots]") {
    const TemporaryFolder folder;
    const RunFolder path{folder / "run"};
    TrainRequest request = fresh(small_job(folder, {"evaluation.every=0"}), path.path);
    int looked = 0;
    request.on_event = [&](const Event& event) {
        const auto* snapshot = std::get_if<training::Snapshot>(&event.what);
        const auto* step = std::get_if<Step>(&event.what);
        if ((snapshot != nullptr && snapshot->step == 4) || (step != nullptr && step->step == 10)) {
            // Behind the snapshot of step 4 it comes too late for it; before one of step 10 it counts.
            send_control(path, ControlAction::evaluate);
            send_control(path, ControlAction::snapshot);
        }
        const auto* control = std::get_if<Control>(&event.what);
        if (control == nullptr || control->action != "snapshot") return;
        CHECK(linked(path.path, "last") == control->step);
        CHECK(linked(path.path, "best") == best_in_state(path.path, control->step));
        ++looked;
    };
    run(request);
    CHECK(looked == 2);
    CHECK(linked(path.path, "best") == 10);
    CHECK(best_in_state(path.path, 12) == 10);
    for (const auto& snapshot : read_run(path.path).snapshots) CHECK(snapshot.best == (snapshot.step == 10));
}

TEST_CASE("What a kill between a snapshot and its links left is put right", "[training][resume][snapshots]") {
    const TemporaryFolder folder;
    const fs::path whole = folder / "whole", path = folder / "run";
    TrainRequest request = fresh(small_job(folder), whole);
    request.stop_after = [](std::int64_t step) { return step == 8; };
    run(request);
    copy_folder(whole, path);
    fs::remove(path / kJournalName);
    {
        JournalWriter journal(path / kJournalName);
        for (const Event& event : read_journal(whole / kJournalName)) {
            const auto* snapshot = std::get_if<training::Snapshot>(&event.what);
            if (snapshot != nullptr && snapshot->step == 8) break;
            journal.append(event.what, event.time);
        }
    }
    for (const char* name : {"last", "best"}) {
        fs::remove(path / "snapshots" / name);
        fs::create_symlink("step-000004", path / "snapshots" / name);
    }
    request = resumed(path);
    request.stop_after = [](std::int64_t step) { return step == 9; };
    run(request);
    CHECK(best_in_state(path, 8) == 8);
    const auto snapshots = read_run(path).snapshots;
    const auto same = [](const auto& a, const auto& b) { return a.step == b.step && a.bytes == b.bytes; };
    const auto told = read_run(whole).snapshots;
    REQUIRE(snapshots.size() == told.size() + 1);
    CHECK(std::equal(told.begin(), told.end(), snapshots.begin(), same));
    CHECK(linked(path, "last") == 9);
    CHECK(linked(path, "best") == best_in_state(path, 9));

    // No link leads to a damaged one.
    fs::remove(path / "snapshots" / "step-000009" / "config.json");
    request.stop_after = [](std::int64_t step) { return step == 10; };
    std::int64_t last = 0, best = 0;
    request.on_event = [&](const Event& event) {
        const auto* state = std::get_if<StateChanged>(&event.what);
        if (state == nullptr || state->state != RunState::running) return;
        last = linked(path, "last");
        best = linked(path, "best");
    };
    run(request);
    CHECK(last == 8);
    CHECK(best == 8);
}

TEST_CASE("Links in a run's folder lead no writing out of it", "[training][resume][links]") {
    const TemporaryFolder folder;
    const fs::path path = folder / "run", other = folder / "other.txt";
    write_file(other, "somebody else's");
    TrainRequest request = fresh(small_job(folder), path);
    request.stop_after = [](std::int64_t step) { return step == 5; };
    run(request);
    const std::string job = read_file(path / "job.toml");
    write_file(folder / "job.toml", job);
    for (const auto& [name, target] : {std::pair{"run.h5", other}, std::pair{"job.toml", folder / "job.toml"}}) {
        fs::remove(path / name);
        fs::create_symlink(target, path / name);
    }
    run(resumed_with(path, "name=another"));
    CHECK(read_file(other) == "somebody else's");
    CHECK(read_file(folder / "job.toml") == job);
    CHECK(read_run(path).state == "finished");
    CHECK(stored_job(path).name == "another");

    fs::rename(path / kJournalName, folder / "journal");
    const std::string journal = read_file(folder / "journal");
    fs::create_symlink(folder / "journal", path / kJournalName);
    REQUIRE_THROWS_MATCHES(run(resumed(path)), Error, IsError(ErrorCode::usage, "found a link"));
    CHECK(read_file(folder / "journal") == journal);
}

TEST_CASE("Snapshots that lie behind a link are neither pruned nor added to", "[training][resume][links]") {
    const TemporaryFolder folder;
    const fs::path path = folder / "run", elsewhere = folder / "elsewhere";
    TrainRequest request = fresh(small_job(folder), path);
    request.stop_after = [](std::int64_t step) { return step == 5; };
    run(request);
    fs::rename(path / "snapshots", elsewhere);
    fs::create_directories(elsewhere / ".trash-mine");
    fs::create_directory_symlink(elsewhere, path / "snapshots");
    const std::string journal = read_file(path / kJournalName);
    REQUIRE_THROWS_MATCHES(run(resumed(path)), Error, IsError(ErrorCode::usage, "found a link"));
    CHECK(fs::exists(elsewhere / ".trash-mine"));
    CHECK(read_file(path / kJournalName) == journal);
    fs::remove(path / "snapshots");
    fs::rename(elsewhere, path / "snapshots");
    CHECK(run(resumed(path)).outcome.state == RunState::finished);
}
