// SPDX-License-Identifier: GPL-3.0-or-later
// Resumed replays, with a host that writes the files in the program's place.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

#include "core/base/json/json.h"
#include "tests/core/base/environment.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/reproduce/replayed.h"
#include "tests/core/reproduce/tiny_replay.h"

using namespace headscope;
namespace fs = std::filesystem;
using Names = std::vector<std::string>;

namespace {

/// Steps of 32 tokens, each in a tenth of a second.
void write_run(const fs::path& run) {
    fs::create_directories(run);
    training::JournalWriter journal(run / training::kJournalName);
    for (std::int64_t step = 1; step <= 12; ++step) {
        training::Step one;
        one.step = step;
        one.tokens = 32 * step;
        one.tokens_per_second = 320;
        journal.append(one);
    }
}

reproduce::Paper tiny_paper(const std::string& judge_tokens = "1") {
    const std::string key = "judge_tokens = ";
    std::string text = test::kTinyPaper;
    text.replace(text.find(key), key.size() + 1, key + judge_tokens);
    return reproduce::read_paper("tiny", text);
}

/// Replays, with --resume where the folder exists. Returns runs and warnings in their order: "runs/b", "warning: ...".
Names replay(const reproduce::Paper& paper, const fs::path& folder, double minutes) {
    Names events;
    reproduce::Host host;
    host.version = "0";
    host.warn = [&](const std::string& text) { events.push_back("warning: " + text); };
    host.run = [&](const Names& words, const Names&, const fs::path&) -> reproduce::Host::Ran {
        const auto option = std::find(words.begin(), words.end(), "-o");
        const fs::path output = option == words.end() ? fs::path() : fs::path(*(option + 1));
        if (words.front() == "train") {
            events.push_back(output.parent_path().filename().string() + "/" + output.filename().string());
            write_run(output);
        }
        if (words.front() == "evaluate") test::write_tiny_scores(output, words[1]);
        return {};
    };
    reproduce::ReplayOptions options;
    options.folder = folder;
    options.resume = fs::exists(folder);
    options.settings.minutes = minutes;
    NoProgress progress;
    reproduce::Runner(paper, options, host, progress).run();
    return events;
}

/// With claims that any run decides.
Names resume(const fs::path& folder, double minutes) {
    return replay(tiny_paper(), folder, minutes);
}

nlohmann::json document_of(const fs::path& file) {
    return read_json_file(file, reproduce::kLargestPlan, "document");
}

/// So much of the minutes is over, by the replay's own record.
void set_seconds(const fs::path& folder, double seconds) {
    nlohmann::json time = {{"seconds", seconds}};
    if (fs::exists(folder / "time.json")) time = document_of(folder / "time.json");
    time["seconds"] = seconds;
    std::ofstream(folder / "time.json") << time.dump();
}

}  // namespace

TEST_CASE("A replay that was carried out renders its report, and with more minutes plans what is left", "[reproduce]") {
    const test::TemporaryFolder place;
    const fs::path folder = place / "replay";
    test::write_tiny_replay(folder, tiny_paper(), 1);
    set_seconds(folder, 60 * 40 - 10);  // the end takes 60
    const std::string left_out = "Left out, for the minutes were over: b.";
    CHECK(resume(folder, 40).empty());
    CHECK(test::report_of(folder).find(left_out) != std::string::npos);

    // Time that the end did not use is no time for the run.
    set_seconds(folder, 100);
    fs::remove(folder / "report.md");
    CHECK(resume(folder, 40).empty());
    CHECK(test::report_of(folder).find(left_out) != std::string::npos);
    CHECK(document_of(folder / "plan.json").at("minutes") == 40);

    CHECK(resume(folder, 80) == Names{"runs/b"});
    CHECK(test::report_of(folder).find("Left out") == std::string::npos);
    CHECK(test::report_of(folder).find("a plan for 40 of these minutes") != std::string::npos);
    CHECK(document_of(folder / "plan.json").at("minutes") == 80);
    CHECK(resume(folder, 80).empty());
    CHECK(resume(folder, 240).empty());
}

