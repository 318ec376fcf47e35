// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/reproduce/thesis/claims.h"
#include "core/reproduce/thesis/passages.h"
#include "core/reproduce/thesis/printed.h"

using namespace headscope;
namespace thesis = reproduce::thesis;
using reproduce::Verdict;
using thesis::Chapter;
using thesis::Score;
using thesis::Stage;

namespace {

constexpr Chapter kChapters[] = {Chapter::heads, Chapter::hashes};

thesis::Calibration calibration(Chapter chapter, double seconds) {
    thesis::Calibration calibration;
    for (const Stage stage : {Stage::pretrain, Stage::classify, Stage::decoder, Stage::translation}) {
        for (const auto& model : thesis::models(chapter))
            calibration.step_seconds[{std::string(model.timed_as()), stage}] = seconds;
        calibration.overhead[stage] = 2;
    }
    return calibration;
}

thesis::Plan plan_for(Chapter chapter, double minutes, double seconds = 0.02) {
    reproduce::Settings settings;
    settings.minutes = minutes;
    settings.workers = 2;
    return thesis::make_plan(chapter, settings, "nano", calibration(chapter, seconds), 20);
}

/// Printed numbers as if they were measured, of the first benchmark of each table.
thesis::Measured as_the_thesis_says(Chapter chapter) {
    thesis::Measured in;
    if (chapter == Chapter::heads) {
        const auto add = [&in](const thesis::PrintedTable& table, std::size_t benchmark, Score score, double unit) {
            for (const auto& row : table.rows) {
                const std::string name(row.mixer);
                in.scores[{name, score}] = {{unit * row.scores.at(benchmark).score}, 1e-4 * unit};
                if (std::isfinite(row.parameters))
                    in.attention[{name, thesis::stack_of(score)}] = std::llround(1e6 * row.parameters);
            }
        };
        add(thesis::printed_encoders(), 0, Score::passages, 0.01);
        add(thesis::printed_encoders(), 1, Score::spoilt, 0.01);
        add(thesis::printed_decoders(), 1, Score::perplexity, 1);
        add(thesis::printed_translations(), 0, Score::bleu, 1);
        return in;
    }
    for (const auto& model : thesis::models(chapter)) {
        const std::string name(model.name);
        const auto printed = thesis::printed_embedding(model.name);
        in.scores[{name, Score::passages}] = {{printed.score / 100}, 1e-4};
        // Emb has as many as BERT, of which none are printed.
        in.parameters[name] = std::llround(1e6 * (name.starts_with("bert") ? 124.6 : printed.parameters));
        in.embedding[name] = std::llround(1e6 * printed.embedding);
        in.forward_ms[name] = 4.6;
    }
    for (const std::string& name : thesis::timed_models())
        in.training_ms[name] = std::stod(std::string(thesis::printed_speed(name).training));
    return in;
}

std::string report_of(const thesis::Plan& plan, const thesis::Measured& measured) {
    return thesis::report_markdown(
        {{{{"retention", "Retention"}}, {"Failed: x."}, {"headscope list"}, "text", "a machine", "headscope", 61},
         plan,
         measured});
}

}  // namespace

TEST_CASE("The thesis's plans fit their minutes and are read as they were written", "[reproduce][thesis]") {
    for (const Chapter chapter : kChapters) {
        for (const double minutes : {5.0, 40.0, 240.0}) {
            INFO(thesis::chapter_name(chapter) << " " << minutes);
            const auto plan = plan_for(chapter, minutes);
            CHECK((plan.planned_seconds < 60 * minutes || plan.pretrain_steps == reproduce::kFewestUpdates));
            CHECK((plan.seeds == 1 || plan.tokens(Stage::pretrain) >= 2'000'000));
            CHECK(plan.trial_seconds.size() == plan.trials.size());
            const auto again = thesis::plan_from_json(chapter, thesis::to_json(plan), "plan.json");
            CHECK(thesis::to_json(again) == thesis::to_json(plan));
            std::set<std::string> names;
            for (const auto& trial : plan.trials) names.insert(trial.name);
            CHECK(names.size() == plan.trials.size());
        }
        // More minutes: more steps, then seeds.
        CHECK(plan_for(chapter, 12).pretrain_steps > plan_for(chapter, 6).pretrain_steps);
        CHECK(plan_for(chapter, 5).seeds == 1);
        CHECK(plan_for(chapter, 2000).seeds == 3);
        // All trials one after the other on two workers take what was planned.
        const auto plan = plan_for(chapter, 40);
        double seconds = 0;
        for (std::size_t i = 0; i < plan.trials.size(); ++i)
            if (!plan.trials[i].extra || plan.extras_planned) seconds += plan.trial_seconds[i];
        CHECK(plan.planned_seconds >= 20 + plan.end_seconds + seconds / 2);

        auto other = plan;
        other.trials.front().name = "../outside";
        CHECK_THROWS_AS(thesis::plan_from_json(chapter, thesis::to_json(other), "plan.json"), Error);
        const Chapter wrong = chapter == Chapter::heads ? Chapter::hashes : Chapter::heads;
        CHECK_THROWS_AS(thesis::plan_from_json(wrong, thesis::to_json(plan), "plan.json"), Error);
    }
    // Nine encoders, seven of each other stack; twelve embeddings, and two more with what is left.
    CHECK(thesis::trials_of(Chapter::heads, 1).size() == 23);
    CHECK(thesis::trials_of(Chapter::hashes, 1).size() == 14);
    CHECK(thesis::trials_of(Chapter::hashes, 2).back().name == "encoder-lsh-emb-1k-seed2");
}

