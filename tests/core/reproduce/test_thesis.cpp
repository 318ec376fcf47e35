// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/reproduce/claims/code.h"
#include "core/reproduce/files.h"
#include "tests/core/reproduce/replayed.h"

using namespace headscope;
using reproduce::Measured;
using reproduce::Paper;
using reproduce::Plan;
using reproduce::Verdict;

namespace {

const Paper& heads() {
    return reproduce::paper("thesis-mhe");
}
const Paper& hashes() {
    return reproduce::paper("thesis-hash");
}
const Paper* const kChapters[] = {&heads(), &hashes()};

Plan plan_for(const Paper& paper, double minutes, double seconds = 0.02) {
    return test::plan_of(paper.name, minutes, seconds, 2, 20);
}

/// Scores of chapter 3, the stack that they are of, and a benchmark that stands for them.
struct Scored {
    const char *score, *stack, *benchmark;
    double unit;
};
constexpr Scored kScores[] = {{"passages", "encoder", "glue", 0.01},
                              {"spoilt", "encoder", "superglue", 0.01},
                              {"perplexity", "decoder", "wikitext", 1},
                              {"bleu", "translation", "wmt", 1}};

/// Printed numbers as if they were measured.
Measured as_the_thesis_says(const Paper& paper) {
    Measured in;
    for (const auto& model : paper.models) {
        const std::string& name = model.name;
        const auto number = [&](const std::string& key) { return test::printed(paper, name, key); };
        if (&paper == &heads()) {
            for (const Scored& one : kScores) {
                const double score = number(std::string(one.benchmark) + ".0"), parameters = number(one.stack);
                if (std::isfinite(score)) in.set(name, one.score, one.unit * score, 1e-4 * one.unit);
                if (std::isfinite(parameters)) in.set(name, std::string("attention ") + one.stack, 1e6 * parameters);
            }
            continue;
        }
        in.set(name, "passages", number("score") / 100, 1e-4);
        // Emb has as many as BERT, of which none are printed.
        in.set(name, "parameters", 1e6 * (name.starts_with("bert") ? 124.6 : number("parameters")));
        in.set(name, "embedding", 1e6 * number("embedding"));
        in.set(name, "forward", 4.6);
    }
    if (&paper == &heads()) return in;
    for (const auto& [name, ms] : {std::pair{"bert-mlm", 24.9},
                                   {"bert-sr", 11.6},
                                   {"md5-emb", 11.6},
                                   {"md5-pool", 12.0},
                                   {"md5-add", 11.7},
                                   {"md5-proj", 10.6}})
        in.set(name, "training", ms);
    return in;
}

Measured derived(Measured measured) {
    reproduce::kThesis.derive(plan_for(heads(), 40), measured);
    return measured;
}

std::string report_of(const Plan& plan, const Measured& measured) {
    return reproduce::report_markdown(test::report_input(plan, measured, "retention"));
}

}  // namespace

TEST_CASE("The thesis's plans fit their minutes and are read as they were written", "[reproduce][thesis]") {
    for (const Paper* paper : kChapters) {
        for (const double minutes : {5.0, 40.0, 240.0}) {
            INFO(paper->name << " " << minutes);
            const auto plan = plan_for(*paper, minutes);
            CHECK((plan.planned_seconds < 60 * minutes || plan.steps == reproduce::kFewestUpdates));
            CHECK((plan.seeds == 1 || plan.tokens() >= 2'000'000));
            CHECK(plan.trial_seconds.size() == plan.trials.size());
            const auto again = reproduce::plan_from_json(*paper, reproduce::to_json(plan), "plan.json");
            CHECK(reproduce::to_json(again) == reproduce::to_json(plan));
            std::set<std::string> names;
            for (const auto& trial : plan.trials) names.insert(trial.name);
            CHECK(names.size() == plan.trials.size());
        }
        // More minutes: more steps, then seeds.
        CHECK(plan_for(*paper, 12).steps > plan_for(*paper, 6).steps);
        CHECK(plan_for(*paper, 5).seeds == 1);
        CHECK(plan_for(*paper, 2000).seeds == 3);
        // All trials one after the other on two workers take what was planned.
        const auto plan = plan_for(*paper, 40);
        double seconds = 0;
        for (std::size_t i = 0; i < plan.trials.size(); ++i)
            if (static_cast<std::int64_t>(i) < plan.planned) seconds += plan.trial_seconds[i];
        CHECK(plan.planned_seconds >= 20 + plan.end_seconds + seconds / 2);

        auto other = plan;
        other.trials.front().name = "../outside";
        CHECK_THROWS_AS(reproduce::plan_from_json(*paper, reproduce::to_json(other), "plan.json"), Error);
        const Paper& wrong = paper == &heads() ? hashes() : heads();
        CHECK_THROWS_AS(reproduce::plan_from_json(wrong, reproduce::to_json(plan), "plan.json"), Error);
    }
    // Nine encoders, seven of each other stack; twelve embeddings, and two more with what is left.
    CHECK(reproduce::trials_of(heads(), 1, 40).size() == 23);
    CHECK(reproduce::trials_of(hashes(), 1, 40).size() == 14);
    CHECK(reproduce::trials_of(hashes(), 2, 40).back().name == "encoder-lsh-emb-1k-seed2");
}

