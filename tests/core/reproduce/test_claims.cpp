// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>

#include "core/reproduce/claims.h"
#include "core/reproduce/paper.h"
#include "core/reproduce/report.h"

using namespace headscope;
using reproduce::Verdict;
using reproduce::Which;

namespace {

/// Scores as the paper has them: its WikiText perplexities at the training length, its Table 4 below.
store::Evaluation as_the_paper(const reproduce::Plan& plan, std::int64_t seeds) {
    store::Evaluation evaluation;
    for (std::int64_t seed = 1; seed <= seeds; ++seed) {
        for (const auto& row : reproduce::paper_models()) {
            store::EvaluatedModel model;
            model.mixer = row.mixer;
            model.layout = row.configuration == "standard" || row.configuration == "uniform" ? "uniform" : "even";
            if (row.configuration == "skip") model.skipped = "0,2";
            model.parameters = row.mixer == "mlp" ? 1'000'000 - 100 : 1'000'000;
            model.seed = seed;
            const auto index = static_cast<std::int64_t>(evaluation.models.size());
            evaluation.models.push_back(model);
            const auto add = [&](const char* task, const char* metric, std::int64_t length, double value) {
                evaluation.results.push_back({index, task, metric, length, value, std::nan(""), 100});
            };
            const double shift = 1 + 0.001 * static_cast<double>(seed);
            for (std::size_t i = 0; i < 5; ++i) {
                const double value = (row.context[i] > 0 && i < 4 ? row.context[i] : row.wikitext) * shift;
                add("perplexity", "token_perplexity", plan.lengths()[i], value);
                add("perplexity", "loss", plan.lengths()[i], std::log(value));
            }
            add("next_token_accuracy", "accuracy", plan.sequence_length, row.lambada / 100);
        }
    }
    return evaluation;
}

Verdict verdict_of(const std::vector<reproduce::Claim>& claims, const std::string& begin) {
    for (const auto& claim : claims)
        if (claim.title.rfind(begin, 0) == 0) return claim.verdict;
    FAIL("no claim " << begin);
    return Verdict::not_measured;
}

reproduce::Indicators indicators(const Which& which, double entropy, double score) {
    reproduce::Indicators one;
    one.which = which;
    one.mixers = {which.first, which.second == "hybrid" ? "standard" : which.first};
    one.layers = {{entropy, 1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2}, {5, 1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2}};
    one.largest_score = {score, 1};
    one.above_ten = {score > 100 ? 0.2 : 0.1, score > 100 ? 0.2 : 0.1};
    one.above_hundred = {0, 0};
    return one;
}

}  // namespace

TEST_CASE("With the paper's numbers every claim about scores holds", "[reproduce]") {
    reproduce::Plan plan;
    const reproduce::Scores scores(as_the_paper(plan, 3));
    const auto claims = reproduce::judge(plan, scores, {});
    for (const char* title : {"Hybrids (Standard", "Uniform Non-approximate", "Token mixing", "Of the uniform variants",
                              "Sequence dependency", "The simple blocks", "More context", "All models have"}) {
        INFO(title);
        CHECK(verdict_of(claims, title) == Verdict::held);
    }
    CHECK(verdict_of(claims, "Uniform variants attend") == Verdict::not_measured);
    const auto spread = scores.perplexity({"approximate", "hybrid"}, plan.sequence_length);
    CHECK(spread.count == 3);
    CHECK(spread.mean == Approx(39.4 * 1.002));
    CHECK(spread.deviation == Approx(39.4 * 0.001));
}

TEST_CASE("Claims that fail, or that half of the mixers meet, have these verdicts", "[reproduce]") {
    reproduce::Plan plan;
    store::Evaluation evaluation = as_the_paper(plan, 1);
    for (auto& result : evaluation.results) {
        const auto& model = evaluation.models[static_cast<std::size_t>(result.model)];
        const bool hybrid = model.layout == "even" && model.skipped.empty();
        if (hybrid && model.mixer == "approximate" && result.metric == "token_perplexity") result.value *= 1.2;
        if (!model.skipped.empty() && result.metric == "token_perplexity") result.value = 40;
    }
    const auto claims = reproduce::judge(plan, reproduce::Scores(evaluation), {});
    CHECK(verdict_of(claims, "Hybrids (Standard") == Verdict::partly);
    CHECK(verdict_of(claims, "The simple blocks") == Verdict::failed);
}

TEST_CASE("The nearest to Standard is one mixer or another, not one in part", "[reproduce]") {
    reproduce::Plan plan;
    store::Evaluation evaluation = as_the_paper(plan, 1);
    for (auto& result : evaluation.results) {
        const auto& model = evaluation.models[static_cast<std::size_t>(result.model)];
        const bool uniform = model.layout == "uniform" && model.mixer == "rnd_emb_qk";
        if (uniform && result.metric == "token_perplexity") result.value = 40;
    }
    const auto claims = reproduce::judge(plan, reproduce::Scores(evaluation), {});
    CHECK(verdict_of(claims, "Of the uniform variants") == Verdict::failed);
}

TEST_CASE("Where Standard learned no more than MLP nothing is decided but the number of parameters", "[reproduce]") {
    reproduce::Plan plan;
    store::Evaluation evaluation = as_the_paper(plan, 1);
    for (auto& result : evaluation.results) {
        const auto& model = evaluation.models[static_cast<std::size_t>(result.model)];
        if (model.mixer == "standard" && result.metric == "token_perplexity") result.value = 980;
    }
    const reproduce::Scores scores(evaluation);
    CHECK_FALSE(reproduce::learned(plan, scores));
    const auto claims = reproduce::judge(plan, scores, {});
    CHECK(verdict_of(claims, "Hybrids (Standard") == Verdict::undecided);
    CHECK(verdict_of(claims, "All models have") == Verdict::held);
}

