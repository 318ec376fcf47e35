// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>

#include "core/reproduce/claims/code.h"
#include "tests/core/reproduce/replayed.h"

using namespace headscope;
using reproduce::Measured;
using reproduce::Verdict;

namespace {

const reproduce::Paper& deconattn() {
    return reproduce::paper("deconattn");
}

reproduce::Plan a_plan() {
    reproduce::Plan plan = reproduce::unplanned(deconattn(), {});
    plan.steps = 100;
    return plan;
}

/// Scores as the paper has them: its WikiText perplexities at the training length, its Table 4 below.
Measured as_the_paper(std::int64_t seeds) {
    Measured measured;
    constexpr const char* lengths[] = {"@0.0625", "@0.125", "@0.25", "@0.5", "@1"};
    for (std::int64_t seed = 1; seed <= seeds; ++seed) {
        for (const auto& [subject, row] : deconattn().document.at("printed").items()) {
            measured.set(subject, "parameters", subject.starts_with("mlp") ? 1'000'000 - 100 : 1'000'000);
            const double shift = 1 + 0.001 * static_cast<double>(seed);
            for (std::size_t i = 0; i < 5; ++i) {
                const double value =
                    shift *
                    (row.contains("context") && i < 4 ? row.at("context").at(i) : row.at("wikitext")).get<double>();
                measured.add(subject, std::string("perplexity") + lengths[i], value, std::nan(""));
                measured.add(subject, std::string("loss") + lengths[i], std::log(value), std::nan(""));
            }
            measured.add(subject, "accuracy@1", row.at("lambada").get<double>() / 100, std::nan(""));
        }
    }
    return measured;
}

Verdict verdict_of(const std::vector<reproduce::Claim>& claims, const std::string& begin) {
    const auto* claim = test::claim_of(claims, begin);
    INFO(begin);
    REQUIRE(claim != nullptr);
    return claim->verdict;
}

/// Two layers: the first of the subject's mixer, the second Standard in a hybrid.
reproduce::Matrix layers(const std::string& subject, double entropy, double score) {
    const double standard = subject == "standard" ? 1 : 0, hybrid = subject.ends_with("hybrid") ? 1 : 0,
                 above_ten = score > 100 ? 0.2 : 0.1;
    return {{entropy, 1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, standard, 1, score, above_ten},
            {5, 1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, std::max(standard, hybrid), 1 - hybrid, 1, above_ten}};
}

Measured with_layers(Measured measured, const std::string& subject, double entropy, double score) {
    measured.matrices[{subject, "layers"}].push_back(layers(subject, entropy, score));
    return measured;
}

Measured derived(Measured measured) {
    reproduce::kDeconattn.derive(a_plan(), measured);
    return measured;
}

}  // namespace

TEST_CASE("With the paper's numbers every claim about scores holds", "[reproduce]") {
    const Measured measured = as_the_paper(3);
    const auto claims = reproduce::judge(a_plan(), measured);
    for (const char* title : {"Hybrids (Standard", "Uniform Non-approximate", "Token mixing", "Of the uniform variants",
                              "Sequence dependency", "The simple blocks", "More context", "All models have"}) {
        INFO(title);
        CHECK(verdict_of(claims, title) == Verdict::held);
    }
    CHECK(verdict_of(claims, "Uniform variants attend") == Verdict::not_measured);
    const auto spread = measured.spread("approximate hybrid", "perplexity@1");
    CHECK(spread.count == 3);
    CHECK(spread.mean == Approx(39.4 * 1.002));
    CHECK(spread.deviation == Approx(39.4 * 0.001));
}

TEST_CASE("Claims that fail, or that half of the mixers meet, have these verdicts", "[reproduce]") {
    Measured measured = as_the_paper(1);
    for (auto& [key, series] : measured.values) {
        if (!key.second.starts_with("perplexity")) continue;
        if (key.first == "approximate hybrid") series.values.front() *= 1.2;
        if (key.first.ends_with("skip")) series.values.front() = 40;
    }
    const auto claims = reproduce::judge(a_plan(), measured);
    CHECK(verdict_of(claims, "Hybrids (Standard") == Verdict::partly);
    CHECK(verdict_of(claims, "The simple blocks") == Verdict::failed);
}