TEST_CASE("The thesis's jobs train every model on equal tokens", "[reproduce][thesis]") {
    for (const Paper* paper : kChapters) {
        const auto plan = plan_for(*paper, 40);
        for (const auto& trial : plan.trials) {
            for (const auto* stage : plan.stages_of(trial)) {
                INFO(plan.run_name(trial, *stage));
                const bool pretrain = stage->name == "pretrain", classify = stage->name == "classify";
                CHECK_FALSE((pretrain && trial.model->name == "proformer"));
                const auto job = reproduce::job_of(plan, trial, *stage);
                CHECK(job.training.steps == plan.steps_of(*stage));
                CHECK(job.seed == trial.seed);
                if (!classify) CHECK(*job.training.steps * job.step_tokens() == plan.tokens(*stage));
                CHECK(job.training.batch >= 1);
                CHECK(job.data.objective.kind == (pretrain                       ? trial.model->objective
                                                  : classify                     ? "classify"
                                                  : stage->name == "translation" ? "translation"
                                                                                 : "next_token"));
                // Tuned from what was trained before, but for the model that is not pre-trained.
                const bool tuned = classify && trial.model->name != "proformer";
                CHECK(job.model.from == (tuned ? "../runs/" + trial.name + "-pretrain/snapshots/last" : ""));
                CHECK(job.model.preset.empty() == tuned);
                if (tuned) CHECK(job.data.tokenizer == training::standard_tokenizer(job));
                const auto again = training::read_job(training::job_text(job), "job");
                CHECK(training::job_text(again) == training::job_text(job));
                CHECK(again.data.objective.kind == job.data.objective.kind);
            }
        }
    }
    const auto plan = plan_for(hashes(), 40);
    const auto timed = [&](const char* name) { return reproduce::timing_job(plan, hashes().model(name)); };
    CHECK(timed("bert-mlm").model.config.at("vocab_size") == 50265);
    CHECK(timed("bert-sr").model.config.at("vocab_size") == 50265);
    CHECK(timed("bert-mlm").data.objective.kind == "masked");
    CHECK(timed("bert-sr").data.objective.kind == "shuffle_random");
    CHECK(timed("md5-emb").model.config.at("embedding").at("rows") == 50260);
    for (const std::string& name : hashes().view().at("timing").at("models").strings())
        CHECK(timed(name.c_str()).step_tokens() == 2048);
}

TEST_CASE("Passages are whole, labelled by their part, and a fifth is to test with", "[reproduce][thesis]") {
    std::string text;
    for (int i = 0; i < 24 * 100 + 7; ++i) text += "w" + std::to_string(i) + (i % 5 == 0 ? "\n\t" : " ");
    const auto passages = reproduce::passages_of(text, 4, 1000);
    const auto lines = [](const std::string& written) {
        std::vector<nlohmann::json> list;
        std::istringstream stream(written);
        for (std::string line; std::getline(stream, line);) list.push_back(nlohmann::json::parse(line));
        return list;
    };
    const auto train = lines(passages.train), test = lines(passages.test);
    CHECK(train.size() == 80);
    CHECK(test.size() == 20);
    CHECK(test.front().at("text").get<std::string>().starts_with("w96 w97 "));
    CHECK(test.front().at("text").get<std::string>().ends_with(" w119"));
    int counts[4] = {};
    for (const auto& item : test) ++counts[item.at("label").get<int>()];
    for (const int count : counts) CHECK(count == 5);
    CHECK(train.front().at("label") == 0);
    CHECK(train.back().at("label") == 3);
    CHECK(lines(reproduce::passages_of(text, 4, 50).train).size() == 40);
    CHECK_THROWS_AS(reproduce::passages_of("a few words", 4, 50), Error);
}

