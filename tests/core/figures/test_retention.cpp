// SPDX-License-Identifier: GPL-3.0-or-later
// The thesis's tables of what smaller models keep, from made-up evaluations with its printed scores.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "core/cost/cost_table.h"
#include "core/cost/thesis.h"
#include "core/figures/make_figure.h"
#include "core/figures/recipe.h"
#include "core/store/evaluation/evaluation_file.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/figures/evaluation/evaluation_inputs.h"

using namespace headscope;
using namespace headscope::figures;
using test::inputs_of;

namespace {

FigureOptions beside(const std::string& baseline, const std::string& smallest = "") {
    FigureOptions options;
    options.baseline = baseline;
    options.smallest = smallest;
    return options;
}

std::int64_t add_model(store::Evaluation& all, const std::string& name, const std::string& mixer) {
    store::EvaluatedModel model;
    model.name = name;
    model.sha256 = name;
    model.mixer = mixer;
    model.layout = "uniform";
    model.layers = 12;
    all.models.push_back(model);
    return std::ssize(all.models) - 1;
}

/// Tables 3.1 and 3.2: average accuracy on GLUE, perplexity on WikiText-103, the attention's weights.
store::Evaluation chapter_three() {
    store::Evaluation all;
    const auto add = [&](const char* name, const char* mixer, double accuracy, double perplexity) {
        const std::int64_t model = add_model(all, name, mixer);
        auto& own = all.models.back();
        const std::string variant = mixer;
        own.attention_parameters =
            variant == "fnet" ? 0
                              : std::llround(cost::variant_parameters(cost::head_variant(variant), 12, 64, 12, true));
        own.parameters = 80'000'000 + own.attention_parameters;
        all.results.push_back({model, "glue", "accuracy", 512, accuracy});
        all.results.push_back({model, "wikitext", "token_perplexity", 512, perplexity});
    };
    add("sha", "sha", 79.2, 62.0);
    add("mha", "standard", 81.9, 43.0);
    add("mhe-mul", "mhe_mul", 80.6, 53.8);
    add("fnet", "fnet", 75.2, 128.0);
    return all;
}

struct Found {
    double prr = 0, peop = 0, pcr_all = 0, pcr_emb = 0, poep = 0;
};

/// Rows of the CSV by model and metric.
std::map<std::pair<std::string, std::string>, Found> found(const FigureData& figure) {
    const Table table = figure.table();
    const auto text = [&](std::size_t c) { return std::get<std::vector<std::string>>(table.columns[c].values); };
    const auto number = [&](std::size_t c) { return std::get<std::vector<double>>(table.columns[c].values); };
    std::map<std::pair<std::string, std::string>, Found> rows;
    for (std::size_t r = 0; r < table.rows(); ++r)
        rows[{text(0)[r], text(2)[r]}] = {number(4)[r], number(5)[r], number(6)[r], number(7)[r], number(8)[r]};
    return rows;
}

}  // namespace

TEST_CASE("Retention and elasticity are those of Tables 3.1 and 3.2", "[figures][retention]") {
    const auto figure = make_figure("retention", inputs_of(chapter_three()), beside("mha", "sha"));
    CHECK(figure.panels.size() == 2);
    auto rows = found(figure);
    CHECK(rows.size() == 8);
    CHECK(100 * rows[{"mhe-mul", "accuracy"}].prr == Approx(98.3).margin(0.15));  // the scores have a digit each
    CHECK(rows[{"mhe-mul", "accuracy"}].peop == Approx(5.53).margin(0.41));
    CHECK(rows[{"mha", "accuracy"}].peop == Approx(0.02).margin(0.005));
    CHECK(100 * rows[{"sha", "token_perplexity"}].prr == Approx(55.8).margin(0.05));
    CHECK(100 * rows[{"mhe-mul", "token_perplexity"}].prr == Approx(74.9).margin(0.15));
    // From exact counts: millions with two digits would give 39.0.
    CHECK(rows[{"mhe-mul", "token_perplexity"}].peop == Approx(42.32).margin(0.005));
    CHECK(std::isnan(rows[{"sha", "accuracy"}].peop));
    CHECK(std::isnan(rows[{"fnet", "accuracy"}].peop));
    CHECK(std::isnan(rows[{"mha", "accuracy"}].pcr_emb));
    CHECK(rows[{"mha", "accuracy"}].prr == 1);
    REQUIRE(figure.text_table);
    // Nothing is known of embeddings: their columns are left out.
    CHECK(figure.text_table->header ==
          std::vector<std::string>{"task", "model", "result", "PRR %", "PEoP", "attention", "parameters", "PCR %"});
    CHECK(figure.text_table->rows.size() == 8);
    // Without the smallest there is no elasticity.
    CHECK(std::isnan(
        found(make_figure("retention", inputs_of(chapter_three()), beside("mha")))[{"mha", "accuracy"}].peop));
}

