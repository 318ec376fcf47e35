// SPDX-License-Identifier: GPL-3.0-or-later
// kill -9 at random moments, again and again: the run goes on each time, and ends with the weights of an undisturbed
// one, to the bit. HEADSCOPE_KILLS sets how often (200), HEADSCOPE_KILL_SEED the moments.
#include <catch2/catch.hpp>

#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "core/run/run_history.h"
#include "expectations.h"
#include "files.h"
#include "program.h"
#include "training_job.h"

using namespace headscope::testing;
namespace fs = std::filesystem;

namespace {

long setting(const char* name, long standard) {
    const char* value = std::getenv(name);
    return value == nullptr ? standard : std::atol(value);
}

/// Kills the run `kills` times; every process that is not killed in time finishes the run, so the job must be long.
void kill_often(long kills, int steps, const std::string& extra) {
    TemporaryFolder folder;
    const fs::path job = write_tiny_job(folder.path(), steps, extra);
    const fs::path whole = folder / "whole", killed = folder / "killed";
    const Outcome undisturbed = run_headscope({"train", job.string(), "-o", whole.string()}, {.seconds = 3000});
    check_success(undisturbed);
    const auto seed = static_cast<unsigned>(setting("HEADSCOPE_KILL_SEED", 20261122));
    INFO("seed " << seed);
    std::mt19937 random(seed);
    // Between the start of the program, of which a good part is before the first step, and some dozen steps later.
    const double most = 0.6 + 1.2 * undisturbed.seconds / static_cast<double>(kills);
    std::uniform_real_distribution<double> moment(0.05, most);
    long done = 0, resumed = 0;
    while (done < kills) {
        const bool begun = fs::exists(killed / "job.toml");
        const std::vector<std::string> arguments =
            begun ? std::vector<std::string>{"train", "-o", killed.string(), "--resume"}
                  : std::vector<std::string>{"train", job.string(), "-o", killed.string()};
        Process process(arguments, {.seconds = 900});
        std::this_thread::sleep_for(std::chrono::duration<double>(moment(random)));
        if (!process.running()) {
            const Outcome outcome = process.wait();
            INFO(outcome.err);
            REQUIRE(outcome.status == 0);
            break;
        }
        process.signal(SIGKILL);
        process.wait();
        ++done;
        resumed += begun ? 1 : 0;
        // A snapshot's name never holds half a snapshot.
        if (fs::exists(killed / "snapshots"))
            for (const auto& entry : fs::directory_iterator(killed / "snapshots"))
                if (entry.is_directory() && entry.path().filename().string().find("step-") == 0 &&
                    entry.path().extension().empty())
                    REQUIRE(fs::exists(entry.path() / "manifest.json"));
    }
    const Outcome last = run_headscope({"train", "-o", killed.string(), "--resume"}, {.seconds = 3000});
    check_success(last);
    REQUIRE_FALSE(last.timed_out);  // a slow machine says nothing about weights
    WARN(done << " kills, " << resumed << " of them of a resumed run");
    const auto history = headscope::training::read_run(killed), expected = headscope::training::read_run(whole);
    CHECK(history.state == "finished");
    CHECK(history.training.loss == expected.training.loss);
    CHECK(history.validation.loss == expected.validation.loss);
    const std::string name = headscope::training::read_run(whole).snapshots.back().name;
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
        INFO(file);
        const bool same = read_file(killed / "snapshots" / name / file) == read_file(whole / "snapshots" / name / file);
        CHECK(same);
    }
    CHECK(done > 0);  // all of them where the machine is as fast as it was for the undisturbed run
}

}  // namespace

TEST_CASE("Killed a few times, a run ends with the same weights", "[app][train][kill]") {
    kill_often(4, 2500, "dropout = 0.1\n[snapshots]\nevery = 50\n");
}

TEST_CASE("Killed 200 times at random, a run ends with the same weights", "[.slow][train][kill]") {
    kill_often(setting("HEADSCOPE_KILLS", 200), 40000, "dropout = 0.1\naccumulate = 2\n[snapshots]\nevery = 40\n");
}
