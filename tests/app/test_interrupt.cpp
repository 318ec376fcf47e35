// SPDX-License-Identifier: GPL-3.0-or-later
// Jobs that are stopped: Ctrl-C cleans up within a second; a killed job leaves its finished layers and no output.
#include <catch2/catch.hpp>

#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "core/store/analysis/analysis_file.h"
#include "expectations.h"
#include "files.h"
#include "program.h"

using namespace headscope::testing;
namespace fs = std::filesystem;

namespace {

void sleep_for(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// Waits until `ready` or the process's end; false when the process ended first.
template <class Ready>
bool wait_until(Process& process, Ready ready) {
    while (process.running()) {
        if (ready()) return true;
        sleep_for(0.005);
    }
    return false;
}

/// A job of minutes: four sequences of 16 384 tokens.
std::vector<std::string> long_job(const TemporaryFolder& folder, const TemporaryFolder& out) {
    const auto tokens = write_tokens(folder / "long.json", {16384, 16384, 16384, 16384});
    return {"analyze",
            sample().string(),
            "--tokens",
            tokens.string(),
            "--beyond-positions",
            "-o",
            (out / "x.headscope.h5").string()};
}

void stop_with(int signal, int expected_status, double delay) {
    TemporaryFolder folder, out;
    Process process(long_job(folder, out), {.seconds = 20});
    const auto started = [&] { return !out.names().empty(); };
    REQUIRE(wait_until(process, started));  // the partial file is there: the analysis has begun
    sleep_for(delay * kSlowness);
    REQUIRE(process.running());
    const auto before = std::chrono::steady_clock::now();
    process.signal(signal);
    const Outcome outcome = process.wait();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    INFO("standard error:\n" << outcome.err);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.status == expected_status);
    CHECK(seconds < 15.0 * kSlowness);  // one, and more where others keep the processors busy; the job takes minutes
    CHECK(outcome.out.empty());
    CHECK(out.names().empty());
}

}  // namespace

TEST_CASE("Ctrl-C ends a job within a second, with status 130 and nothing left", "[app][interrupt]") {
    SECTION("at its start") {
        stop_with(SIGINT, 130, 0.0);
    }
    SECTION("in the middle of a layer") {
        stop_with(SIGINT, 130, 0.8);
    }
}

TEST_CASE("SIGTERM cleans up as Ctrl-C does", "[app][interrupt]") {
    stop_with(SIGTERM, 128 + SIGTERM, 0.3);
}

TEST_CASE("Ctrl-C keeps an older output", "[app][interrupt]") {
    TemporaryFolder folder, out;
    const auto output = write_file(out / "x.headscope.h5", "an older file");
    Process process(long_job(folder, out), {.seconds = 20});
    REQUIRE(wait_until(process, [&] { return out.names().size() > 1; }));
    process.signal(SIGINT);
    CHECK(process.wait().status == 130);
    CHECK(out.names() == std::vector<std::string>{"x.headscope.h5"});
    CHECK(read_file(output) == "an older file");
}

TEST_CASE("a killed job leaves the layers that were done whole, and no output", "[app][interrupt]") {
    using headscope::store::AnalysisFile;
    TemporaryFolder folder, out;
    const auto tokens = write_tokens(folder / "ids.json", {500});
    const auto job = [&](const fs::path& output) {
        return std::vector<std::string>{"analyze", sample().string(), "--tokens", tokens.string(),
                                        "-o",      output.string()};
    };
    // The reference kernel is slow and runs a layer at a time: there is time to kill between two of them.
    const Settings slow{.environment = {"HEADSCOPE_KERNELS=reference"}, .seconds = 60};
    const Outcome whole = run_headscope(job(out / "whole.headscope.h5"), slow);
    check_success(whole);
    const auto complete = AnalysisFile::open(out / "whole.headscope.h5");
    REQUIRE(complete->complete());

    // When it has done some of the layers but not all is not known beforehand: later, or earlier, until it fits.
    double share = 0.6;
    bool caught = false;
    for (int attempt = 0; attempt < 20 && !caught; ++attempt) {
        TemporaryFolder killed;
        Process process(job(killed / "x.headscope.h5"), slow);
        sleep_for(share * whole.seconds);
        process.signal(SIGKILL);
        const Outcome outcome = process.wait();
        // Killed after the file was published, on its way out, is as late as ended; what stands there must be whole.
        if (outcome.status == 0 || fs::exists(killed / "x.headscope.h5")) {
            CHECK(AnalysisFile::open(killed / "x.headscope.h5")->complete());
            CHECK(killed.names() == std::vector<std::string>{"x.headscope.h5"});
            share *= 0.8;
            continue;
        }
        CHECK(outcome.status == 128 + SIGKILL);
        const auto names = killed.names();
        if (names.empty()) {
            share += 0.5 * (1 - share);
            continue;
        }
        REQUIRE(names.size() == 1);
        const auto partial = AnalysisFile::open(killed / names.front());
        int done = 0;
        const auto entropy = partial->indicator("entropy"), expected = complete->indicator("entropy");
        REQUIRE(entropy.shape == expected.shape);
        const auto heads = static_cast<std::size_t>(entropy.shape[2]);
        for (std::int64_t layer = 0; layer < 4; ++layer) {
            if (!partial->site_done(0, layer)) continue;
            ++done;
            for (std::size_t h = 0; h < heads; ++h) {
                const std::size_t at = static_cast<std::size_t>(layer) * heads + h;
                CHECK(entropy.data[at] == expected.data[at]);
            }
            CHECK(partial->column_mass(0, layer).data == complete->column_mass(0, layer).data);
            CHECK(partial->histogram(0, layer).data == complete->histogram(0, layer).data);
            CHECK(partial->thumbnail("mean", 0, layer).data == complete->thumbnail("mean", 0, layer).data);
        }
        CHECK((!partial->complete() || done == 4));  // complete, if it was killed between its last layer and renaming
        caught = done > 0 && done < 4;
        share *= done == 0 ? 1.15 : 0.85;
        if (!caught) continue;
        const Outcome info = run_headscope({"info", (killed / names.front()).string(), "--json"});
        check_success(info);
        const auto document = nlohmann::json::parse(info.out);
        CHECK(document.at("complete") == false);
        CHECK(document.at("sites_done") == done);
    }
    CHECK(caught);
}

TEST_CASE("A parent that ignores the end of its children hides no failure", "[app]") {
    TemporaryFolder folder;
    const auto damaged = write_file(folder / "x.headscope.h5", "no HDF5");
    const auto before = std::signal(SIGCHLD, SIG_IGN);  // the program inherits it
    Process process({"info", damaged.string()});
    std::signal(SIGCHLD, before);
    check_refusal(process.wait());
}
