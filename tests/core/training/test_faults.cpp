// SPDX-License-Identifier: GPL-3.0-or-later
// Failures during a run: numbers that are not finite, full disks, invalid requests.
#include <ATen/core/Tensor.h>

#include <limits>

#include "core/base/error.h"
#include "core/run/control.h"
#include "core/run/run_folder.h"
#include "core/run/run_history.h"
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
