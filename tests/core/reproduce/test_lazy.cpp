// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/reproduce/claims/code.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/reproduce/replayed.h"
#include "tests/core/store/synthetic_lazy.h"

using namespace headscope;
using reproduce::Measured;
using reproduce::Pace;
using reproduce::Plan;
using reproduce::Verdict;

namespace {

const reproduce::Paper& lazy() {
    return reproduce::paper("lazy");
}

Pace calibration(double seconds) {
    Pace calibration = test::calibration_of(lazy(), seconds, 8, 30);
    calibration.step_seconds["ttt"] = 3 * seconds;
    return calibration;
}

reproduce::Settings settings_of(double minutes) {
    reproduce::Settings settings;
    settings.minutes = minutes;
    settings.workers = 2;
    return settings;
}

Plan plan_for(double minutes, double step_seconds = 0.05) {
    return reproduce::make_plan(lazy(), settings_of(minutes), calibration(step_seconds));
}

training::JobFile job_of(const Plan& plan, const char* model) {
    return reproduce::job_of(plan, reproduce::trial_of(lazy().model(model), lazy().stacks.front()),
                             lazy().stages.front());
}

std::vector<std::string> names_of(const Plan& plan) {
    std::vector<std::string> names;
    for (const auto& trial : plan.trials) names.push_back(trial.name);
    return names;
}

/// Falls with distance by `slope` over the whole window.
std::vector<double> falling(double slope) {
    std::vector<double> biases;
    for (int d = 0; d < 128; ++d) biases.push_back(0.3 - slope * d / 128);
    return biases;
}

std::vector<double>& on_key(Measured& measured, const char* model) {
    return measured.matrices[{model, "on key"}].front().front();
}

/// Numbers of which every claim holds: the paper's where it prints some.
Measured as_the_paper_says() {
    Measured measured;
    for (const auto& model : lazy().models) {
        const std::string& name = model.name;
        const auto paper = [&](const char* key) { return test::printed(lazy(), name, key); };
        measured.set(name, "parameters", 480'000);
        // Gated DeltaNet and Titans of 760M are further ahead than the claim has it.
        const double inside = std::isfinite(paper("wikitext_340m"))   ? paper("wikitext_340m")
                              : std::isfinite(paper("wikitext_760m")) ? paper("wikitext_760m")
                                                                      : 30;
        const double beyond = name == "lazy" ? 1.1 : 1.6;
        measured.set(name, "perplexity@1", inside);
        measured.set(name, "perplexity@2", beyond * inside);
        measured.set(name, "perplexity@4", beyond * beyond * inside);
        if (std::isfinite(paper("loss"))) measured.set(name, "loss@1", paper("loss"));
        if (model.from_minutes > 0) continue;
        const double sink = std::isfinite(paper("sink")) ? paper("sink") / 100 : 0.0546,
                     density = std::isfinite(paper("density")) ? paper("density") / 100 : 0.9454;
        measured.set(name, "sink", sink);
        measured.set(name, "density", density);
        measured.set(name, "sparsity", 1 - sink - density);
        measured.set(name, "zero_fraction", name == "lazy" ? 0.7 : 0);
        measured.matrices[{name, "zero_fraction"}] = {{{0.8, 0.7, 0.6}}};
        measured.matrices[{name, "on key"}] = {{std::vector<double>(256, 0.004)}};
        on_key(measured, name.c_str())[0] = sink;
    }
    on_key(measured, "mask-2")[2] = 0.3;
    on_key(measured, "mask-16")[16] = 0.01;
    measured.matrices[{"lazy", "offsets"}] = {{{-3, -2}, {-1, -1}, {-1.5, -0.5}}};
    measured.matrices[{"lazy", "biases"}] = {{falling(2), falling(1), falling(0.1)}};
    return measured;
}

}  // namespace

TEST_CASE("Lazy Attention's models are the paper's", "[reproduce][lazy]") {
    std::set<std::string> labels;
    const auto rows = lazy().names(lazy().view().at("groups"), "table 2");
    CHECK(rows.size() == 7);
    for (const auto& model : lazy().models) {
        INFO(model.name);
        CHECK(labels.insert(model.label).second);  // they name files
        CHECK(model.label.find('/') == std::string::npos);
        CHECK(lazy().model(model.timed_as()).as.empty());
        const auto& printed = lazy().document.at("printed");
        const bool formula = printed.contains(model.name) && printed.at(model.name).contains("formula");
        CHECK(formula == (std::count(rows.begin(), rows.end(), model.name) == 1));
        // The paper's sparsity is the rest of density and sink.
        if (const double rest = test::printed(lazy(), model.name, "rest"); std::isfinite(rest))
            CHECK(100 - test::printed(lazy(), model.name, "density") - test::printed(lazy(), model.name, "sink") ==
                  Approx(rest));
    }
    CHECK(test::printed(lazy(), "lazy", "rest") == Approx(59.58));
    CHECK_THROWS_AS(lazy().model("absent"), Error);
}

TEST_CASE("Lazy Attention's plan fits its minutes and is read as it was written", "[reproduce][lazy]") {
    for (const double minutes : {2.0, 6.0, 40.0, 240.0}) {
        INFO(minutes);
        const auto plan = plan_for(minutes);
        CHECK((plan.planned_seconds < 60 * minutes || plan.steps == 40));
        // With one step more it would not be planned, but for the least.
        CHECK(plan.planned_seconds > 0.8 * 60 * minutes);
        CHECK(plan.trials.size() == (minutes < 15 ? 12 : 24));
        const auto again = reproduce::plan_from_json(lazy(), reproduce::to_json(plan), "plan.json");
        CHECK(reproduce::to_json(again) == reproduce::to_json(plan));
        REQUIRE(plan.trial_seconds.size() == plan.trials.size());
        CHECK(plan.trial_seconds[1] == Approx(8 + 0.05 * static_cast<double>(plan.steps)));
        CHECK(plan.word("length@1,2,4") == "256,512,1024");
    }
    const std::string text = reproduce::to_json(plan_for(40));
    const auto refused = [&](const std::string& what, const std::string& with) {
        INFO(with);
        std::string other = text;
        REQUIRE(other.find(what) != std::string::npos);
        other.replace(other.find(what), what.size(), with);
        CHECK_THROWS_AS(reproduce::plan_from_json(lazy(), other, "plan.json"), Error);
    };
    refused("\"paper\": \"lazy\"", "\"paper\": \"natsl\"");
    refused("\"no-bias\"", "\"../outside\"");
    refused("\"no-bias\"", "\"softmax\"");
    refused("\"planned\": 24", "\"planned\": 25");
    refused("\"nano\"", "\"lazy-340m\"");
}

TEST_CASE("Few minutes drop baselines first, then Mask@k, and never what the claims compare", "[reproduce][lazy]") {
    const auto order = names_of(plan_for(240));
    CHECK(std::vector<std::string>(order.begin(), order.begin() + 3) ==
          std::vector<std::string>{"lazy", "transformer", "no-bias"});
    CHECK(std::vector<std::string>(order.begin() + 10, order.end()) ==
          std::vector<std::string>{"lazy-seed2", "transformer-seed2", "no-bias-seed2", "softmax-seed2",
                                   "from-zero-seed2", "lazy-seed3", "transformer-seed3", "softmax-seed3", "mask-2",
                                   "mask-16", "retnet", "gdn", "ttt", "titans"});
    CHECK(plan_for(240).planned == 24);
    std::int64_t before = 24;
    for (const double step_seconds : {0.1, 0.15, 0.2, 0.3, 1.0}) {
        const auto plan = plan_for(40, step_seconds);
        INFO(step_seconds << ": " << plan.planned << " of " << plan.tokens());
        CHECK(plan.planned <= before);
        CHECK((plan.planned == 10 || plan.tokens() >= 2'000'000));
        before = plan.planned;
    }
    CHECK(before == 10);
    const auto few = names_of(plan_for(6));
    CHECK(std::count(few.begin(), few.end(), "retnet") == 0);
    CHECK(std::count(few.begin(), few.end(), "mask-16") == 1);
    // One slow baseline at the end is one worker's: the plan knows.
    auto slow = calibration(0.05);
    slow.step_seconds["titans"] = 5;
    const auto plan = reproduce::make_plan(lazy(), settings_of(240), slow);
    CHECK(plan.planned_seconds <= 60 * 240);
    CHECK(reproduce::choose_size(lazy(), settings_of(240), 1e-7) == "tiny");
    CHECK(reproduce::choose_size(lazy(), settings_of(240), 1e-2) == "nano");
}

TEST_CASE("Lazy Attention's jobs train on equal tokens, each with what its row says", "[reproduce][lazy]") {
    auto plan = plan_for(40);
    plan.mask_id = 189;
    for (const auto& model : lazy().models) {
        INFO(model.name);
        const auto job = job_of(plan, model.name.c_str());
        const auto read = training::read_job(training::job_text(job), "job");
        CHECK(training::job_text(read) == training::job_text(job));
        CHECK(read.name == model.label);
        CHECK(read.training.steps == plan.steps);
        CHECK(read.data.sequence_length == lazy().sequence_length);
        CHECK(read.data.fixed_token.has_value() == (model.mask >= 0));
        if (model.mask >= 0) {
            CHECK(read.data.fixed_token->position == model.mask);
            CHECK(read.data.fixed_token->id == 189);
        }
    }
    const auto options = [&](const char* name) { return job_of(plan, name).model.mixers; };
    CHECK(options("no-bias")["lazy"]["distance_bias"] == false);
    CHECK(options("constant")["lazy"] == nlohmann::json{{"offset", "constant"}, {"offset_init", 0.0}});
    CHECK(options("from-zero")["lazy"] == nlohmann::json{{"offset_init", 0.0}});
    CHECK(job_of(plan, "sigmoid").model.mixer == "sigmoid");
    CHECK(job_of(plan, "lazy").model.preset == "nano-lazy");
}

TEST_CASE("Lazy Attention's claims hold for the paper's own numbers", "[reproduce][lazy]") {
    const auto plan = plan_for(40);
    REQUIRE(reproduce::learned(plan, {}));
    const auto claims = reproduce::judge(plan, as_the_paper_says());
    CHECK(claims.size() == 15);
    for (const auto& claim : claims) {
        INFO(claim.title << ": " << claim.found);
        CHECK(claim.verdict == Verdict::held);
    }
    for (const auto& claim : reproduce::judge(plan, {})) {
        INFO(claim.title);
        CHECK(claim.verdict == Verdict::not_measured);
        CHECK(claim.found.empty());
    }
    // Too few tokens: no verdict on measured values.
    auto few = plan;
    few.steps = 40;
    for (const auto& claim : reproduce::judge(few, as_the_paper_says())) {
        CHECK(claim.verdict == Verdict::undecided);
        CHECK(claim.longer.find(" tokens a run instead of ") != std::string::npos);
        CHECK(claim.longer.find("--minutes ") != std::string::npos);
    }
}

TEST_CASE("Each of Lazy Attention's claims fails for its contrary", "[reproduce][lazy]") {
    const auto plan = plan_for(40);
    const auto verdict = [&](const Measured& measured, const std::string& words) {
        const auto claims = reproduce::judge(plan, measured);
        const auto* claim = test::claim_of(claims, words);
        INFO(words);
        REQUIRE(claim != nullptr);
        return claim->verdict;
    };
    auto m = as_the_paper_says();
    const auto set = [&](const char* model, const char* name, double value) { m.set(model, name, value); };
    set("lazy", "sink", 0.009);
    CHECK(verdict(m, "Lazy Attention has no attention sink") == Verdict::held);
    set("lazy", "sink", 0.011);  // a third of softmax's all the same
    CHECK(verdict(m, "Lazy Attention has no attention sink") == Verdict::partly);
    set("lazy", "sink", 0.05);
    CHECK(verdict(m, "Lazy Attention has no attention sink") == Verdict::failed);
    CHECK(verdict(m, "An offset that begins at 0") == Verdict::failed);
    set("lazy", "sparsity", 0.49);
    CHECK(verdict(m, "More than half") == Verdict::partly);  // zeros are 70 %
    set("lazy", "zero_fraction", 0.5);
    CHECK(verdict(m, "More than half") == Verdict::failed);
    set("constant", "loss@1", 2.645);
    CHECK(verdict(m, "An offset divided") == Verdict::partly);
    set("constant", "loss@1", 2.6);
    CHECK(verdict(m, "An offset divided") == Verdict::failed);
    set("fixed", "loss@1", 2.6);
    CHECK(verdict(m, "A learned offset") == Verdict::failed);
    set("softmax", "loss@1", 2.5);
    CHECK(verdict(m, "Elastic-Softmax costs") == Verdict::failed);
    m.matrices[{"lazy", "biases"}] = {{falling(-1), falling(1), falling(1)}};
    CHECK(verdict(m, "The first layer's biases") == Verdict::failed);
    CHECK(verdict(m, "Upper layers") == Verdict::failed);
    m.matrices[{"lazy", "biases"}] = {{falling(1), falling(1), falling(0.6)}};
    CHECK(verdict(m, "The first layer's biases") == Verdict::held);
    CHECK(verdict(m, "Upper layers") == Verdict::failed);
    m.matrices[{"lazy", "offsets"}].front()[2] = {-3, -4};
    CHECK(verdict(m, "The first layer filters") == Verdict::failed);
    set("lazy", "perplexity@2", 3 * m.value("lazy", "perplexity@1"));
    CHECK(verdict(m, "Beyond its training length") == Verdict::partly);
    set("lazy", "perplexity@4", 9 * m.value("lazy", "perplexity@1"));
    CHECK(verdict(m, "Beyond its training length") == Verdict::failed);
    CHECK(verdict(m, "Without its biases") == Verdict::failed);
    set("transformer", "perplexity@1", 25);
    CHECK(verdict(m, "Lazy Attention's perplexity") == Verdict::failed);
    set("sigmoid", "perplexity@1", 24);
    CHECK(verdict(m, "Sigmoid attention") == Verdict::failed);
    set("titans", "perplexity@1", 20);
    CHECK(verdict(m, "Lazy Attention keeps up") == Verdict::partly);
    on_key(m, "mask-2")[2] = 0.01;
    CHECK(verdict(m, "A fixed token") == Verdict::partly);
    on_key(m, "mask-16")[16] = 0.4;
    CHECK(verdict(m, "A fixed token") == Verdict::failed);
    on_key(m, "transformer")[0] = 0.02;  // no sink that could move: even weights give 2.4 %
    CHECK(verdict(m, "A fixed token") == Verdict::undecided);
}

TEST_CASE("Claims about what was left out are not measured, others are", "[reproduce][lazy]") {
    const auto plan = plan_for(40);
    auto m = as_the_paper_says();
    for (const char* name : {"mask-2", "mask-16", "constant", "retnet", "gdn", "ttt", "titans", "sigmoid"}) {
        std::erase_if(m.values, [&](const auto& one) { return one.first.first == name; });
        std::erase_if(m.matrices, [&](const auto& one) { return one.first.first == name; });
    }
    const auto claims = reproduce::judge(plan, m);
    for (const char* words : {"A fixed token", "An offset divided", "Lazy Attention keeps up", "Sigmoid attention"})
        CHECK(test::claim_of(claims, words)->verdict == Verdict::not_measured);
    CHECK(std::count_if(claims.begin(), claims.end(),
                        [](const auto& claim) { return claim.verdict == Verdict::held; }) == 11);
}

TEST_CASE("A bias' decay is its correlation with distance and how far it falls", "[reproduce][lazy]") {
    const auto line = reproduce::decay_of(falling(2));
    CHECK(line.correlation == Approx(-1));
    // Means of a line: at distance 7.5 and at 95.5.
    CHECK(line.drop == Approx(2 * 88.0 / 128));
    const auto flat = reproduce::decay_of(std::vector<double>(64, 0.25));
    CHECK(flat.correlation == 0);
    CHECK(flat.drop == 0);
    std::vector<double> returning(64, 0.0);  // inhibition of return: below 0 nearby, 0 far away
    for (std::size_t d = 1; d < 8; ++d) returning[d] = -1;
    const auto back = reproduce::decay_of(returning);
    CHECK(back.correlation > 0);
    CHECK(back.drop == Approx(-7.0 / 8));
    CHECK(std::isnan(reproduce::decay_of({1, 2, 3}).drop));
}

TEST_CASE("What a model attends to is read of its analysis' longest sequences", "[reproduce][lazy]") {
    const test::TemporaryFolder folder;
    const auto path = folder / "lazy.headscope.h5";
    tests::LazySample sample;
    tests::write_lazy_analysis(path, sample);
    Measured measured;
    const auto read = reproduce::kLazy.read_analysis;
    read(path, "lazy", "", measured);
    const auto& zero_fractions = measured.matrix("lazy", "zero_fraction")->front();
    const auto& offsets = *measured.matrix("lazy", "offsets");
    const auto& biases = *measured.matrix("lazy", "biases");
    const auto file = store::AnalysisFile::open(path);
    const auto layers = static_cast<std::size_t>(sample.analysis.layers);
    const auto heads = static_cast<std::size_t>(sample.analysis.heads);
    double sink = 0;  // sequence 0 is the longer one
    const auto stored = file->indicator("sink");
    for (std::size_t i = 0; i < layers * heads; ++i) sink += stored.data[i] / static_cast<double>(layers * heads);
    CHECK(measured.value("lazy", "sink") == Approx(sink));
    CHECK(measured.value("lazy", "sparsity") == Approx((1 - sink) / 2));
    CHECK(measured.value("lazy", "density") == Approx((1 - sink) / 2));
    REQUIRE(zero_fractions.size() == layers);
    REQUIRE(offsets.size() == layers);
    REQUIRE(biases.size() == layers);
    CHECK(measured.matrix("lazy", "on key")->front().size() == 24);
    for (std::size_t layer = 0; layer < layers; ++layer) {
        INFO(layer);
        double zeros = 0, bias = 0;
        for (std::size_t h = 0; h < heads; ++h) {
            const auto l = static_cast<std::int64_t>(layer), head = static_cast<std::int64_t>(h);
            zeros +=
                (0.5 + 0.125 * static_cast<double>(h) / static_cast<double>(layer + 1)) / static_cast<double>(heads);
            bias += tests::lazy_bias(l, head, 5) / static_cast<double>(heads);
            CHECK(offsets[layer][h] == Approx(tests::lazy_offset(l, head)));
        }
        CHECK(zero_fractions[layer] == Approx(zeros));
        REQUIRE(biases[layer].size() == 64);
        CHECK(biases[layer][5] == Approx(bias));
    }
    const auto other = folder / "softmax.headscope.h5";
    tests::LazySample softmax;
    softmax.window = 0;
    softmax.offsets = false;
    tests::write_lazy_analysis(other, softmax);
    read(other, "softmax", "", measured);
    CHECK(measured.matrix("softmax", "offsets") == nullptr);
    CHECK(measured.matrix("softmax", "biases") == nullptr);
    CHECK(measured.value("softmax", "sink") + measured.value("softmax", "density") == Approx(1));
}

TEST_CASE("Lazy Attention's report has our numbers beside the paper's", "[reproduce][lazy]") {
    auto plan = plan_for(40);
    auto input = test::report_input(plan, as_the_paper_says(), "bias");
    const std::string report = reproduce::report_markdown(input);
    for (const char* words :
         {"15 of 15 held", "1 min 1 s", "figures/bias.png", "Failed: x.", "| Lazy, no bias |", "## Mask@k",
          "| softmax | 2.620 | 2.620 | 94.53 | 94.53 | 5.460 | 5.460 |", "| 59.58 | 59.58 | 70.00 |"}) {
        INFO(words);
        CHECK(report.find(words) != std::string::npos);
    }
    CHECK(report.find("Not tried") == std::string::npos);
    // Nothing measured and few minutes: tables say so, and nothing is made up.
    input.plan = plan_for(6);
    input.measured = {};
    const std::string empty = reproduce::report_markdown(input);
    CHECK(empty.find("Not tried in so few minutes: RetNet, Gated DeltaNet, TTT, Titans.") != std::string::npos);
    CHECK(empty.find("| entmax | – | – | – |") != std::string::npos);
    CHECK(empty.find("## Mask@k") == std::string::npos);
}
