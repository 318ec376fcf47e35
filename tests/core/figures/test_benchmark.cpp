// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of benchmarks from made-up evaluations of tuned models.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>

#include "core/cost/thesis.h"
#include "core/figures/benchmark/benchmark_sets.h"
#include "core/figures/make_figure.h"
#include "core/store/evaluation/evaluation_file.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using namespace headscope::figures;

namespace {

/// A tuned model on one task.
store::Evaluation tuned(const std::string& variant, const char* mixer, const BenchmarkTask& task, std::int64_t seed,
                        double value) {
    store::Evaluation one;
    store::EvaluatedModel model;
    model.name = variant + "-" + std::string(task.name) + "-" + std::to_string(seed);
    model.sha256 = model.name;
    model.mixer = mixer;
    model.layout = "uniform";
    model.seed = seed;
    model.job = variant + std::string(task.name);
    model.variant = variant;
    model.benchmark_task = task.name;
    model.attention_parameters = std::llround(cost::variant_parameters(cost::head_variant(mixer), 12, 64, 12, true));
    one.models.push_back(model);
    one.results.push_back({0, "classify", "loss", 128, 0.5});
    one.results.push_back({0, "classify", std::string(task.metric), 128, value});
    return one;
}

class Runs {
public:
    void add(store::Evaluation one) { inputs.evaluations.push_back(std::make_shared<const store::Evaluation>(one)); }
    /// All tasks of GLUE around `average`, with two seeds that differ by 2 %.
    void add_glue(const std::string& variant, const char* mixer, double average, const std::string& but = "") {
        double offset = -0.035;
        for (const BenchmarkTask& task : benchmark_set("glue").tasks) {
            for (const std::int64_t seed : {1, 2})
                if (but != task.name || seed == 1)
                    add(tuned(variant, mixer, task, seed, average + offset + (seed == 1 ? -0.01 : 0.01)));
            offset += 0.01;
        }
    }
    FigureInputs inputs;
};

FigureOptions options_of(const std::string& set, const std::string& baseline, const std::string& smallest = "") {
    FigureOptions options;
    options.set = set;
    options.baseline = baseline;
    options.smallest = smallest;
    return options;
}

struct Row {
    std::string metric;
    double mean = 0, deviation = 0, prr = 0, peop = 0;
    std::int64_t seeds = 0;
};

std::map<std::pair<std::string, std::string>, Row> rows_of(const FigureData& figure) {
    const Table table = figure.table();
    const auto text = [&](std::size_t c) { return std::get<std::vector<std::string>>(table.columns[c].values); };
    const auto number = [&](std::size_t c) { return std::get<std::vector<double>>(table.columns[c].values); };
    const auto seeds = std::get<std::vector<std::int64_t>>(table.columns[5].values);
    std::map<std::pair<std::string, std::string>, Row> rows;
    for (std::size_t r = 0; r < table.rows(); ++r)
        rows[{text(0)[r], text(1)[r]}] = {text(2)[r], number(3)[r], number(4)[r], number(6)[r], number(7)[r], seeds[r]};
    return rows;
}

Runs chapter_three() {
    Runs runs;
    runs.add_glue("SHA", "sha", 0.792);
    runs.add_glue("MHA", "standard", 0.819);
    runs.add_glue("MHE-MUL", "mhe_mul", 0.806);
    return runs;
}

}  // namespace

TEST_CASE("Tuned runs give the averages, PRR and PEoP of Table 3.1", "[figures][benchmark]") {
    const Runs runs = chapter_three();
    const auto figure = make_figure("benchmark", runs.inputs, options_of("glue", "MHA", "SHA"));
    CHECK(figure.panels.size() == 9);
    auto rows = rows_of(figure);
    CHECK(rows.size() == 27);
    const Row& average = rows[{"MHE-MUL", "average"}];
    CHECK(average.mean == Approx(0.806));
    CHECK(average.deviation == Approx(0.02 / std::sqrt(2)));
    CHECK(average.seeds == 2);
    CHECK(100 * average.prr == Approx(98.41).margin(0.01));  // 80.6 / 81.9
    CHECK(average.peop == Approx(5.53).margin(0.41));        // the printed scores have a digit each
    CHECK(rows[{"MHA", "average"}].prr == Approx(1));
    CHECK(std::isnan(rows[{"SHA", "average"}].peop));
    const Row& cola = rows[{"SHA", "cola"}];
    CHECK(cola.metric == "matthews");
    CHECK(cola.mean == Approx(0.757));
    CHECK(cola.prr == Approx(0.757 / 0.784));
    CHECK(rows[{"SHA", "stsb"}].metric == "spearman");
    CHECK(rows[{"SHA", "qqp"}].metric == "f1");
    CHECK(figure_csv(figure).starts_with("variant,task,metric,mean,sd,seeds,prr,peop\r\nSHA,cola,matthews,"));
    // Without --smallest there is no elasticity.
    CHECK(
        std::isnan(rows_of(make_figure("benchmark", runs.inputs, options_of("glue", "MHA")))[{"MHA", "average"}].peop));
}