TEST_CASE("Retention and elasticity of printed scores are the printed ones", "[reproduce][thesis]") {
    const Measured in = derived(as_the_thesis_says(heads()));
    for (const Scored& one : kScores)
        for (const auto& model : heads().models) {
            const auto number = [&](const std::string& key) { return test::printed(heads(), model.name, key); };
            INFO(one.score << " " << model.name);
            const double retention = number(std::string(one.benchmark) + ".1"),
                         elasticity = number(std::string(one.benchmark) + ".2");
            if (std::isfinite(retention))  // of scores with one decimal
                CHECK(100 * in.value(model.name, std::string("retention ") + one.score) ==
                      Approx(retention).margin(0.3));
            // PEoP divides by 0.03 of 8.85 millions, which are printed with two digits: of the large ones alone.
            if (std::isfinite(elasticity) && number(one.stack) > 9)
                CHECK(in.value(model.name, std::string("elasticity ") + one.score) == Approx(elasticity).margin(0.07));
        }
    CHECK_FALSE(std::isfinite(in.value("sha", "elasticity bleu")));
    Measured counted = as_the_thesis_says(heads());
    counted.set("linear", "attention encoder", 9'000'000);
    CHECK_FALSE(std::isfinite(derived(counted).value("linear", "elasticity passages")));
}

TEST_CASE("Parts that compare are open within twice the standard error of the difference", "[reproduce]") {
    const auto verdict = [](std::vector<double> differences) {
        reproduce::ClaimParts parts;
        for (const double one : differences) parts.add({true}, {"", "", {10 + one, 0.3}, {10, 0.4}}, true);
        return parts.verdict();
    };
    CHECK(verdict({}) == Verdict::not_measured);
    CHECK(verdict({std::nan("")}) == Verdict::not_measured);
    CHECK(verdict({1.1, 5}) == Verdict::held);
    CHECK(verdict({0.9, -0.9}) == Verdict::too_near);
    CHECK(verdict({-1.1, 0.9}) == Verdict::failed);
    CHECK(verdict({1.1, 0.9}) == Verdict::partly);
    CHECK(verdict({1.1, -1.1}) == Verdict::partly);
}

TEST_CASE("An open part says how many times as many seeds would decide it", "[reproduce]") {
    const auto times = [](std::vector<double> differences, double error = 0.3) {
        reproduce::ClaimParts parts;
        for (const double one : differences) parts.add({true}, {"", "", {10 + one, error}, {10, 0.4}}, true);
        return parts.times_seeds();
    };
    // Twice the standard error is 1: half of it takes four times as many seeds.
    CHECK(times({0.5}) == Approx(4));
    CHECK(times({-0.5, 0.8, 3}) == Approx(4));
    CHECK(times({2, -2}) == 1);
    CHECK(std::isinf(times({0.5, 0})));
    CHECK(std::isnan(times({0.5}, std::nan(""))));
    reproduce::Claim claim{"A is above B", "2 and 1", "A above B", "2 and 1", Verdict::too_near, "4 seeds decide it"};
    const std::string open = reproduce::claims_markdown({claim}, "");
    CHECK(open.find("- Here: 2 and 1.\n- A longer run: 4 seeds decide it.\n\n") != std::string::npos);
    claim.longer.clear();
    CHECK(reproduce::claims_markdown({claim}, "").find("longer") == std::string::npos);
}

TEST_CASE("Seeds give the noise", "[reproduce][thesis]") {
    Measured in;
    for (const double value : {20, 22, 24}) in.add("sha", "bleu", value, 0.1);
    CHECK(in.estimate("sha", "bleu").value == Approx(22));
    CHECK(in.estimate("sha", "bleu").error == Approx(2 / std::sqrt(3.0)));
    in.set("sha", "bleu", 22, 0.7);  // one seed: the error of its items
    CHECK(in.estimate("sha", "bleu").error == Approx(0.7));
    in.set("sha", "bleu", 22);  // without seeds no difference is significant
    in.set("mhe_mul", "bleu", 30);
    reproduce::ClaimParts parts;
    parts.add({true}, {"", "", in.estimate("mhe_mul", "bleu"), in.estimate("sha", "bleu")}, true);
    CHECK(parts.verdict() == Verdict::too_near);
}

