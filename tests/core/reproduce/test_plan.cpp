// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <set>

#include "core/base/error.h"
#include "core/reproduce/paper.h"
#include "core/reproduce/plan.h"

using namespace headscope;

namespace {

reproduce::Calibration calibration(double seconds) {
    reproduce::Calibration calibration;
    for (const auto& mixer : reproduce::paper_mixers()) calibration.step_seconds[std::string(mixer.name)] = seconds;
    calibration.run_overhead = 2;
    return calibration;
}

const reproduce::Size& small() {
    return reproduce::sizes().front();
}

}  // namespace

TEST_CASE("A plan fits its minutes, with fewer things in fewer minutes", "[reproduce]") {
    reproduce::Settings settings;
    std::int64_t last = 0;
    for (const double minutes : {5.0, 15.0, 40.0, 240.0}) {
        settings.minutes = minutes;
        const auto plan = reproduce::make_plan(settings, small(), calibration(0.05), 20);
        INFO(minutes);
        CHECK(plan.planned_seconds < 60 * minutes);
        CHECK(static_cast<std::int64_t>(plan.trials.size()) >= last);
        last = static_cast<std::int64_t>(plan.trials.size());
        CHECK(plan.steps >= 20);
    }
    settings.minutes = 5;
    CHECK(reproduce::make_plan(settings, small(), calibration(0.05), 20).seeds == 1);
    settings.minutes = 240;
    CHECK(reproduce::make_plan(settings, small(), calibration(0.05), 20).seeds == 3);
    settings.seeds = 2;
    CHECK(reproduce::make_plan(settings, small(), calibration(0.05), 20).seeds == 2);
}

TEST_CASE("A seed is Standard and six mixers, uniform and hybrid; layouts that are one stack come once",
          "[reproduce]") {
    const auto one = reproduce::trials_of(1, 6, false);
    CHECK(one.size() == 13);
    CHECK(one.front().name == "standard-seed1");
    CHECK(one.front().configuration() == "standard");
    CHECK(reproduce::trials_of(3, 6, false).size() == 39);
    std::set<std::string> names;
    for (const auto& trial : reproduce::trials_of(3, 6, true)) CHECK(names.insert(trial.name).second);
    CHECK(names.size() == 39 + 2 * 8);
    // With four layers, bilateral is middle and last is quarter.
    CHECK(reproduce::trials_of(1, 4, true).size() == 13 + 2 * 6);
}

TEST_CASE("All runs of a plan see the same tokens, and differ in mixer, layout and seed alone", "[reproduce]") {
    reproduce::Settings settings;
    const auto plan = reproduce::make_plan(settings, small(), calibration(0.05), 20);
    const auto first = reproduce::job_of(plan, plan.trials.front());
    for (const auto& trial : plan.trials) {
        const auto job = reproduce::job_of(plan, trial);
        CHECK(job.training.steps == first.training.steps);
        for (const auto& difference : training::job_differences(job, first, false)) {
            INFO(difference);
            const std::string key = difference.substr(0, difference.find(':'));
            CHECK((key == "name" || key == "seed" || key == "model.mixer" || key == "model.layout"));
        }
        // A written job can be read.
        CHECK(training::job_differences(training::read_job(training::job_text(job), "job"), job, false).empty());
    }
    CHECK(plan.lengths() == std::vector<std::int64_t>{16, 32, 64, 128, 256});
}

TEST_CASE("A plan comes back from its file", "[reproduce]") {
    reproduce::Settings settings;
    settings.data = {"a.txt"};
    auto plan = reproduce::make_plan(settings, small(), calibration(0.05), 20);
    plan.workers_wanted = 4;
    plan.run_bytes = 250e6;
    plan.room_bytes = 600e6;
    const auto read = reproduce::plan_from_json(reproduce::to_json(plan), "plan.json");
    CHECK(reproduce::to_json(read) == reproduce::to_json(plan));
    CHECK_THROWS_AS(reproduce::plan_from_json("{}", "plan.json"), Error);
    std::string text = reproduce::to_json(plan);
    text.replace(text.find("standard-seed1"), 14, "../../escape11");
    CHECK_THROWS_AS(reproduce::plan_from_json(text, "plan.json"), Error);
    text = reproduce::to_json(plan);
    text.replace(text.find("\"mixer\": \"approximate\""), 22, "\"mixer\": \"../escape\"");
    CHECK_THROWS_AS(reproduce::plan_from_json(text, "plan.json"), Error);
}

TEST_CASE("The paper's tables are there for every row that it printed", "[reproduce]") {
    CHECK(reproduce::paper_models().size() == 1 + 3 * 6);
    CHECK(reproduce::paper_model("non_approximate", "hybrid")->wikitext == 39.4);
    CHECK(reproduce::paper_model("standard", "standard")->context[4] == 38.1);
    CHECK(reproduce::paper_model("standard", "skip") == nullptr);
}

TEST_CASE("Processors that no run is left for make no model larger", "[reproduce]") {
    reproduce::Settings settings;
    settings.minutes = 40;
    const double seconds_of_token = 60 * settings.minutes * 0.86 / 6e6;  // six million tokens for a run alone
    settings.workers = 39;
    CHECK(reproduce::choose_size(settings, seconds_of_token).hidden == 96);
    settings.workers = 128;
    CHECK(reproduce::choose_size(settings, seconds_of_token).hidden == 96);
    settings.workers = 2;
    CHECK(reproduce::choose_size(settings, seconds_of_token).hidden == 64);
}

TEST_CASE("Runs go side by side as far as memory goes, at least one", "[reproduce]") {
    constexpr double run = 300e6;
    CHECK(reproduce::side_by_side(8, run, 64e9) == 8);
    CHECK(reproduce::side_by_side(8, run, 2e9) == 6);
    CHECK(reproduce::side_by_side(8, run, 700e6) == 2);
    CHECK(reproduce::side_by_side(8, run, 1) == 1);
    CHECK(reproduce::side_by_side(1, run, 1) == 1);
    // Without a choice nothing changes.
    CHECK(reproduce::side_by_side(8, 0, 1e9) == 8);
    CHECK(reproduce::side_by_side(8, run, 0) == 8);
}

TEST_CASE("Time that is left goes to the other layouts, which no plan counts on", "[reproduce]") {
    reproduce::Settings settings;
    settings.minutes = 40;
    const auto plan = reproduce::make_plan(settings, small(), calibration(0.05), 20);
    CHECK_FALSE(plan.with_ablation);
    const auto counted = static_cast<std::int64_t>(reproduce::trials_of(plan.seeds, small().layers, false).size());
    REQUIRE(static_cast<std::int64_t>(plan.trials.size()) == counted + 16);
    for (std::size_t i = 0; i < plan.trials.size(); ++i)
        CHECK(plan.trials[i].ablation == (static_cast<std::int64_t>(i) >= counted));
    CHECK(plan.planned_seconds < 60 * settings.minutes);
    CHECK(plan.trials[1].label() == "MLP uniform");
    CHECK(plan.trials[2].label() == "MLP hybrid");
}
