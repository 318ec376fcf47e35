// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/reproduce/natsl/claims.h"

using namespace headscope;
namespace natsl = reproduce::natsl;

namespace {

natsl::Calibration calibration(double seconds) {
    natsl::Calibration calibration;
    for (const auto& model : natsl::models()) calibration.step_seconds[std::string(model.name)] = seconds;
    calibration.run_overhead = 5;
    return calibration;
}

natsl::Plan small_plan() {
    reproduce::Settings settings;
    settings.minutes = 40;
    settings.workers = 2;
    return natsl::make_plan(settings, "nano", calibration(0.1), 30);
}

/// Numbers of which every claim holds.
natsl::Measured as_the_paper_says(const natsl::Plan& plan) {
    natsl::Measured measured;
    const std::int64_t inside = plan.sequence_length, beyond = plan.long_length();
    for (const auto& model : natsl::models()) {
        const std::string name(model.name);
        const bool natsl = name.starts_with("natsl"), softmax = name == "transformer" || name == "gdn-hybrid";
        measured.parameters[name] = 440'000;
        measured.position[name] = {{inside, name == "natsl-hybrid" ? 20.0 : 22.0},
                                   {beyond, softmax                  ? 90.0
                                            : name == "natsl-hybrid" ? 19.5
                                                                     : 22.0}};
        for (const std::int64_t length : plan.recall_lengths())
            measured.recall[name + "-recall"][length] = natsl ? 0.9 : 0.6;
        measured.latency[name] = {{inside, {0.1, 0.001, 1000}}};
        measured.latency[name][beyond] = {name == "transformer" ? 3.0
                                          : name == "gdn"       ? 1.0
                                                                : 1.5,
                                          name == "transformer" ? 0.03
                                          : name == "gdn"       ? 0.01
                                                                : 0.012,
                                          1000};
        if (!natsl) continue;
        measured.types.push_back({name, "prose", {{0, 0, 0.5}, {0.2, 0.3, 0.9}}});
        measured.types.push_back({name, "verse", {{0, 0, 0.6}, {0.2, 0.3, 0.9}}});
        measured.types.push_back({name, "code", {{0, 0, 0.1}, {0.7, 0.3, 0.4}}});
        measured.softmax_share[name] = {0.5, 0.3};
    }
    return measured;
}

}  // namespace

TEST_CASE("NAtS-L's plan fits its minutes and is read as it was written", "[reproduce][natsl]") {
    for (const double minutes : {5.0, 40.0, 240.0}) {
        INFO(minutes);
        reproduce::Settings settings;
        settings.minutes = minutes;
        settings.workers = 2;
        const auto plan = natsl::make_plan(settings, "nano", calibration(0.1), 20);
        CHECK(plan.trials.size() == 18);
        CHECK((plan.planned_seconds < 60 * minutes || plan.text_steps == 40));
        const auto again = natsl::plan_from_json(natsl::to_json(plan), "plan.json");
        CHECK(natsl::to_json(again) == natsl::to_json(plan));
    }
    const auto plan = small_plan();
    std::string text = natsl::to_json(plan);
    text.replace(text.find("\"natsl\""), 7, "\"other\"");
    CHECK_THROWS_AS(natsl::plan_from_json(text, "plan.json"), Error);
    for (const char* name : {"..", "a/b", ""}) {  // names of folders in the replay's own
        auto outside = plan;
        outside.trials.front().name = name;
        CHECK_THROWS_AS(natsl::plan_from_json(natsl::to_json(outside), "plan.json"), Error);
    }
}

TEST_CASE("NAtS-L's jobs train the presets on equal tokens, ablations with their option", "[reproduce][natsl]") {
    const auto plan = small_plan();
    for (const auto& trial : plan.trials) {
        INFO(trial.name);
        const auto job = natsl::job_of(plan, trial);
        CHECK(job.model.preset == "nano-" + trial.model);
        CHECK(job.training.steps == plan.steps(trial.task));
        CHECK(job.data.generator.has_value() == (trial.task == natsl::Task::recall));
        CHECK(job.model.mixers.contains("natsl") == !trial.ablation.empty());
        CHECK(training::read_job(training::job_text(job), "job").name == trial.label());
    }
}

TEST_CASE("NAtS-L's claims hold for the paper's picture and fail for its contrary", "[reproduce][natsl]") {
    const auto plan = small_plan();
    auto measured = as_the_paper_says(plan);
    for (const auto& claim : natsl::judge(plan, measured)) {
        INFO(claim.title << ": " << claim.found);
        CHECK(claim.verdict == reproduce::Verdict::held);
    }
    for (auto& [trial, accuracies] : measured.recall)
        for (auto& [length, accuracy] : accuracies) accuracy = trial.starts_with("transformer") ? 0.95 : 0.5;
    for (auto& [model, perplexities] : measured.position) {
        perplexities.begin()->second = model.starts_with("natsl") ? 22 : 20;
        perplexities.rbegin()->second = model.starts_with("natsl") ? 90 : 18;
    }
    for (auto& types : measured.types) types.fractions = {{1, 1, 1}};
    for (auto& [model, shares] : measured.softmax_share) shares.second = shares.first;
    measured.latency["natsl-hybrid"].rbegin()->second = {9, 9, 1};
    measured.parameters["gdn"] = 900'000;
    for (const auto& claim : natsl::judge(plan, measured)) {
        INFO(claim.title << ": " << claim.found);
        CHECK(claim.verdict != reproduce::Verdict::held);
    }
    // No model learned the task: no verdict on the best one.
    for (auto& [trial, accuracies] : measured.recall)
        for (auto& [length, accuracy] : accuracies) accuracy = 0.1;
    CHECK(natsl::judge(plan, measured).front().verdict == reproduce::Verdict::undecided);
    for (const auto& claim : natsl::judge(plan, {})) CHECK(claim.verdict == reproduce::Verdict::not_measured);
    natsl::Measured untimed;
    for (const auto& model : natsl::models()) untimed.latency[std::string(model.name)][64] = {};
    for (const auto& claim : natsl::judge(plan, untimed)) CHECK(claim.verdict == reproduce::Verdict::not_measured);
    store::RunRecord run;
    run.probes.step = {1, 2};
    run.probes.indicators = {{"softmax_fraction", true, 1, std::vector<double>(8, std::nan(""))}};
    CHECK_FALSE(natsl::softmax_share(run));
    const natsl::ReportInput input{
        {{{"latency", "Seconds"}}, {"Failed: x."}, {"headscope list"}, "text", "a machine", "headscope", 61},
        plan,
        as_the_paper_says(plan)};
    const std::string report = natsl::report_markdown(input);
    for (const char* words : {"9 of 9 held", "1 min 1 s", "figures/latency.png", "Failed: x.", "| NAtS-L Hybrid |"})
        CHECK(report.find(words) != std::string::npos);
}