TEST_CASE("A seed that lacks a task is left out of the average", "[figures][benchmark]") {
    Runs runs = chapter_three();
    runs.add_glue("half", "mhe_add", 0.7, "rte");
    runs.add(tuned("few", "mhe_add", {"cola", "matthews"}, 1, 0.5));
    auto rows = rows_of(make_figure("benchmark", runs.inputs, options_of("glue", "MHA")));
    CHECK(rows[{"half", "rte"}].seeds == 1);
    CHECK(std::isnan(rows[{"half", "rte"}].deviation));
    CHECK(rows[{"half", "average"}].seeds == 1);
    CHECK(rows[{"half", "average"}].mean == Approx(0.69));
    CHECK(rows[{"few", "cola"}].mean == 0.5);
    CHECK(rows[{"few", "average"}].seeds == 0);
    CHECK(std::isnan(rows[{"few", "average"}].mean));
    CHECK(std::isnan(rows[{"few", "average"}].prr));
}

TEST_CASE("LaTeX has per cents with deviations in brackets, the best two marked", "[figures][benchmark]") {
    const auto figure = make_figure("benchmark", chapter_three().inputs, options_of("glue", "MHA", "SHA"));
    REQUIRE(figure.latex);
    const std::string text = figure.latex();
    const auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
    CHECK(text.starts_with("\\begin{tabular}{lrrrrrrrrr}\n\\toprule\nvariant & cola & sst2 & "));
    CHECK(has(" & \\textbf{81.9} (1.4) \\\\\n"));
    CHECK(has(" & \\underline{80.6} (1.4) \\\\\n"));
    CHECK(has(" & 79.2 (1.4) \\\\\n"));
    CHECK(has("PRR (\\%)"));
    CHECK(has(" & 98.41 \\\\\n"));
    CHECK(has("PEoP"));
    CHECK(text.ends_with("\\bottomrule\n\\end{tabular}\n"));
}

TEST_CASE("Results count by their job's task, else by their name", "[figures][benchmark]") {
    Runs runs;
    store::Evaluation named = tuned("A", "standard", {"rte", "accuracy"}, 1, 0.6);
    named.models[0].benchmark_task.clear();
    named.models[0].variant.clear();
    named.models[0].layout = "even";
    named.models[0].mixer = "mlp";
    for (auto& result : named.results) result.task = "rte";
    runs.add(named);
    // Files of the matched and the mismatched part: the matched one is MNLI.
    store::Evaluation mnli = tuned("A", "standard", {"mnli", "accuracy"}, 1, 0.7);
    mnli.results[1].task = "mnli_matched";
    mnli.results.push_back(mnli.results[1]);
    mnli.results.back().task = "mnli_mismatched";
    mnli.results.back().value = 0.9;
    runs.add(mnli);
    auto rows = rows_of(make_figure("benchmark", runs.inputs, options_of("glue", "A")));
    CHECK(rows[{"mlp even", "rte"}].mean == 0.6);
    CHECK(rows[{"A", "mnli"}].mean == 0.7);
    // The same model twice is one; another one of its seed is refused.
    runs.add(mnli);
    CHECK(rows_of(make_figure("benchmark", runs.inputs, options_of("glue", "A")))[{"A", "mnli"}].seeds == 1);
    mnli.models[0].sha256 = "other";
    runs.add(mnli);
    CHECK_THROWS_MATCHES(make_figure("benchmark", runs.inputs, options_of("glue", "A")), Error,
                         test::IsError(ErrorCode::usage, "expected one result of seed 1"));
}

TEST_CASE("A tested variant has p over seeds", "[figures][benchmark]") {
    FigureOptions options = options_of("glue", "MHA");
    options.significance = "MHE-MUL";
    const auto figure = make_figure("benchmark", chapter_three().inputs, options);
    const Table table = figure.table();
    CHECK(table.columns.back().name == "p");
    const auto p = std::get<std::vector<double>>(table.columns.back().values);
    // scipy.stats.ttest_ind([0.796, 0.816], [0.809, 0.829], equal_var=False): t = -0.9192 at 2 degrees of freedom
    CHECK(p[26] == Approx(0.45501).margin(1e-5));
    CHECK(std::isnan(p[0]));
}

TEST_CASE("Benchmarks need a set, a baseline and results", "[figures][benchmark]") {
    const auto inputs = chapter_three().inputs;
    CHECK_THROWS_MATCHES(make_figure("benchmark", inputs, {}), Error, test::IsError(ErrorCode::usage, "superglue"));
    CHECK_THROWS_MATCHES(make_figure("benchmark", inputs, options_of("glue", "")), Error,
                         test::IsError(ErrorCode::usage, "--baseline"));
    CHECK_THROWS_MATCHES(make_figure("benchmark", inputs, options_of("glue", "MHA", "tiny")), Error,
                         test::IsError(ErrorCode::usage, "MHE-MUL"));
    CHECK_THROWS_MATCHES(make_figure("benchmark", inputs, options_of("squad", "MHA")), Error,
                         test::IsError(ErrorCode::usage, "squad by f1"));
    CHECK(benchmark_set("all").tasks.size() == 16);  // RTE once
}
