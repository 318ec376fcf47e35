// SPDX-License-Identifier: GPL-3.0-or-later
// Resumed replays, with a host that writes the files in the program's place.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

#include "core/base/json/json.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/reproduce/replayed.h"
#include "tests/core/reproduce/tiny_replay.h"

using namespace headscope;
namespace fs = std::filesystem;
using Names = std::vector<std::string>;

namespace {

/// Resumes the tiny replay; returns the runs that it trained.
Names resume(const fs::path& folder, double minutes) {
    Names trained;
    reproduce::Host host;
    host.version = "0";
    host.warn = [](const std::string&) {};
    host.run = [&](const Names& words, const Names&, const fs::path&) -> reproduce::Host::Ran {
        const auto output = std::find(words.begin(), words.end(), "-o");
        if (words.front() == "train") {
            trained.push_back(fs::path(*(output + 1)).filename().string());
            fs::create_directories(*(output + 1));
            std::ofstream(fs::path(*(output + 1)) / training::kJournalName).flush();
        }
        if (words.front() == "evaluate") test::write_tiny_scores(*(output + 1), words[1]);
        return {};
    };
    reproduce::ReplayOptions options;
    options.folder = folder;
    options.resume = true;
    options.settings.minutes = minutes;
    NoProgress progress;
    const reproduce::Paper paper = reproduce::read_paper("tiny", test::kTinyPaper);
    reproduce::Runner(paper, options, host, progress).run();
    return trained;
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
    test::write_tiny_replay(folder, reproduce::read_paper("tiny", test::kTinyPaper), 1);
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

    CHECK(resume(folder, 80) == Names{"b"});
    CHECK(test::report_of(folder).find("Left out") == std::string::npos);
    CHECK(document_of(folder / "plan.json").at("minutes") == 80);
    CHECK(resume(folder, 80).empty());
    CHECK(resume(folder, 240).empty());
}

TEST_CASE("A replay that was stopped trains the rest, and one that an earlier version finished does not",
          "[reproduce]") {
    const test::TemporaryFolder place;
    const fs::path folder = place / "replay";
    const auto paper = reproduce::read_paper("tiny", test::kTinyPaper);
    test::write_tiny_replay(folder, paper, 1);
    set_seconds(folder, 100);
    std::ofstream(folder / "report.md") << "of before";
    CHECK(resume(folder, 40).empty());

    const fs::path other = place / "other";
    test::write_tiny_replay(other, paper, 1);
    set_seconds(other, 100);
    CHECK(resume(other, 40) == Names{"b"});
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
    CHECK(none.planned ==
          std::count_if(none.trials.begin(), none.trials.end(), [](const auto& one) { return !one.extra; }));
    const auto read = reproduce::plan_from_json(*longer.paper, reproduce::to_json(longer), "plan.json");
    CHECK(reproduce::to_json(read) == reproduce::to_json(longer));
}
