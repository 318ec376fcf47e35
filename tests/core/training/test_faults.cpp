// SPDX-License-Identifier: GPL-3.0-or-later
// Failures during a run: numbers that are not finite, full disks, invalid requests.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/run/control.h"
#include "core/run/run_folder.h"
#include "core/run/run_history.h"
#include "core/training/job/job_keys.h"
#include "core/training/job/run_end.h"
#include "core/training/trainer/trainer_session.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/file_size_limit.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using namespace headscope::training;
using namespace headscope::test;
namespace fs = std::filesystem;

TEST_CASE("A gradient that is not finite once is computed again", "[training][faults]") {
    const TemporaryFolder folder;
    run(fresh(small_job(folder), folder / "whole"));
    TrainRequest request = fresh(small_job(folder), folder / "run");
    request.on_gradients = [](std::int64_t step, int attempt, at::Tensor gradients) {
        if (step == 6 && attempt == 0) gradients.data_ptr<float>()[17] = std::numeric_limits<float>::infinity();
    };
    const Told told = run(request);
    CHECK(told.outcome.state == RunState::finished);
    REQUIRE(told.all<Log>().size() == 2);
    CHECK(told.all<Log>()[1].text.find("a fault of the machine") != std::string::npos);
    CHECK(weights_of(folder / "run", 12) == weights_of(folder / "whole", 12));
}

TEST_CASE("A lasting one is reported, stops the run and reaches no snapshot", "[training][faults]") {
    const TemporaryFolder folder;
    run(fresh(small_job(folder), folder / "whole"));
    TrainRequest request = fresh(small_job(folder), folder / "run");
    request.on_gradients = [](std::int64_t step, int, at::Tensor gradients) {
        if (step == 7) gradients.data_ptr<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    };
    REQUIRE_THROWS_MATCHES(run(request), Error, IsError(ErrorCode::limit, "update 7"));
    const auto history = read_run(folder / "run");
    CHECK(history.state == "failed");
    CHECK(history.last_step() == 6);
    CHECK(SnapshotStore(RunFolder{folder / "run"}).steps() == std::vector<std::int64_t>{4});
    const Told told = run(resumed(folder / "run"));
    CHECK(told.outcome.state == RunState::finished);
    CHECK(weights_of(folder / "run", 12) == weights_of(folder / "whole", 12));
}