TEST_CASE("The thesis's jobs train every model on equal tokens", "[reproduce][thesis]") {
    for (const Chapter chapter : kChapters) {
        const auto plan = plan_for(chapter, 40);
        for (const auto& trial : plan.trials) {
            const auto& model = thesis::model(chapter, trial.model);
            for (const Stage stage : thesis::stages_of(trial.stack)) {
                if (stage == Stage::pretrain && model.objective.empty()) continue;
                INFO(thesis::run_name(trial, stage));
                const auto job = thesis::job_of(plan, trial, stage);
                CHECK(job.training.steps == plan.steps(stage));
                CHECK(job.seed == trial.seed);
                if (stage != Stage::classify) CHECK(*job.training.steps * job.step_tokens() == plan.tokens(stage));
                CHECK(job.training.batch >= 1);
                CHECK(job.data.objective.kind == (stage == Stage::pretrain      ? std::string(model.objective)
                                                  : stage == Stage::classify    ? "classify"
                                                  : stage == Stage::translation ? "translation"
                                                                                : "next_token"));
                // Tuned from what was trained before, but for who is not pre-trained.
                const bool tuned = stage == Stage::classify && model.name != "proformer";
                CHECK(job.model.from ==
                      (tuned ? "../runs/" + thesis::run_name(trial, Stage::pretrain) + "/snapshots/last" : ""));
                CHECK(job.model.preset.empty() == tuned);
                if (tuned) CHECK(job.data.tokenizer == training::standard_tokenizer(job));
            }
        }
    }
    const auto plan = plan_for(Chapter::hashes, 40);
    const auto timed = [&](const char* name) { return thesis::timing_job(plan, thesis::model(Chapter::hashes, name)); };
    CHECK(timed("bert-mlm").model.config.at("vocab_size") == 50265);
    CHECK(timed("bert-sr").model.config.at("vocab_size") == 50265);
    CHECK(timed("bert-mlm").data.objective.kind == "masked");
    CHECK(timed("bert-sr").data.objective.kind == "shuffle_random");
    CHECK(timed("md5-emb").model.config.at("embedding").at("rows") == 50260);
    for (const std::string& name : thesis::timed_models()) CHECK(timed(name.c_str()).step_tokens() == 2048);
}

TEST_CASE("Jobs of the thesis are job files", "[reproduce][thesis]") {
    for (const Chapter chapter : kChapters) {
        const auto plan = plan_for(chapter, 40);
        for (const auto& trial : plan.trials)
            for (const Stage stage : thesis::stages_of(trial.stack)) {
                if (stage == Stage::pretrain && thesis::model(chapter, trial.model).objective.empty()) continue;
                INFO(thesis::run_name(trial, stage));
                const auto job = thesis::job_of(plan, trial, stage);
                const auto again = training::read_job(training::job_text(job), "job");
                CHECK(training::job_text(again) == training::job_text(job));
                CHECK(again.data.objective.kind == job.data.objective.kind);
            }
    }
}

TEST_CASE("Passages are whole, labelled by their part, and a fifth is to test with", "[reproduce][thesis]") {
    std::string text;
    for (int i = 0; i < 24 * 100 + 7; ++i) text += "w" + std::to_string(i) + (i % 5 == 0 ? "\n\t" : " ");
    const auto passages = thesis::passages_of(text, 4, 1000);
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
    CHECK(lines(thesis::passages_of(text, 4, 50).train).size() == 40);
    CHECK_THROWS_AS(thesis::passages_of("a few words", 4, 50), Error);
}

TEST_CASE("Retention and elasticity of printed scores are the printed ones", "[reproduce][thesis]") {
    auto in = as_the_thesis_says(Chapter::heads);
    const auto check = [&](const thesis::PrintedTable& table, std::size_t benchmark, Score score) {
        for (const auto& row : table.rows) {
            const auto& printed = row.scores.at(benchmark);
            INFO(table.number << " " << row.mixer);
            if (std::isfinite(printed.retention))  // of scores with one decimal
                CHECK(100 * thesis::retention(in, row.mixer, "standard", score) ==
                      Approx(printed.retention).margin(0.3));
            // PEoP divides by 0.03 of 8.85 millions, which are printed with two digits: of the large ones alone.
            if (std::isfinite(printed.elasticity) && row.parameters > 9)
                CHECK(thesis::elasticity(in, row.mixer, score).value == Approx(printed.elasticity).margin(0.07));
        }
    };
    check(thesis::printed_encoders(), 0, Score::passages);
    check(thesis::printed_encoders(), 1, Score::spoilt);
    check(thesis::printed_decoders(), 1, Score::perplexity);
    check(thesis::printed_translations(), 0, Score::bleu);
    CHECK_FALSE(std::isfinite(thesis::elasticity(in, "sha", Score::bleu).value));
    in.attention[{"linear", thesis::Stack::encoder}] = 9'000'000;
    CHECK_FALSE(std::isfinite(thesis::elasticity(in, "linear", Score::passages).value));
}