TEST_CASE("Compression is that of Table 2.2, as shares, and what cannot be had is empty", "[figures][retention]") {
    store::Evaluation all;
    const auto add = [&](const char* name, std::int64_t parameters, std::int64_t embedding, double score) {
        const std::int64_t model = add_model(all, name, "standard");
        all.models.back().parameters = parameters;
        all.models.back().embedding_parameters = embedding;
        all.results.push_back({model, "cola", "matthews", 0, score});
    };
    add("bert", 124645634, 38603520, 0.5);
    add("pool", 86843138, 797184, 0.25);
    add("unknown", 1000, -1, 1);
    auto rows = found(make_figure("retention", inputs_of(all), beside("bert")));
    CHECK(100 * rows[{"pool", "matthews"}].pcr_all == Approx(30.3).margin(0.05));
    CHECK(100 * rows[{"pool", "matthews"}].pcr_emb == Approx(97.9).margin(0.05));
    CHECK(100 * rows[{"pool", "matthews"}].poep == Approx(0.92).margin(0.005));
    CHECK(100 * rows[{"bert", "matthews"}].poep == Approx(31.0).margin(0.05));
    const std::string csv = figure_csv(make_figure("retention", inputs_of(all), beside("bert")));
    CHECK(csv.starts_with("model,task,metric,score,prr,peop,pcr_all,pcr_emb,poep,text,subset\r\n"));
    CHECK(csv.find("\r\nunknown,cola,matthews,1,2,," + csv_number(1 - 1000 / 124645634.0) + ",,,,\r\n") !=
          std::string::npos);
    CHECK(csv.find("\r\nbert,cola,matthews,0.5,1,,0,0,") != std::string::npos);
}

TEST_CASE("Seeds are means with their deviation, lengths are apart, times become rates", "[figures][retention]") {
    store::Evaluation all;
    for (const std::int64_t seed : {1, 2}) {
        for (const char* mixer : {"standard", "mhe_add"}) {
            const bool base = std::string(mixer) == "standard";
            const std::int64_t model = add_model(all, std::string(mixer) + std::to_string(seed), mixer);
            all.models.back().seed = seed;
            all.models.back().parameters = base ? 2000 : 1000;
            for (const std::int64_t length : {64, 128})
                all.results.push_back(
                    {model, "cola", "accuracy", length, (base ? 0.8 : 0.4) + (seed == 1 ? 0.0 : 0.1)});
            all.results.push_back({model, "speed", "step_ms", 64, base ? 6.0 : 2.0});
        }
    }
    const auto figure = make_figure("retention", inputs_of(all), beside("standard1"));
    const std::string csv = figure_csv(figure);
    const auto has = [&](const std::string& line) { return csv.find(line + "\r\n") != std::string::npos; };
    CHECK(figure.table().rows() == 8);  // two models: two lengths, times and rates
    CHECK(has("mhe_add1,speed,step_ms,2,,,0.5,,,,"));
    CHECK(has("mhe_add1,speed,speed_up_step,3,,,0.5,,,,"));
    REQUIRE(figure.text_table);
    CHECK(figure.text_table->rows.size() == 6);  // the longer length alone
    CHECK(figure.text_table->rows[1][2] == "0.45 ± 0.071");
    CHECK(figure.text_table->rows[1][3] == "52.9");
    CHECK(figure.panels.size() == 2);            // accuracy and the rate
    FigureOptions options = beside("Standard");  // a label is a name, too
    options.task = "cola";
    options.length = 64;
    CHECK(make_figure("retention", inputs_of(all), options).table().rows() == 2);
}