TEST_CASE("A full disk costs a snapshot and not the run", "[training][faults]") {
    const TemporaryFolder folder;
    run(fresh(small_job(folder), folder / "whole"));
    TrainRequest request = fresh(small_job(folder), folder / "run");
    std::unique_ptr<FileSizeLimit> limit;
    request.on_event = [&](const Event& event) {
        const auto* step = std::get_if<Step>(&event.what);
        if (step == nullptr) return;
        // The journal fits, the weights do not.
        if (step->step == 7) limit = std::make_unique<FileSizeLimit>(60'000);
        if (step->step == 9) limit.reset();
    };
    const Told told = run(request);
    CHECK(told.outcome.state == RunState::finished);
    const auto log = told.all<Log>();
    REQUIRE(log.size() == 1);
    CHECK(log[0].level == LogLevel::error);
    CHECK(log[0].text.find("no snapshot") != std::string::npos);
    CHECK(SnapshotStore(RunFolder{folder / "run"}).steps() == std::vector<std::int64_t>{4, 12});
    for (const auto& entry : fs::directory_iterator(folder / "run" / "snapshots"))
        CHECK(entry.path().filename().string().find("partial") == std::string::npos);
    CHECK(weights_of(folder / "run", 12) == weights_of(folder / "whole", 12));
}

TEST_CASE("A disk that stays full ends the run with an error, and it can be resumed", "[training][faults]") {
    const TemporaryFolder folder;
    run(fresh(small_job(folder), folder / "whole"));
    TrainRequest request = fresh(small_job(folder), folder / "run");
    {
        std::unique_ptr<FileSizeLimit> limit;
        request.on_event = [&](const Event& event) {
            const auto* step = std::get_if<Step>(&event.what);
            if (step != nullptr && step->step == 7) limit = std::make_unique<FileSizeLimit>(60'000);
        };
        REQUIRE_THROWS_MATCHES(run(request), Error, IsError(ErrorCode::io));
    }
    run(resumed(folder / "run"));
    CHECK(weights_of(folder / "run", 12) == weights_of(folder / "whole", 12));
}

TEST_CASE("A run is paused, resumed, stopped and asked from outside", "[training][control]") {
    const TemporaryFolder folder;
    const RunFolder run_folder{folder / "run"};
    REQUIRE_THROWS_MATCHES(send_control(run_folder, ControlAction::pause), Error, IsError(ErrorCode::usage));
    TrainRequest request = fresh(small_job(folder, {"training.steps=1000", "snapshots.every=0"}), run_folder.path);
    std::vector<std::string> refusals;
    request.on_event = [&](const Event& event) {
        if (const auto* step = std::get_if<Step>(&event.what); step != nullptr && step->step == 3) {
            send_control(run_folder, ControlAction::pause);
            send_control(run_folder, ControlAction::snapshot);
            write_file(run_folder.control() / "0-none.json", "{\"action\": \"explode\"}");
            write_file(run_folder.control() / "1-none.json", "not json");
            write_file(run_folder.control() / "half.json.partial", "{");
            fs::create_directories(run_folder.control() / "2-folder.json" / "inside");
            fs::create_symlink("/dev/zero", run_folder.control() / "3-link.json");
            try {
                send_control(run_folder, ControlAction::learning_rate, "fast");
            } catch (const Error& error) {
                refusals.emplace_back(error.what());
            }
        }
        if (const auto* state = std::get_if<StateChanged>(&event.what); state && state->state == RunState::paused) {
            // Both before the next look at requests: this one has its list already.
            send_control(run_folder, ControlAction::resume);
            send_control(run_folder, ControlAction::stop);
        }
    };
    const Told told = run(request);
    CHECK(told.outcome.state == RunState::stopped);
    CHECK(told.outcome.step == 3);
    CHECK(refusals.size() == 1);
    std::vector<std::string> done;
    for (const auto& control : told.all<Control>()) done.push_back(control.action);
    CHECK(done == std::vector<std::string>{"pause", "snapshot", "resume", "stop"});
    CHECK(told.all<Log>().size() == 2);
    CHECK(fs::exists(run_folder.snapshots() / "step-000003" / "manifest.json"));
    CHECK(read_run(run_folder.path).state == "stopped");
}

TEST_CASE("Requests to a dead process are dropped, those to its successor are not", "[training][control]") {
    const TemporaryFolder folder;
    const RunFolder run_folder{folder / "run"};
    fs::create_directories(run_folder.path);
    write_file(run_folder.job(), "");
    fs::create_directories(run_folder.control() / "0-folder.json");
    {
        const JournalWriter died(run_folder.journal());
        send_control(run_folder, ControlAction::pause);
    }
    const auto before = found_control(run_folder);
    const JournalWriter writer(run_folder.journal());
    const std::string id = send_control(run_folder, ControlAction::stop);
    clear_control(run_folder, before);
    std::vector<std::string> refused;
    const auto wishes = read_control(run_folder, refused);
    REQUIRE(wishes.size() == 1);
    CHECK(wishes[0].id == id);
    CHECK(found_control(run_folder).size() == 1);

    // Behind a link lie somebody else's files.
    fs::rename(run_folder.control(), folder / "other");
    fs::create_directory_symlink(folder / "other", run_folder.control());
    clear_control(run_folder, found_control(run_folder));
    CHECK_FALSE(fs::exists(run_folder.control()));
    CHECK_FALSE(fs::is_empty(folder / "other"));
}

TEST_CASE("The minutes of a fork count from its begin, also when it was killed", "[training][fork]") {
    const TemporaryFolder folder;
    const std::vector<std::string> none{"evaluation.every=0", "probe.every=0", "sample.every=0"};
    auto settings = none;
    settings.emplace_back("training.minutes=0.02");  // 1.2 s
    const Told parent = run(fresh(small_job(folder, settings), folder / "parent"));
    REQUIRE(parent.all<Step>().back().seconds >= 1);
    TrainRequest request = fresh(small_job(folder, settings), folder / "fork");
    request.start = TrainRequest::Start::fork;
    request.from = folder / "parent" / "snapshots" / "last";
    const Told fork = run(request);
    CHECK(fork.outcome.state == RunState::finished);
    const auto steps = fork.all<Step>();
    const std::int64_t begin = parent.outcome.step;
    REQUIRE(steps.size() > 5);  // one update, were the parent's time counted
    CHECK(steps.front().step == begin + 1);
    CHECK(steps.back().seconds - parent.all<Step>().back().seconds >= 0.9);
    const auto plans = fork.all<Control>();
    REQUIRE_FALSE(plans.empty());
    CHECK(std::stoll(plans.front().value) > begin + 2);

    // One that is stopped and goes on has what is left of its own time.
    request.run = folder / "killed";
    request.stop_after = [&](std::int64_t step) { return step >= begin + 3; };
    const Told stopped = run(request);
    CHECK(stopped.outcome.state == RunState::stopped);
    const Told rest = run(resumed(folder / "killed"));
    CHECK(rest.outcome.state == RunState::finished);
    CHECK(rest.outcome.step > begin + 4);
    CHECK(rest.all<Step>().back().seconds - parent.all<Step>().back().seconds >= 0.9);
}

TEST_CASE("A run warns of what it is too short for", "[training]") {
    const auto warnings = [](std::int64_t warmup, std::int64_t every, std::int64_t begin, std::int64_t end) {
        JobFile job;
        job.schedule.warmup_steps = warmup;
        job.evaluation.every = job.probe.every = every;
        return unreached_intervals(job, run_lengths(job), begin, end, true);
    };
    CHECK(warnings(10, 20, 0, 100).empty());
    CHECK(warnings(100, 50, 0, 1000).empty());
    CHECK(warnings(0, 0, 0, 1).empty());
    CHECK(warnings(100, 20, 0, 42) ==
          std::vector<std::string>{"schedule.warmup_steps = 100 is longer than the run's 42 updates: the rate never "
                                   "reaches its peak"});
    CHECK(warnings(30, 20, 0, 42) ==
          std::vector<std::string>{"schedule.warmup_steps = 30 takes more than half of the run's 42 updates"});
    CHECK(warnings(0, 50, 0, 42) ==
          std::vector<std::string>{"evaluation.every = 50 is longer than the run's 42 updates: only its begin and its "
                                   "end are evaluated",
                                   "probe.every = 50 is longer than the run's 42 updates: no indicator is measured "
                                   "after its begin"});
    CHECK(warnings(0, 50, 80, 122).empty());  // step 100 is among them
    CHECK(warnings(0, 50, 101, 140).size() == 2);
    CHECK(warnings(100, 0, 500, 502).empty());  // a fork behind the warm-up

    const TemporaryFolder folder;
    const Told told = run(fresh(small_job(folder, {"training.steps=4", "schedule.warmup_steps=9", "evaluation.every=0",
                                                   "probe.every=0", "sample.every=0"}),
                                folder / "run"));
    const auto lines = told.all<Log>();
    CHECK(std::count_if(lines.begin(), lines.end(), [](const Log& line) {
              return line.level == LogLevel::warning && line.text.find("warmup_steps = 9") != std::string::npos;
          }) == 1);
}

TEST_CASE("A fork goes on from a snapshot, with its optimiser's state or without", "[training][fork]") {
    const TemporaryFolder folder;
    run(fresh(small_job(folder), folder / "whole"));
    TrainRequest request = fresh(small_job(folder), folder / "same");
    request.start = TrainRequest::Start::fork;
    request.from = folder / "whole" / "snapshots" / "step-000004";
    run(request);
    CHECK(weights_of(folder / "same", 12) == weights_of(folder / "whole", 12));
    CHECK(weights_of(folder / "same", 4) == weights_of(folder / "whole", 4));

    request.run = folder / "fresh";
    request.keep_optimizer = false;
    set_key(request.job, "training.steps=2");
    const Told told = run(request);
    CHECK(told.all<Started>()[0].step == 0);
    CHECK(told.all<Step>()[0].loss < 5.3);
    CHECK(weights_of(folder / "fresh", 0) == weights_of(folder / "whole", 4));

    request.run = folder / "none";
    request.keep_optimizer = true;
    TrainRequest other = request;
    other.run = folder / "taken";
    other.from = folder / "whole";
    REQUIRE_THROWS_MATCHES(run(other), Error, IsError(ErrorCode::usage, "whole/snapshots/last"));
    other.from = request.from;
    set_key(other.job, "model.mixer=mlp");
    REQUIRE_THROWS_MATCHES(run(other), Error, IsError(ErrorCode::mismatch, "model.mixer"));
    other.job = read_job("[data]\ntext = \"" + (folder / "text.txt").string() + "\"\n", "job");
    for (const char* line : {"data.sequence_length=32", "training.steps=5", "training.batch=4"})
        set_key(other.job, line);
    CHECK(run(other).all<Started>()[0].parameters == told.all<Started>()[0].parameters);
    REQUIRE_THROWS_MATCHES(run(request), Error, IsError(ErrorCode::usage, "training.steps"));
}

TEST_CASE("Requests are repeated in the order of their steps; the latest counts", "[training][control]") {
    const auto control = [](std::int64_t step, const char* action, const char* value, const char* id) {
        return Event{0, Control{step, action, value, "", id}};
    };
    const std::vector<Event> journal = {control(3, "learning_rate", "1", "a"),  control(50, "learning_rate", "2", "b"),
                                        control(55, "evaluate", "", "c"),       Event{0, Rewound{40, ""}},
                                        control(50, "learning_rate", "2", "b"), Event{0, Rewound{40, ""}},
                                        control(45, "learning_rate", "3", "d")};
    const auto replays = replays_of(journal, 40);
    REQUIRE(replays.size() == 2);
    CHECK(replays[0] == Replay{45, "learning_rate", "3", "d"});
    CHECK(replays[1] == Replay{55, "evaluate", "", "c"});
}