TEST_CASE("A replay that was stopped trains the rest, and one that an earlier version finished does not",
          "[reproduce]") {
    const test::TemporaryFolder place;
    const fs::path folder = place / "replay";
    const auto paper = tiny_paper();
    test::write_tiny_replay(folder, paper, 1);
    set_seconds(folder, 100);
    std::ofstream(folder / "report.md") << "of before";
    CHECK(resume(folder, 40).empty());

    const fs::path other = place / "other";
    test::write_tiny_replay(other, paper, 1);
    set_seconds(other, 100);
    CHECK(resume(other, 40) == Names{"runs/b"});
}

TEST_CASE("Minutes that decide nothing are named before training starts", "[reproduce]") {
    const test::TemporaryFolder place;
    const test::Environment cache("XDG_CACHE_HOME", (place / "cache").string());
    // Half of 40 minutes, a tenth of a second a step: 0.3 million tokens.
    Names events = replay(tiny_paper("1e6"), place / "few", 40);
    const auto warning =
        std::find_if(events.begin(), events.end(), [](const std::string& one) { return one.starts_with("warning: "); });
    REQUIRE(warning != events.end());
    CHECK(warning->starts_with("warning: 40 minutes give each run 3"));
    CHECK(warning->find("Give about 12") != std::string::npos);
    CHECK(std::all_of(events.begin(), warning, [](const auto& one) { return one.starts_with("calibration/"); }));
    CHECK(Names(warning + 1, events.end()) == Names{"runs/a", "runs/b"});

    events = replay(tiny_paper("1e5"), place / "enough", 40);
    CHECK(std::all_of(events.begin(), events.end(),
                      [](const auto& one) { return one.starts_with("calibration/") || one.starts_with("runs/"); }));
}

TEST_CASE("More minutes for a plan of too few steps bring a warning", "[reproduce]") {
    const test::TemporaryFolder place;
    const fs::path folder = place / "replay";
    test::write_tiny_replay(folder, tiny_paper(), 1);  // 3 million tokens a run
    const Names events = replay(tiny_paper("1e7"), folder, 80);
    REQUIRE(events.size() == 2);
    CHECK(events[0].starts_with("warning: 40 minutes give each run 3."));
    CHECK(events[0].find("in a new folder") != std::string::npos);
    CHECK(events[1] == "runs/b");
    const auto plan = document_of(folder / "plan.json");
    CHECK(plan.at("steps_minutes") == 40);
    CHECK(plan.at("minutes") == 80);
}

TEST_CASE("A plan for more minutes keeps steps and seeds, and adds models and trials", "[reproduce]") {
    const auto short_plan = test::plan_of("lazy", 10, 0.05, 2, 20, 2);
    const auto done = [&](const reproduce::Trial& trial) {
        return std::any_of(short_plan.trials.begin(), short_plan.trials.end(),
                           [&](const auto& one) { return one.name == trial.name; });
    };
    const auto longer = reproduce::longer_plan(short_plan, 40, 590, done);
    CHECK(longer.minutes == 40);
    CHECK(longer.steps == short_plan.steps);
    CHECK(longer.seeds == short_plan.seeds);
    CHECK(longer.size == short_plan.size);
    CHECK(longer.trials.size() == longer.trial_seconds.size());
    CHECK(longer.trials.size() == reproduce::trials_of(*longer.paper, longer.seeds, 40).size());
    CHECK(longer.trials.size() > short_plan.trials.size());  // RetNet and others
    CHECK(longer.planned == std::ssize(longer.trials));      // half an hour for models of some seconds
    CHECK(longer.planned_seconds > 590 + longer.end_seconds);
    CHECK(longer.planned_seconds < 60 * 40);
    // Without time, no trial is planned that the paper counts as extra.
    const auto none = reproduce::longer_plan(short_plan, 40, 60 * 40, [](const auto&) { return false; });
    const auto fewest =
        std::count_if(none.trials.begin(), none.trials.end(), [](const auto& one) { return !one.extra; });
    CHECK(none.planned == fewest);
    const auto read = reproduce::plan_from_json(*longer.paper, reproduce::to_json(longer), "plan.json");
    CHECK(reproduce::to_json(read) == reproduce::to_json(longer));
}