TEST_CASE("The nearest to Standard is one mixer or another, not one in part", "[reproduce]") {
    Measured measured = as_the_paper(1);
    measured.set("rnd_emb_qk uniform", "perplexity@1", 40);
    const auto claims = reproduce::judge(a_plan(), measured);
    CHECK(verdict_of(claims, "Of the uniform variants") == Verdict::failed);
}

TEST_CASE("A claim that is one or nothing is open where a part is and none failed", "[reproduce]") {
    Measured measured = as_the_paper(3);  // Approximate: about 48
    measured.values[{"rnd_emb_qk uniform", "perplexity@1"}].values = {45, 48, 51};
    CHECK(verdict_of(reproduce::judge(a_plan(), measured), "Of the uniform variants") == Verdict::too_near);
    measured.values[{"fixed_seq_qk uniform", "perplexity@1"}].values = {30, 30, 30};
    CHECK(verdict_of(reproduce::judge(a_plan(), measured), "Of the uniform variants") == Verdict::failed);
}

TEST_CASE("Where Standard learned no more than MLP nothing is decided but the number of parameters", "[reproduce]") {
    Measured measured = as_the_paper(1);
    measured.set("standard", "perplexity@1", 980);
    CHECK_FALSE(reproduce::learned(a_plan(), measured));
    const auto claims = reproduce::judge(a_plan(), measured);
    CHECK(verdict_of(claims, "Hybrids (Standard") == Verdict::undecided);
    CHECK(verdict_of(claims, "All models have") == Verdict::held);
}

TEST_CASE("Indicators and outliers are judged from analyses", "[reproduce]") {
    Measured measured = with_layers(as_the_paper(1), "standard", 5, 3);
    measured = with_layers(measured, "rnd_emb_qk uniform", 1, 2000);
    measured = with_layers(measured, "rnd_emb_qk hybrid", 3, 8);
    CHECK(derived(measured).value("rnd_emb_qk uniform", "distance") == Approx(1.0 / 16));
    CHECK(derived(measured).value("rnd_emb_qk hybrid", "standard distance") == Approx(0));
    auto claims = reproduce::judge(a_plan(), measured);
    CHECK(verdict_of(claims, "Uniform variants attend") == Verdict::held);
    CHECK(verdict_of(claims, "Scores before softmax") == Verdict::held);
    auto& hybrid = measured.matrices[{"rnd_emb_qk hybrid", "layers"}].front().front();
    hybrid[10] = 3000;
    CHECK(verdict_of(reproduce::judge(a_plan(), measured), "Scores before softmax") == Verdict::partly);
    hybrid[11] = 0.3;
    CHECK(verdict_of(reproduce::judge(a_plan(), measured), "Scores before softmax") == Verdict::failed);
}

TEST_CASE("Indicators and outliers of several seeds are judged by their means", "[reproduce]") {
    Measured measured = as_the_paper(3), first;
    for (const double shift : {0.0, 1.0, 2.0}) {
        measured = with_layers(measured, "standard", 5 + shift, 3);
        measured = with_layers(measured, "rnd_emb_qk uniform", 1 + shift, 20 + 900 * shift);
        measured = with_layers(measured, "rnd_emb_qk hybrid", 3 + shift, 40);
        if (shift == 0) first = measured;
    }
    // Entropies span 1 to 7, sixteen spokes: each pair of Standards is shift / 96 apart.
    const Measured all = derived(measured);
    const auto between = all.spread("standard", "distance"), far = all.spread("rnd_emb_qk uniform", "distance");
    CHECK(between.count == 3);
    CHECK(between.mean == Approx((1.5 + 1.0 + 1.5) / 3 / 96));
    CHECK(far.mean == Approx(4.0 / 96));
    CHECK(far.deviation == Approx(1.0 / 96));
    CHECK(all.value("rnd_emb_qk uniform", "largest score") == Approx(920));
    CHECK(all.value("rnd_emb_qk uniform", "beyond 10") == Approx((0.1 + 0.2 + 0.2) / 3));
    // The first seed alone would say no, and the others differ from it too much to say anything of the largest score.
    const auto claims = reproduce::judge(a_plan(), measured);
    CHECK(verdict_of(claims, "Uniform variants attend") == Verdict::held);
    CHECK(test::claim_of(claims, "Scores before softmax")->parts.front().verdict == Verdict::too_near);
    CHECK(verdict_of(reproduce::judge(a_plan(), first), "Scores before softmax") == Verdict::partly);
}