TEST_CASE("Retention wants a baseline that there is", "[figures][retention]") {
    const auto inputs = inputs_of(chapter_three());
    CHECK_THROWS_MATCHES(make_figure("retention", inputs, {}), Error, test::IsError(ErrorCode::usage, "found none"));
    CHECK_THROWS_MATCHES(make_figure("retention", inputs, beside("gpt")), Error,
                         test::IsError(ErrorCode::usage, "MHE-MUL uniform"));
    CHECK_THROWS_MATCHES(make_figure("retention", inputs, beside("mha", "tiny")), Error,
                         test::IsError(ErrorCode::usage, "--smallest"));
    auto other = chapter_three();
    other.results.erase(other.results.begin() + 2, other.results.begin() + 4);  // mha's
    add_model(other, "nothing", "standard");
    other.results.push_back({std::ssize(other.models) - 1, "squad", "f1", 1, 0.5});
    FigureOptions options = beside("nothing");
    options.task = "glue";
    CHECK_THROWS_MATCHES(make_figure("retention", inputs_of(other), options), Error,
                         test::IsError(ErrorCode::usage, "to compare others with"));
}

TEST_CASE("Scaling shows the share that models keep of the Standard one of their size", "[figures][scaling]") {
    // Table 3.15: BLEU of base and 16h, which have the same weights with MHA.
    store::Evaluation all;
    const auto add = [&](const std::string& name, const char* mixer, std::int64_t heads, double bleu) {
        const std::int64_t model = add_model(all, name, mixer);
        auto& own = all.models.back();
        own.attention_parameters =
            std::llround(cost::variant_parameters(cost::head_variant(mixer), heads, 512 / heads, 18, true));
        own.parameters = 44'000'000 + own.attention_parameters;
        all.results.push_back({model, "translation", "bleu", 100, bleu});
    };
    add("base-mha", "standard", 8, 24.8);
    add("16h-mha", "standard", 16, 25.0);
    add("base-mul", "mhe_mul", 8, 23.6);
    add("16h-mul", "mhe_mul", 16, 24.0);
    const auto figure = make_figure("scaling", inputs_of(all), {});
    REQUIRE(figure.text_table);
    CHECK(figure.text_table->header == std::vector<std::string>{"model", "attention", "translation, bleu ↑", "PRR %"});
    std::map<std::string, std::string> shares;
    for (const auto& row : figure.text_table->rows) shares[row[0]] = row[1] + " " + row[3];
    CHECK(shares == std::map<std::string, std::string>{{"base-mha", "18.9M 100.0"},
                                                       {"16h-mha", "18.9M 100.0"},
                                                       {"base-mul", "6.5M 95.2"},
                                                       {"16h-mul", "5.6M 96.0"}});
    for (auto& model : all.models) model.attention_parameters = -1;
    CHECK_FALSE(make_figure("scaling", inputs_of(all), {}).text_table);
}

TEST_CASE("The cost of variants of multi-head attention is Figures 3.1, 3.3 and 3.4", "[figures][cost]") {
    FigureInputs inputs;
    cost::CostSetting setting;
    setting.heads = 12;
    inputs.models.push_back(
        {"mine", 512, std::make_shared<const cost::CostTable>(cost::paper_table(setting, {128}, {"standard"}))});
    FigureOptions options;
    options.cost_of = CostOf::sublayer;
    const auto sublayer = make_figure("cost", inputs, options);
    REQUIRE(sublayer.panels.size() == 1);
    const std::string csv = figure_csv(sublayer);
    CHECK(csv.starts_with("mixer,heads,layers,parameters\r\nsha,1,1,12288\r\n"));
    CHECK(csv.find("standard,128,1,201326592\r\n") != std::string::npos);  // "more than 200M"
    CHECK(csv.find("mhe_mul,128,1,1597440\r\n") != std::string::npos);     // "1 %"
    REQUIRE(sublayer.panels[0].markers.size() == 1);
    CHECK(sublayer.panels[0].markers[0].position == 12);
    CHECK(sublayer.panels[0].markers[0].label == "mine");
    options.cost_of = CostOf::stacks;
    const auto stacks = make_figure("cost", inputs, options);
    CHECK(stacks.panels.size() == 2);
    CHECK(stacks.table().rows() == 7 * 2 * 3);
    CHECK(figure_csv(stacks).find("el_att,64,48,805306368\r\n") != std::string::npos);
    // One axis has the numbers of both.
    CHECK(stacks.panels[0].y.range == stacks.panels[1].y.range);
    CHECK(stacks.text_table->header.back() == "MHE-MUL");
    REQUIRE(stacks.text_table->rows.size() == 6);
    CHECK(stacks.text_table->rows.back().front() == "48 layers, 64 heads");
    CHECK(stacks.text_table->rows.back()[2] == "2.4G");
    CHECK(sublayer.text_table->rows.size() == 8);
}
