// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <set>

#include "core/base/error.h"
#include "tests/core/reproduce/replayed.h"

using namespace headscope;

namespace {

const reproduce::Paper& deconattn() {
    return reproduce::paper("deconattn");
}

reproduce::Plan plan_for(double minutes, std::int64_t seeds = 0) {
    return test::plan_of("deconattn", minutes, 0.05, 2, 20, 1, seeds);
}

std::vector<reproduce::Trial> counted(std::int64_t seeds) {
    auto trials = reproduce::trials_of(deconattn(), seeds, 40);
    std::erase_if(trials, [](const auto& trial) { return trial.extra; });
    return trials;
}

}  // namespace

TEST_CASE("A plan fits its minutes, with fewer things in fewer minutes", "[reproduce]") {
    std::int64_t last = 0;
    for (const double minutes : {5.0, 15.0, 40.0, 240.0}) {
        const auto plan = plan_for(minutes);
        INFO(minutes);
        CHECK(plan.planned_seconds < 60 * minutes);
        CHECK(static_cast<std::int64_t>(plan.trials.size()) >= last);
        last = static_cast<std::int64_t>(plan.trials.size());
        CHECK(plan.steps >= 20);
    }
    CHECK(plan_for(5).seeds == 1);
    CHECK(plan_for(240).seeds == 3);
    CHECK(plan_for(240, 2).seeds == 2);
}

TEST_CASE("A seed is Standard and six mixers, uniform and hybrid; layouts come once", "[reproduce]") {
    const auto one = counted(1);
    CHECK(one.size() == 13);
    CHECK(one.front().name == "standard-seed1");
    CHECK(one.front().stack->name == "standard");
    CHECK(counted(3).size() == 39);
    std::set<std::string> names;
    for (const auto& trial : reproduce::trials_of(deconattn(), 3, 40)) CHECK(names.insert(trial.name).second);
    CHECK(names.size() == 39 + 2 * 8);
    // With fewer layers some layouts would be one stack.
    for (const auto& size : deconattn().document.at("size"))
        CHECK(size.at("job").at("model").at("num_hidden_layers") == 6);
}

TEST_CASE("All runs of a plan see the same tokens, and differ in mixer, layout and seed alone", "[reproduce]") {
    const auto plan = plan_for(40);
    const auto& stage = deconattn().stages.front();
    const auto first = reproduce::job_of(plan, plan.trials.front(), stage);
    for (const auto& trial : plan.trials) {
        const auto job = reproduce::job_of(plan, trial, stage);
        CHECK(job.training.steps == first.training.steps);
        for (const auto& difference : training::job_differences(job, first, false)) {
            INFO(difference);
            const std::string key = difference.substr(0, difference.find(':'));
            CHECK((key == "name" || key == "seed" || key == "model.mixer" || key == "model.layout"));
        }
        // A written job can be read.
        CHECK(training::job_differences(training::read_job(training::job_text(job), "job"), job, false).empty());
    }
    CHECK(plan.word("length@0.0625,0.125,0.25,0.5,1") == "16,32,64,128,256");
}

TEST_CASE("A plan comes back from its file", "[reproduce]") {
    auto plan = plan_for(40);
    plan.data = {"a.txt"};
    plan.workers_wanted = 4;
    plan.run_bytes = 250e6;
    plan.room_bytes = 600e6;
    const auto read = reproduce::plan_from_json(deconattn(), reproduce::to_json(plan), "plan.json");
    CHECK(reproduce::to_json(read) == reproduce::to_json(plan));
    CHECK_THROWS_AS(reproduce::plan_from_json(deconattn(), "{}", "plan.json"), Error);
    std::string text = reproduce::to_json(plan);
    text.replace(text.find("standard-seed1"), 14, "../../escape11");
    CHECK_THROWS_AS(reproduce::plan_from_json(deconattn(), text, "plan.json"), Error);
    text = reproduce::to_json(plan);
    text.replace(text.find("\"64 wide\""), 9, "\"../wide\"");
    CHECK_THROWS_AS(reproduce::plan_from_json(deconattn(), text, "plan.json"), Error);
}

TEST_CASE("The paper's tables have every row that it printed", "[reproduce]") {
    const auto printed = [](const char* subject, const char* key) { return test::printed(deconattn(), subject, key); };
    CHECK(deconattn().document.at("printed").size() == 1 + 3 * 6);
    CHECK(printed("non_approximate hybrid", "wikitext") == 39.4);
    CHECK(printed("standard", "context.4") == 38.1);
    CHECK_FALSE(deconattn().document.at("printed").contains("standard skip"));
}

TEST_CASE("Processors that no run is left for make no model larger", "[reproduce]") {
    reproduce::Settings settings;
    settings.minutes = 40;
    const double seconds_of_token = 60 * settings.minutes * 0.86 / 6e6;  // six million tokens for a run alone
    settings.workers = 39;
    CHECK(reproduce::choose_size(deconattn(), settings, seconds_of_token) == "96 wide");
    settings.workers = 128;
    CHECK(reproduce::choose_size(deconattn(), settings, seconds_of_token) == "96 wide");
    settings.workers = 2;
    CHECK(reproduce::choose_size(deconattn(), settings, seconds_of_token) == "64 wide");
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
    const auto plan = plan_for(40);
    const std::int64_t count = std::ssize(counted(plan.seeds));
    CHECK(plan.planned == count);
    REQUIRE(std::ssize(plan.trials) == count + 16);
    for (std::size_t i = 0; i < plan.trials.size(); ++i)
        CHECK(plan.trials[i].extra == (static_cast<std::int64_t>(i) >= count));
    CHECK(plan.planned_seconds < 60 * 40);
    CHECK(plan.trials[1].label() == "MLP uniform");
    CHECK(plan.trials[2].label() == "MLP hybrid");
}

TEST_CASE("A mistyped key of a paper's file is refused by its name", "[reproduce]") {
    CHECK_THROWS_AS(reproduce::read_paper("new", "titel = \"A paper\""), Error);
    CHECK_THROWS_AS(deconattn().stack("../outside"), Error);
    CHECK_THROWS_AS(reproduce::filled(std::string("{unknown}"), [](const auto&) { return std::nullopt; }), Error);
}