TEST_CASE("Compared parts are open within twice the standard error of the difference", "[reproduce]") {
    const auto verdict = [](std::vector<double> differences) {
        reproduce::ComparedParts parts;
        for (const double one : differences) parts.add_above({10 + one, 0.3}, {10, 0.4});
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

TEST_CASE("Seeds give the noise", "[reproduce][thesis]") {
    thesis::Measured in;
    in.scores[{"sha", Score::bleu}] = {{20, 22, 24}, 0.1};
    CHECK(thesis::score_of(in, "sha", Score::bleu).value == Approx(22));
    CHECK(thesis::score_of(in, "sha", Score::bleu).error == Approx(2 / std::sqrt(3.0)));
    in.scores[{"sha", Score::bleu}] = {{22}, 0.7};  // one seed: what its items say
    CHECK(thesis::score_of(in, "sha", Score::bleu).error == Approx(0.7));
    in.scores[{"sha", Score::bleu}] = {{22}};  // without seeds no difference is significant
    in.scores[{"mhe_mul", Score::bleu}] = {{30}};
    reproduce::ComparedParts parts;
    parts.add_above(thesis::merit_of(in, "mhe_mul", Score::bleu), thesis::merit_of(in, "sha", Score::bleu));
    CHECK(parts.verdict() == Verdict::too_near);
}

TEST_CASE("The thesis's claims hold for its own numbers and fail for their contrary", "[reproduce][thesis]") {
    for (const Chapter chapter : kChapters) {
        const auto plan = plan_for(chapter, 400);
        auto measured = as_the_thesis_says(chapter);
        for (const auto& claim : thesis::judge(plan, measured)) {
            INFO(claim.title << ": " << claim.found);
            CHECK(claim.verdict == Verdict::held);
        }
        const std::string report = report_of(plan, measured);
        for (const char* words : {"1 min 1 s", "figures/retention.png", "Failed: x.", "    headscope list"})
            CHECK(report.find(words) != std::string::npos);
        const auto claims = std::to_string(thesis::judge(plan, measured).size());
        CHECK(report.find(claims + " of " + claims + " held") != std::string::npos);

        // Differences that chance makes.
        auto noisy = measured;
        for (auto& [which, seeds] : noisy.scores) seeds.error = 100;
        CHECK(thesis::judge(plan, noisy).front().verdict == Verdict::too_near);
        // The best is the worst.
        for (auto& [which, seeds] : measured.scores) seeds.values.front() = 1 / seeds.values.front();
        for (auto& [name, ms] : measured.training_ms) ms = name == "bert-sr" ? 5 : 20 / ms;
        measured.training_ms["md5-add"] = 50;
        const std::set<std::string> still{"MHE retains most of MHA's performance",
                                          "Pool, Add and Proj retain most of BERT's performance",
                                          "HashFormers learn about as fast as BERT with S+R"};
        for (const auto& claim : thesis::judge(plan, measured)) {
            INFO(claim.title << ": " << claim.found);
            if (!still.contains(claim.title)) CHECK(claim.verdict == Verdict::failed);
        }
        for (const auto& claim : thesis::judge(plan, {})) CHECK(claim.verdict == Verdict::not_measured);
        // Too few tokens: no verdict, except on claims that need no learning.
        const auto hasty = plan_for(chapter, 1);
        REQUIRE_FALSE(thesis::learned(hasty));
        for (const auto& claim : thesis::judge(hasty, as_the_thesis_says(chapter))) {
            const bool timing = claim.title.find("fast") != std::string::npos;
            CHECK(claim.verdict == (timing ? Verdict::held : Verdict::undecided));
        }
    }
}

TEST_CASE("Reports of the thesis have its numbers beside ours", "[reproduce][thesis]") {
    const auto heads = report_of(plan_for(Chapter::heads, 400), as_the_thesis_says(Chapter::heads));
    for (const char* words : {"## Encoders (Table 3.1)", "| MHE-MUL | 8880000 |", "80.6", "12.07", "| FNet | – |",
                              "## Decoders (Table 3.2)", "53.8", "## Encoder-decoders (Table 3.3)", "6.520 M"}) {
        INFO(words);
        CHECK(heads.find(words) != std::string::npos);
    }
    const auto hashes = report_of(plan_for(Chapter::hashes, 400), as_the_thesis_says(Chapter::hashes));
    for (const char* words :
         {"Tables 2.1 and 2.2", "| HashFormer-LSH-Proj | 79.10 ± 0.010 | 99.50 |", "## Speed (Table 2.3)",
          "| BERT-S+R | 11.60 (2.147) |", "11.6 (2.1)", "1.8 to 4.6 (1.0 to 2.6)"}) {
        INFO(words);
        CHECK(hashes.find(words) != std::string::npos);
    }
}
