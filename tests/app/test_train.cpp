// SPDX-License-Identifier: GPL-3.0-or-later
// Training from the command line: a job runs, is asked, stopped and resumed; what it leaves is opened by the others.
#include <catch2/catch.hpp>

#include <csignal>
#include <thread>

#include "core/run/journal_reader.h"
#include "core/run/run_history.h"
#include "expectations.h"
#include "files.h"
#include "program.h"
#include "training_job.h"

using namespace headscope::testing;
namespace fs = std::filesystem;

namespace {

/// Waits until the run has done `step` steps; false when the process ended before.
bool wait_for_step(Process& process, const fs::path& run, std::int64_t step) {
    headscope::training::JournalReader reader(run / "events.log");
    while (process.running()) {
        for (const auto& event : reader.read().events)
            if (const auto* done = std::get_if<headscope::training::Step>(&event.what); done && done->step >= step)
                return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

}  // namespace

TEST_CASE("A job is trained, listed, opened and resumed", "[app][train]") {
    TemporaryFolder folder;
    const fs::path job = write_tiny_job(folder.path(), 30), run = folder / "run";
    const Outcome trained =
        run_headscope({"train", job.string(), "-o", run.string(), "--json", "--set", "snapshots.every=10"});
    check_success(trained);
    const auto document = nlohmann::json::parse(trained.out);
    CHECK(document.at("state") == "finished");
    CHECK(document.at("step") == 30);
    CHECK(document.at("validation") < 5.0);
    const fs::path snapshot = run / document.at("snapshot").get<std::string>();
    const Outcome info = run_headscope({"info", snapshot.string(), "--json"});
    check_success(info);
    CHECK(nlohmann::json::parse(info.out).at("problems").empty());
    check_success(run_headscope(
        {"analyze", snapshot.string(), "--text", "1 or 2 and 3", "-o", (folder / "a.headscope.h5").string()}));
    check_success(
        run_headscope({"generate", (run / "snapshots" / "last").string(), "--prompt", "1 or", "--tokens", "3"}));
    check_refusal(run_headscope({"train", job.string(), "-o", run.string()}), "not empty");
    check_refusal(run_headscope({"control", run.string(), "pause"}), "--resume");
    // A resumed run that was finished is finished.
    check_success(run_headscope({"train", "-o", run.string(), "--resume"}));
    // A fork goes on, for longer.
    const Outcome fork = run_headscope({"train", "--from", snapshot.string(), "-o", (folder / "fork").string(), "--set",
                                        "training.steps=32", "--json"});
    check_success(fork);
    CHECK(nlohmann::json::parse(fork.out).at("step") == 32);
}

TEST_CASE("A run is paused, asked and stopped by commands, and by Ctrl-C in order", "[app][train][control]") {
    TemporaryFolder folder;
    const fs::path job = write_tiny_job(folder.path(), 100000), run = folder / "today's run";
    {
        Process process({"train", job.string(), "-o", run.string()}, {.seconds = 60});
        REQUIRE(wait_for_step(process, run, 3));
        check_refusal(run_headscope({"train", "-o", run.string(), "--resume"}), "no other process");
        for (const std::vector<std::string>& wish : std::vector<std::vector<std::string>>{
                 {"pause"}, {"rate", "1e-3"}, {"evaluate"}, {"snapshot"}, {"resume"}, {"stop"}}) {
            std::vector<std::string> arguments{"control", run.string()};
            arguments.insert(arguments.end(), wish.begin(), wish.end());
            const Outcome outcome = run_headscope(arguments);
            check_success(outcome);
            CHECK(outcome.out.rfind("step ", 0) == 0);
        }
        check_success(process.wait());
    }
    CHECK(headscope::training::read_run(run).state == "stopped");
    check_refusal(run_headscope({"control", run.string(), "stop"}), "no process that trains it");
    check_refusal(run_headscope({"control", run.string(), "exlpode"}), "pause");
    {
        Process process({"train", "-o", run.string(), "--resume"}, {.seconds = 60});
        const auto before = headscope::training::read_run(run).last_step();
        REQUIRE(wait_for_step(process, run, before + 3));
        process.signal(SIGINT);
        const Outcome outcome = process.wait();
        CHECK(outcome.status == 130);
        // A command that a shell takes.
        const std::string quoted = "'" + (folder / "today").string() + "'\\''s run'";
        CHECK(outcome.out.find("\nheadscope train -o " + quoted + " --resume goes on\n") != std::string::npos);
    }
    const auto history = headscope::training::read_run(run);
    CHECK(history.state == "stopped");
    CHECK(history.snapshots.back().step == history.last_step());
}

TEST_CASE("Wrong jobs are one line with the place of what is wrong", "[app][train]") {
    TemporaryFolder folder;
    const fs::path job = write_tiny_job(folder.path(), 5, "stesp = 3\n");
    check_refusal(run_headscope({"train", job.string(), "-o", (folder / "run").string()}), "is training.steps meant?");
    check_refusal(run_headscope({"train", (folder / "none.toml").string(), "-o", (folder / "run").string()}));
    check_usage_error(run_headscope({"train", "-o", (folder / "run").string()}));
    check_usage_error(run_headscope({"train", job.string()}));
    check_refusal(run_headscope({"train", "--resume", "-o", (folder / "none").string()}), "job.toml");
    CHECK_FALSE(fs::exists(folder / "run"));
}

TEST_CASE("A job of minutes ends in its time", "[app][train]") {
    TemporaryFolder folder;
    const fs::path job = write_tiny_job(folder.path(), 5);
    const Outcome outcome = run_headscope(
        {"train", job.string(), "-o", (folder / "run").string(), "--json", "--set", "training.minutes=0.05"});
    check_success(outcome);
    CHECK(outcome.seconds > 2.5);
    const auto history = headscope::training::read_run(folder / "run");
    CHECK(history.state == "finished");
    CHECK(history.training.seconds.back() == Approx(3).margin(1.5 * kSlowness));
    CHECK(history.training.learning_rate.back() < 1e-3);
}