TEST_CASE("The thesis's claims hold for its own numbers and fail for their contrary", "[reproduce][thesis]") {
    for (const Paper* paper : kChapters) {
        const auto plan = plan_for(*paper, 400);
        auto measured = as_the_thesis_says(*paper);
        for (const auto& claim : reproduce::judge(plan, measured)) {
            INFO(claim.title << ": " << claim.found);
            CHECK(claim.verdict == Verdict::held);
        }
        const std::string report = report_of(plan, measured);
        for (const char* words :
             {"1 min 1 s", "figures/retention.png", "Failed: x.", "    headscope train jobs/encoder-"})
            CHECK(report.find(words) != std::string::npos);
        const auto claims = std::to_string(reproduce::judge(plan, measured).size());
        CHECK(report.find(claims + " of " + claims + " held") != std::string::npos);

        // Seeds that are easy or hard for all models alike are no noise.
        auto seeded = measured;
        for (auto& [which, seeds] : seeded.values) {
            const double value = seeds.values.front();
            seeds.values = {value, 1.3 * value, 0.8 * value};
        }
        for (const auto& claim : reproduce::judge(plan, seeded)) {
            INFO(claim.title << ": " << claim.found);
            CHECK(claim.verdict == Verdict::held);
        }

        // Differences that chance makes.
        auto noisy = measured;
        for (auto& [which, seeds] : noisy.values) seeds.error = 100;
        CHECK(reproduce::judge(plan, noisy).front().verdict == Verdict::too_near);
        for (auto& [which, seeds] : noisy.values) seeds.error = 1e6;
        CHECK(reproduce::judge(plan, noisy).front().longer.find("more than 1000 seeds") != std::string::npos);
        // The best is the worst.
        for (auto& [which, seeds] : measured.values) {
            double& value = seeds.values.front();
            const std::string& name = which.second;
            if (name == "training")
                value = which.first == "bert-sr" ? 5 : 20 / value;
            else if (name == "passages" || name == "spoilt" || name == "perplexity" || name == "bleu")
                value = 1 / value;
        }
        if (paper == &hashes()) measured.set("md5-add", "training", 50);
        const std::set<std::string> still{"MHE-MUL is at or above MHE-ADD", "MHE retains most of MHA's performance",
                                          "Pool, Add and Proj retain most of BERT's performance",
                                          "HashFormers learn about as fast as BERT with S+R"};
        for (const auto& claim : reproduce::judge(plan, measured)) {
            INFO(claim.title << ": " << claim.found);
            if (!still.contains(claim.title)) CHECK(claim.verdict == Verdict::failed);
        }
        // MHE-MUL and MHE-ADD are within two per cent, also upside down.
        auto behind = as_the_thesis_says(*paper);
        for (auto& [which, seeds] : behind.values)
            if (which.first == "mhe_mul") seeds.values.front() *= which.second == "perplexity" ? 2 : 0.5;
        const auto judged = reproduce::judge(plan, behind);
        if (const auto* claim = test::claim_of(judged, "MHE-MUL is at or above"))
            CHECK(claim->verdict == Verdict::failed);
        for (const auto& claim : reproduce::judge(plan, {})) CHECK(claim.verdict == Verdict::not_measured);
        // Too few tokens: no verdict, except on claims that need no learning.
        const auto hasty = plan_for(*paper, 1);
        REQUIRE_FALSE(reproduce::learned(hasty, {}));
        for (const auto& claim : reproduce::judge(hasty, as_the_thesis_says(*paper))) {
            const bool timing = claim.title.find("fast") != std::string::npos;
            CHECK(claim.verdict == (timing ? Verdict::held : Verdict::undecided));
        }
    }
}

TEST_CASE("Reports of the thesis have its numbers beside ours", "[reproduce][thesis]") {
    const std::string chapter_3 = report_of(plan_for(heads(), 400), as_the_thesis_says(heads()));
    for (const char* words : {"## Encoders (Table 3.1)", "| MHE-MUL | 8880000 |", "80.6", "12.07", "| FNet | – |",
                              "## Decoders (Table 3.2)", "53.8", "## Encoder-decoders (Table 3.3)", "6.520 M"}) {
        INFO(words);
        CHECK(chapter_3.find(words) != std::string::npos);
    }
    const std::string chapter_2 = report_of(plan_for(hashes(), 400), as_the_thesis_says(hashes()));
    for (const char* words :
         {"Tables 2.1 and 2.2", "| HashFormer-LSH-Proj | 79.10 ± 0.010 | 99.50 |", "## Speed (Table 2.3)",
          "| BERT-S+R | 11.60 (2.147) |", "11.6 (2.1)", "1.8 to 4.6 (1.0 to 2.6)"}) {
        INFO(words);
        CHECK(chapter_2.find(words) != std::string::npos);
    }
}
