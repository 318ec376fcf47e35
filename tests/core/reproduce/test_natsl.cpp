// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>

#include "core/base/error.h"
#include "tests/core/reproduce/replayed.h"

using namespace headscope;
using reproduce::Measured;
using reproduce::Verdict;

namespace {

const reproduce::Paper& natsl() {
    return reproduce::paper("natsl");
}

reproduce::Plan small_plan() {
    return test::plan_of("natsl", 40, 0.1, 5, 30);
}

/// Numbers of which every claim holds.
Measured as_the_paper_says() {
    Measured measured;
    for (const std::string name : {"natsl-hybrid", "natsl", "gdn", "gdn-hybrid", "mamba2", "transformer"}) {
        const bool natsl = name.starts_with("natsl"), softmax = name == "transformer" || name == "gdn-hybrid";
        measured.set(name, "parameters", 440'000);
        measured.set(name, "perplexity@1", name == "natsl-hybrid" ? 20 : 22);
        measured.set(name, "perplexity@8", softmax ? 90 : name == "natsl-hybrid" ? 19.5 : 22);
        for (const char* length : {"@0.25", "@0.5", "@1"})
            measured.set(name, std::string("recall") + length, natsl ? 0.9 : 0.6);
        measured.set(name, "prefill@1", 0.1);
        measured.set(name, "decode@1", 0.001);
        measured.set(name, "prefill@8", name == "transformer" ? 3 : name == "gdn" ? 1 : 1.5);
        measured.set(name, "decode@8", name == "transformer" ? 0.03 : name == "gdn" ? 0.01 : 0.012);
        if (!natsl) continue;
        measured.matrices[{name, "fractions prose"}] = {{{0, 0, 0.5}, {0.2, 0.3, 0.9}}};
        measured.matrices[{name, "fractions verse"}] = {{{0, 0, 0.6}, {0.2, 0.3, 0.9}}};
        measured.matrices[{name, "fractions code"}] = {{{0, 0, 0.1}, {0.7, 0.3, 0.4}}};
        measured.set(name, "softmax first", 0.5);
        measured.set(name, "softmax last", 0.3);
    }
    return measured;
}

}  // namespace

TEST_CASE("NAtS-L's plan fits its minutes and is read as it was written", "[reproduce][natsl]") {
    for (const double minutes : {5.0, 40.0, 240.0}) {
        INFO(minutes);
        const auto plan = test::plan_of("natsl", minutes, 0.1, 5, 20);
        CHECK(plan.trials.size() == (minutes < 15 ? 18 : 28));
        CHECK((plan.planned_seconds < 60 * minutes || plan.steps == reproduce::kFewestUpdates));
        const auto again = reproduce::plan_from_json(natsl(), reproduce::to_json(plan), "plan.json");
        CHECK(reproduce::to_json(again) == reproduce::to_json(plan));
    }
    const auto plan = small_plan();
    std::string text = reproduce::to_json(plan);
    text.replace(text.find("\"natsl\""), 7, "\"other\"");
    CHECK_THROWS_AS(reproduce::plan_from_json(natsl(), text, "plan.json"), Error);
    for (const char* name : {"..", "a/b", ""}) {  // names of folders in the replay's own
        auto outside = plan;
        outside.trials.front().name = name;
        CHECK_THROWS_AS(reproduce::plan_from_json(natsl(), reproduce::to_json(outside), "plan.json"), Error);
    }
}

TEST_CASE("NAtS-L's jobs train the presets on equal tokens, ablations with their option", "[reproduce][natsl]") {
    const auto plan = small_plan();
    for (const auto& trial : plan.trials) {
        INFO(trial.name);
        const auto& stage = *plan.stages_of(trial).front();
        const auto job = reproduce::job_of(plan, trial, stage);
        CHECK(job.model.preset == "nano-" + trial.model->preset);
        CHECK(job.training.steps == plan.steps_of(stage));
        CHECK(job.data.generator.has_value() == (stage.name == "recall"));
        CHECK(job.model.mixers.contains("natsl") == trial.extra);
        CHECK(training::read_job(training::job_text(job), "job").name == trial.label());
    }
}

TEST_CASE("NAtS-L's claims hold for the paper's picture and fail for its contrary", "[reproduce][natsl]") {
    const auto plan = small_plan();
    auto measured = as_the_paper_says();
    for (const auto& claim : reproduce::judge(plan, measured)) {
        INFO(claim.title << ": " << claim.found);
        CHECK(claim.verdict == Verdict::held);
    }
    for (auto& [key, series] : measured.values) {
        const auto& [model, name] = key;
        const bool natsl = model.starts_with("natsl");
        if (name.starts_with("recall")) series.values = {model == "transformer" ? 0.95 : 0.5};
        if (name == "perplexity@1") series.values = {natsl ? 22.0 : 20.0};
        if (name == "perplexity@8") series.values = {natsl ? 90.0 : 18.0};
        if (name == "softmax last") series.values = {0.5};
    }
    for (auto& [key, matrices] : measured.matrices) matrices = {{{1, 1, 1}}};
    measured.set("natsl-hybrid", "prefill@8", 9);
    measured.set("natsl-hybrid", "decode@8", 9);
    measured.set("gdn", "parameters", 900'000);
    for (const auto& claim : reproduce::judge(plan, measured)) {
        INFO(claim.title << ": " << claim.found);
        CHECK(claim.verdict != Verdict::held);
    }
    // No model learned the task: no verdict on the best one.
    for (auto& [key, series] : measured.values)
        if (key.second.starts_with("recall")) series.values = {0.1};
    CHECK(reproduce::judge(plan, measured).front().verdict == Verdict::undecided);
    for (const auto& claim : reproduce::judge(plan, {})) CHECK(claim.verdict == Verdict::not_measured);
    Measured untimed;
    for (const auto& model : natsl().models) untimed.set(model.name, "prefill@1", 0);
    for (const auto& claim : reproduce::judge(plan, untimed)) CHECK(claim.verdict == Verdict::not_measured);
    Measured unprobed;
    unprobed.set("natsl", "softmax first", std::nan(""));
    unprobed.set("natsl", "softmax last", std::nan(""));
    for (const auto& claim : reproduce::judge(plan, unprobed)) CHECK(claim.verdict == Verdict::not_measured);
    const std::string report = reproduce::report_markdown(test::report_input(plan, as_the_paper_says(), "latency"));
    for (const char* words : {"9 of 9 held", "1 min 1 s", "figures/latency.png", "Failed: x.", "| NAtS-L Hybrid |"}) {
        INFO(words);
        CHECK(report.find(words) != std::string::npos);
    }
}