TEST_CASE("The report has verdicts, tables next to the paper's, and missing parts", "[reproduce]") {
    reproduce::Plan plan = a_plan();
    plan.workers_wanted = 4;
    plan.run_bytes = 250e6;
    plan.room_bytes = 260e6;
    auto input = test::report_input(plan, as_the_paper(1), "loss-uniform");
    input.measured.matrices[{"mlp", "cost"}] = {{{256, 1'000'000, 1'200'000}}};
    input.missing = {"Left out, for the minutes were over: mlp-hybrid-seed2."};
    input.launch = "mpirun -n 2";
    const std::string text = reproduce::report_markdown(input);
    for (const char* part :
         {"| hybrid | Non-approximate | 39.44", "**held**", "no error bars", "mlp-hybrid-seed2",
          "in 3 of 10 comparisons of two seeds", "figures/loss-uniform.pdf", "| MLP | 256 | 1 M | 1.2 M |",
          "Only the layouts above were trained",
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

TEST_CASE("Numbers of several seeds are compared with their noise, those of one as they are", "[reproduce]") {
    const auto hybrids = [](std::vector<double> approximate) {
        Measured measured = as_the_paper(3);
        for (auto& [key, series] : measured.values)
            if (key.first == "approximate hybrid" && key.second == "perplexity@1") series.values = approximate;
        return *test::claim_of(reproduce::judge(a_plan(), measured), "Hybrids (Standard");
    };
    // Standard: 38.1762 and a limit of 40.085.
    const auto near = hybrids({38, 40, 42});
    REQUIRE(near.parts.size() == 5);
    const auto& part = near.parts.front();
    CHECK(part.what == "perplexity@1 of Approximate hybrid");
    CHECK(part.relation == "at most 1.05 times that of Standard");
    CHECK(part.own.count == 3);
    CHECK(part.limit.value == Approx(1.05 * 38.1 * 1.002));
    // In pairs: 38, 40 and 42 less 1.05 times 38.1381, 38.1762 and 38.2143.
    CHECK(part.noise == Approx(2 * (2 - 1.05 * 0.0381) / std::sqrt(3.0)));
    CHECK(part.verdict == Verdict::too_near);
    CHECK(near.verdict == Verdict::partly);
    CHECK(hybrids({38}).parts.front().verdict == Verdict::held);
    CHECK(hybrids({42, 42.1, 42.2}).parts.front().verdict == Verdict::failed);
    // One seed has the noise of the other model's.
    CHECK(hybrids({40.08}).parts.front().verdict == Verdict::too_near);
    const std::string text = reproduce::claims_markdown({near}, "");
    CHECK(text.find("| perplexity@1 of Approximate hybrid | 40.00 (3 seeds) | at most 1.05 times that of Standard | "
                    "40.09 (3 seeds) | -0.085 ± 2.263 | undecided: within the noise |") != std::string::npos);
}

TEST_CASE("A quotient of two numbers of each seed has the noise of the quotients", "[reproduce]") {
    Measured measured;
    const auto plan = a_plan();
    for (const double seed : {1, 2}) {
        measured.add("standard", "perplexity@1", 10 * seed, std::nan(""));
        measured.add("standard", "perplexity@0.5", 20 * seed + seed * seed, std::nan(""));
    }
    const auto estimate = reproduce::Scope{plan, measured, "standard"}.estimate("perplexity@0.5 / perplexity@1");
    CHECK(estimate.value == Approx(2.15));
    CHECK(estimate.error == Approx(0.05));
    CHECK(estimate.count == 2);
    // Means over lengths are of each seed.
    CHECK(measured.series("standard", "perplexity").values == std::vector<double>{15.5, 32});
}