TEST_CASE("Indicators and outliers are judged from analyses", "[reproduce]") {
    reproduce::Plan plan;
    const reproduce::Scores scores(as_the_paper(plan, 1));
    std::vector<reproduce::Indicators> analyses{indicators({"standard", "standard"}, 5, 3),
                                                indicators({"rnd_emb_qk", "uniform"}, 1, 2000),
                                                indicators({"rnd_emb_qk", "hybrid"}, 3, 8)};
    CHECK(reproduce::radar_distance(analyses[0], analyses[1], analyses) == Approx(1.0 / 16));
    CHECK(reproduce::radar_distance(analyses[0], analyses[2], analyses, "standard") == Approx(0));
    auto claims = reproduce::judge(plan, scores, analyses);
    CHECK(verdict_of(claims, "Uniform variants attend") == Verdict::held);
    CHECK(verdict_of(claims, "Scores before softmax") == Verdict::held);
    analyses[2].largest_score[0] = 3000;
    claims = reproduce::judge(plan, scores, analyses);
    CHECK(verdict_of(claims, "Scores before softmax") == Verdict::partly);
    analyses[2].above_ten[0] = 0.3;
    claims = reproduce::judge(plan, scores, analyses);
    CHECK(verdict_of(claims, "Scores before softmax") == Verdict::failed);
}

TEST_CASE("Indicators and outliers of several seeds are judged by their means", "[reproduce]") {
    reproduce::Plan plan;
    const reproduce::Scores scores(as_the_paper(plan, 3));
    std::vector<reproduce::Indicators> analyses;
    for (const double shift : {0.0, 1.0, 2.0}) {
        analyses.push_back(indicators({"standard", "standard"}, 5 + shift, 3));
        analyses.push_back(indicators({"rnd_emb_qk", "uniform"}, 1 + shift, 20 + 900 * shift));
        analyses.push_back(indicators({"rnd_emb_qk", "hybrid"}, 3 + shift, 40));
    }
    // Entropies span 1 to 7, sixteen spokes: each pair of Standards is shift / 96 apart.
    const auto between = reproduce::distances_over_seeds({"standard", "standard"}, {"standard", "standard"}, analyses);
    CHECK(between.count == 3);
    CHECK(between.mean == Approx((1.5 + 1.0 + 1.5) / 3 / 96));
    const auto far = reproduce::distances_over_seeds({"rnd_emb_qk", "uniform"}, {"standard", "standard"}, analyses);
    CHECK(far.mean == Approx(4.0 / 96));
    CHECK(far.deviation == Approx(1.0 / 96));
    const auto outliers = reproduce::outliers_over_seeds({"rnd_emb_qk", "uniform"}, analyses);
    CHECK(outliers.largest.mean == Approx(920));
    CHECK(outliers.above_ten.mean == Approx((0.1 + 0.2 + 0.2) / 3));
    // The first seed alone would say no.
    auto claims = reproduce::judge(plan, scores, analyses);
    CHECK(verdict_of(claims, "Uniform variants attend") == Verdict::held);
    CHECK(verdict_of(claims, "Scores before softmax") == Verdict::held);
    claims = reproduce::judge(plan, scores, {analyses[0], analyses[1], analyses[2]});
    CHECK(verdict_of(claims, "Scores before softmax") == Verdict::partly);
}

TEST_CASE("The report has verdicts, tables next to the paper's, and missing parts", "[reproduce]") {
    reproduce::Plan plan;
    plan.size = reproduce::sizes().front();
    plan.steps = 100;
    plan.workers_wanted = 4;
    plan.run_bytes = 250e6;
    plan.room_bytes = 260e6;
    const reproduce::Scores scores(as_the_paper(plan, 1));
    reproduce::ReportInput input;
    input.plan = plan;
    input.scores = &scores;
    input.missing = {"Left out, for the minutes were over: mlp-hybrid-seed2."};
    input.figures = {{"loss-uniform", "Loss"}};
    input.launch = "mpirun -n 2";
    input.cost_csv = "mixer,length,prefill_flops,measured_prefill_flops\nmlp,256,1000000,1200000\n";
    const std::string text = reproduce::report_markdown(input);
    for (const char* part :
         {"| hybrid | Non-approximate | 39.44", "**held**", "no error bars", "mlp-hybrid-seed2",
          "figures/loss-uniform.pdf", "| MLP | 256 | 1 M | 1.2 M |", "Only the layouts above were trained",
          "1 run at a time, on 1 thread each, every training started by mpirun -n 2, not 4 as there are processors "
          "for: "
          "one held up to 250 MB"}) {
        INFO(part);
        CHECK(text.find(part) != std::string::npos);
    }
}

TEST_CASE("Numbers are written short", "[reproduce]") {
    CHECK(reproduce::number_text(38.1) == "38.10");
    CHECK(reproduce::number_text(993.52) == "993.5");
    CHECK(reproduce::number_text(9025.9) == "9026");
    CHECK(reproduce::number_text(2e6) == "2.0E+06");
    CHECK(reproduce::number_text(std::nan("")) == "–");
    CHECK(reproduce::spread_text({38.1, 0.25, 3}) == "38.10 ± 0.25");
    CHECK(reproduce::spread_text({}) == "–");
}
