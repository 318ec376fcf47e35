// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>

#include "core/base/error.h"
#include "core/reproduce/outlook.h"
#include "tests/core/base/environment.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/reproduce/replayed.h"

using namespace headscope;
using namespace headscope::reproduce;

namespace {

/// Each step of each model takes `step` seconds.
Pace pace_of(const std::string& paper, double step) {
    Pace pace = test::calibration_of(reproduce::paper(paper), step, 4, 30);
    pace.workers = 2;
    if (paper == "lazy")  // the rivals were not timed: the minutes were few
        for (const char* rival : {"retnet", "gdn", "ttt", "titans"}) pace.step_seconds.erase(rival);
    return pace;
}

}  // namespace

TEST_CASE("Minutes that cannot decide a paper's claims are named, with those that can", "[reproduce][outlook]") {
    for (const Paper& paper : papers()) {
        INFO(paper.name);
        const Pace pace = pace_of(paper.name, 0.2);
        Settings settings;
        settings.minutes = 5;
        const Outlook few = outlook(paper, settings, pace);
        CHECK_FALSE(few.enough());
        CHECK(few.needed == paper.judge_tokens);
        CHECK(few.text().starts_with("5 minutes give each run "));
        CHECK(few.text().find("Give about ") != std::string::npos);
        // The advised minutes are enough, and a tenth less is not.
        REQUIRE(few.minutes_needed > 5);
        settings.minutes = few.minutes_needed;
        CHECK(outlook(paper, settings, pace).enough());
        CHECK(outlook(paper, settings, pace).text().empty());
        settings.minutes = 0.85 * few.minutes_needed;
        CHECK_FALSE(outlook(paper, settings, pace).enough());
        // A machine that is ten times as fast needs less.
        settings.minutes = 5;
        const Outlook fast = outlook(paper, settings, pace_of(paper.name, 0.02));
        CHECK(fast.tokens > few.tokens);
        CHECK((fast.enough() || fast.minutes_needed < few.minutes_needed));
    }
    for (const Paper& paper : papers()) CHECK_THROWS_AS(outlook(paper, {}, Pace{"nano", 1, 1, 1, 1, {}, {}}), Error);
}

TEST_CASE("An earlier calibration of a paper warns before the next one", "[reproduce][outlook]") {
    const test::TemporaryFolder folder;
    const test::Environment cache("XDG_CACHE_HOME", folder.path().string());
    for (const Paper& paper : papers()) {
        INFO(paper.name);
        Settings settings;
        settings.minutes = 5;
        CHECK(minutes_warning(paper.name, settings).empty());  // nothing is known yet
        keep_replay_pace(paper.name, pace_of(paper.name, 0.2));
        const std::string warning = minutes_warning(paper.name, settings);
        CHECK(warning.starts_with("5 minutes give each run "));
        settings.minutes = outlook(paper, settings, pace_of(paper.name, 0.2)).minutes_needed;
        CHECK(warning.find("Give about " + std::to_string(std::llround(settings.minutes)) + " minutes") !=
              std::string::npos);
        CHECK(minutes_warning(paper.name, settings).empty());
    }
}

TEST_CASE("The outlook of a replay is that of its plan", "[reproduce][outlook]") {
    Settings settings;
    settings.minutes = 40;
    settings.workers = 2;
    const Pace pace = pace_of("natsl", 0.1);
    const auto plan = make_plan(reproduce::paper("natsl"), settings, pace);
    CHECK(outlook(reproduce::paper("natsl"), settings, pace).tokens == static_cast<double>(plan.tokens()));
    CHECK(outlook(reproduce::paper("natsl"), settings, pace).enough() == (plan.tokens() >= 1'000'000));
    // A plan that goes on for more minutes gives each run as many.
    const auto longer = longer_plan(plan, 400, 60 * 40, [](const Trial&) { return true; });
    CHECK(outlook(longer).tokens == static_cast<double>(plan.tokens()));
    CHECK(outlook(longer).minutes == 40);
}

TEST_CASE("A pace is kept for its machine, paper and threads", "[reproduce][outlook]") {
    const test::TemporaryFolder folder;
    const auto file = folder / "replays.json";
    CHECK_FALSE(kept_pace(file, "natsl", "Zen", 1));
    const Pace one = pace_of("natsl", 0.25), other = pace_of("lazy", 0.5);
    keep_pace(file, "natsl", "Zen", pace_of("natsl", 9));
    keep_pace(file, "lazy", "Zen", other);
    keep_pace(file, "natsl", "Zen", one);
    CHECK(kept_pace(file, "natsl", "Zen", 1) == one);
    CHECK(kept_pace(file, "lazy", "Zen", 1) == other);
    CHECK_FALSE(kept_pace(file, "natsl", "Zen", 2));
    CHECK_FALSE(kept_pace(file, "natsl", "Xeon", 1));
    CHECK_FALSE(kept_pace(file, "deconattn", "Zen", 1));
    keep_pace(file, "lazy", "Xeon", other);  // another machine's are gone
    CHECK_FALSE(kept_pace(file, "natsl", "Xeon", 1));
    CHECK(kept_pace(file, "lazy", "Xeon", 1) == other);
    for (const char* text :
         {"", "{", "[]", "{\"version\": 1}", "{\"version\": 1, \"processor\": \"Xeon\", \"papers\": 3}",
          "{\"version\": 1, \"processor\": \"Xeon\", \"papers\": {\"lazy\": {\"size\": 3}}}"}) {
        INFO(text);
        test::write_file(file, text);
        CHECK_FALSE(kept_pace(file, "lazy", "Xeon", 1));
    }
    keep_pace(file, "lazy", "Xeon", other);  // takes the place of what is no such file
    CHECK(kept_pace(file, "lazy", "Xeon", 1) == other);
}
