// SPDX-License-Identifier: GPL-3.0-or-later
// lm-eval's tasks x models: which metric is shown, ranks, averages, the table as text, and the figure of it.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "core/figures/evaluation_groups.h"
#include "core/figures/make_figure.h"
#include "core/figures/task_table.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/figures/evaluation/evaluation_inputs.h"
#include "tests/core/figures/evaluation/task_tables.h"
#include "tests/core/figures/sample_records.h"

using namespace headscope;
using namespace headscope::figures;
using test::inputs_of;
using test::IsError;
using test::table_of;
using test::task;

namespace {

std::vector<std::string> titles(const TaskTable& table) {
    std::vector<std::string> titles;
    for (const auto& task : table.tasks()) titles.push_back(task.title);
    return titles;
}

std::vector<Rank> ranks(const TaskResults& results) {
    std::vector<Rank> ranks;
    for (const auto& value : results.values) ranks.push_back(value ? value->rank : Rank::none);
    return ranks;
}

/// Results of one task, a model each.
store::Evaluation one_task(const std::string& metric, const std::vector<double>& values) {
    store::Evaluation all;
    for (const double value : values) {
        store::EvaluatedModel model;
        model.name = "m" + std::to_string(all.models.size());
        all.models.push_back(model);
        all.results.push_back({std::ssize(all.models) - 1, "piqa", metric, 2048, value, 0.01, 100});
    }
    return all;
}

constexpr Rank none = Rank::none, second = Rank::second, best = Rank::best;

}  // namespace

TEST_CASE("Of each task the metric is shown that the papers print, or the one asked for", "[figures][tasks]") {
    const auto sample = test::sample_task_evaluation();
    CHECK(titles(table_of(sample)) == std::vector<std::string>{"arc easy, acc", "hellaswag, acc norm", "boolq, acc",
                                                               "lambada openai, acc", "lambada openai, perplexity",
                                                               "wikitext, word perplexity", "fda, contains",
                                                               "piqa, acc, 5 shots"});
    FigureOptions options;
    options.metric = "acc_norm";  // boolq and lambada have none
    CHECK(titles(table_of(sample, options)) ==
          std::vector<std::string>{"arc easy, acc norm", "hellaswag, acc norm", "boolq, acc", "lambada openai, acc",
                                   "lambada openai, perplexity", "wikitext, word perplexity", "fda, contains",
                                   "piqa, acc, 5 shots"});
    options.metric = "acc";
    CHECK(titles(table_of(sample, options))[1] == "hellaswag, acc");
    options.metric = "bits_per_byte";
    CHECK(titles(table_of(sample, options)) == std::vector<std::string>{"wikitext, bits per byte"});
    options.metric = "chance";  // is no result of a model
    CHECK_THROWS_MATCHES(table_of(sample, options), Error,
                         IsError(ErrorCode::usage, "\"arc_easy acc\", \"arc_easy acc_norm\""));
    options.metric.clear();
    options.task = "hellaswag";
    CHECK(titles(table_of(sample, options)).size() == 1);
    options.task = "copa";
    CHECK_THROWS_MATCHES(table_of(sample, options), Error, IsError(ErrorCode::usage, "--task"));
    options.task.clear();
    options.length = 17;
    CHECK_THROWS_MATCHES(table_of(sample, options), Error, IsError(ErrorCode::usage, "--length"));
    CHECK_THROWS_MATCHES(table_of(test::sample_evaluation()), Error, IsError(ErrorCode::usage, "--task zero_shot"));
}

TEST_CASE("Best and second best are by the metric's direction, and equal ones share it", "[figures][tasks]") {
    const auto ranked = [](const std::string& metric, const std::vector<double>& values) {
        return ranks(table_of(one_task(metric, values)).tasks().at(0));
    };
    CHECK(ranked("acc", {0.3, 0.5, 0.4, 0.1}) == std::vector<Rank>{none, best, second, none});
    CHECK(ranked("perplexity", {0.3, 0.5, 0.4, 0.1}) == std::vector<Rank>{second, none, none, best});
    CHECK(ranked("acc", {0.5, 0.5, 0.4, 0.4}) == std::vector<Rank>{best, best, second, second});
    CHECK(ranked("acc", {0.5, 0.5}) == std::vector<Rank>{best, best});
    CHECK(ranked("acc", {0.5}) == std::vector<Rank>{none});
    CHECK(ranked("acc", {0.0, -0.0, -1}) == std::vector<Rank>{best, best, second});
    const auto table = table_of(test::sample_task_evaluation());
    CHECK(ranks(task(table, "boolq, acc")) == std::vector<Rank>{second, best, second});
    CHECK(ranks(task(table, "piqa, acc, 5 shots")) == std::vector<Rank>{best, second, none});
}

TEST_CASE("The average is of all accuracies, of models that have them all", "[figures][tasks]") {
    const auto table = table_of(test::sample_task_evaluation());
    CHECK(table.models() == std::vector<std::string>{"Standard", "MLP uniform", "MLP even"});
    REQUIRE(table.average());
    CHECK(table.average()->title == "average of 5 accuracies");
    // By hand: arc_easy, hellaswag's acc_norm, boolq, lambada, piqa.
    CHECK(table.average()->values[0]->value == Approx((0.55 + 0.42 + 0.6 + 0.3 + 0.6) / 5));
    CHECK_FALSE(table.average()->values[2]);  // no piqa
    CHECK(ranks(*table.average()) == std::vector<Rank>{best, second, none});
    CHECK_FALSE(table.average()->baselines.chance);
    FigureOptions options;
    options.task = "boolq";
    CHECK_FALSE(table_of(test::sample_task_evaluation(), options).average());
    CHECK(task(table, "boolq, acc").baselines.majority == 0.62);
    CHECK_FALSE(task(table, "lambada openai, perplexity").baselines.chance);
}

TEST_CASE("Accuracies over chance are drawn where they are asked for, and are in no average", "[figures][tasks]") {
    auto all = one_task("acc", {0.55, 0.7});
    for (std::int64_t m = 0; m < 2; ++m)
        all.results.push_back({m, "piqa", "acc_chance", 2048, m == 0 ? 0.1 : 0.4, 0.02, 100});
    const auto usual = table_of(all);
    REQUIRE(usual.tasks().size() == 1);
    CHECK(usual.tasks()[0].what.metric == "acc");
    FigureOptions options;
    options.metric = "acc_chance";
    const auto adjusted = table_of(all, options);
    REQUIRE(adjusted.tasks().size() == 1);
    CHECK(adjusted.tasks()[0].share);
    CHECK(adjusted.tasks()[0].values[1]->value == 0.4);
    CHECK(adjusted.tasks()[0].values[1]->rank == best);
    CHECK_FALSE(adjusted.average());
}

TEST_CASE("Each model is shown at its own longest context, examples in the prompt apart", "[figures][tasks]") {
    auto all = one_task("acc", {0.3, 0.5});
    all.results[1].length = 1024;
    all.results.push_back({0, "piqa", "acc", 512, 0.9, 0.01, 100});
    all.results.push_back({0, "piqa", "acc", 2048, 0.4, 0.01, 100, 5});
    const auto table = table_of(all);
    REQUIRE(table.tasks().size() == 2);
    CHECK(table.tasks()[0].values[0]->value == 0.3);
    CHECK(table.tasks()[0].values[1]->length == 1024);
    CHECK(table.tasks()[1].title == "piqa, acc, 5 shots");
    CHECK(table.tasks()[1].values[0]->seeds == 1);
    FigureOptions options;
    options.length = 512;
    const auto shorter = table_of(all, options);
    REQUIRE(shorter.tasks().size() == 1);
    CHECK(shorter.tasks()[0].values[0]->value == 0.9);
    CHECK_FALSE(shorter.tasks()[0].values[1]);
}

TEST_CASE("Models of one kind whose seeds are not known stay apart, those of known seeds are one", "[figures][tasks]") {
    auto all = one_task("acc", {0.3, 0.5});
    CHECK(table_of(all).models() == std::vector<std::string>{"m0", "m1"});
    for (std::size_t i = 0; i < 2; ++i) all.models[i].sha256 = std::string(64, 'a');  // one in two folders
    CHECK(table_of(all).models().size() == 1);
    for (std::size_t i = 0; i < 2; ++i) {
        all.models[i].sha256 = std::string(64, static_cast<char>('a' + i));
        all.models[i].seed = static_cast<std::int64_t>(i);
    }
    const auto table = table_of(all);
    REQUIRE(table.models().size() == 1);
    CHECK(table.tasks()[0].values[0]->value == Approx(0.4));
    CHECK(table.tasks()[0].values[0]->seeds == 2);
}

TEST_CASE("As a table tasks are lines and so is the average; models are, with baselines behind them",
          "[figures][tasks]") {
    const auto table = table_of(test::sample_task_evaluation());
    const TaskGrid tasks(table, false);
    REQUIRE(tasks.columns().size() == 5);
    CHECK(tasks.columns()[3].text() == "chance");
    REQUIRE(tasks.lines().size() == 9);
    CHECK(tasks.lines()[0].heading.text() == "arc easy, acc ↑");
    CHECK(tasks.lines()[4].heading.text() == "lambada openai, perplexity ↓");
    CHECK(tasks.lines().back().kind == TaskGrid::Kind::average);
    CHECK(tasks.lines()[0].cells[0].text() == "55.0 ± 2.5");
    CHECK(tasks.lines()[0].cells[3].text() == "25.0");
    CHECK(tasks.lines()[4].cells[0].text() == "25.00 ± 1.50");
    CHECK(tasks.lines()[4].cells[1].text() == "160.0 ± 15.0");
    CHECK(tasks.lines()[7].cells[2].text() == "–");
    const TaskGrid models(table, true);
    REQUIRE(models.lines().size() == 5);
    CHECK(models.lines()[3].heading.name == "chance");
    CHECK(models.lines()[4].kind == TaskGrid::Kind::baseline);
    CHECK(models.columns().back().name == "average of 5 accuracies");
    for (const TaskGrid* grid : {&tasks, &models})
        for (const auto& line : grid->lines()) CHECK(line.cells.size() == grid->columns().size());
    // Numbers of any size are short.
    CHECK(TaskGrid(table_of(one_task("perplexity", {123456, 1e308})), true).lines()[0].cells[0].value_text ==
          "1.235e+05");
    CHECK(TaskGrid(table_of(one_task("perplexity", {123456, 1e308})), true).lines()[1].cells[0].value_text == "1e+308");
}

TEST_CASE("Lines are sorted by any column, missing values last, averages and baselines behind", "[figures][tasks]") {
    using Order = std::vector<std::size_t>;
    const auto table = table_of(test::sample_task_evaluation());
    const TaskGrid models(table, true);
    CHECK(models.order(-1, false) == Order{0, 1, 2, 3, 4});
    CHECK(models.order(1, false) == Order{1, 2, 0, 3, 4});
    CHECK(models.order(1, true) == Order{0, 2, 1, 3, 4});
    CHECK(models.order(3, true) == Order{1, 0, 2, 3, 4});  // equal ones as they were
    CHECK(models.order(8, false) == Order{1, 0, 2, 3, 4});
    CHECK(models.order(8, true) == Order{0, 1, 2, 3, 4});
    CHECK(models.order(0, false) == Order{2, 1, 0, 3, 4});
    CHECK(models.order(99, true) == Order{0, 1, 2, 3, 4});
    const TaskGrid tasks(table, false);
    CHECK(tasks.order(3, true).back() == 8);
    CHECK(tasks.order(3, true).at(7) == 7);  // piqa, which that model lacks
    CHECK(TaskGrid().order(0, true).empty());
}

TEST_CASE("The table is a tabular of booktabs", "[figures][tasks]") {
    auto all = one_task("acc", {0.634, 0.5});
    all.models[0].name = "50% & \\it_x{}^~#$";
    all.results.push_back({0, "piqa", "chance", 2048, 0.5, std::nan(""), 100});
    const TaskGrid grid(table_of(all), true);
    CHECK(grid.latex(grid.order(-1, false)) == R"(\begin{tabular}{lr}
\toprule
model, shares in \% & piqa, acc $\uparrow$ \\
\midrule
50\% \& \textbackslash{}it\_x\{\}\textasciicircum{}\textasciitilde{}\#\$ & \textbf{63.4} $\pm$ 1.0 \\
m1 & \underline{50.0} $\pm$ 1.0 \\
\midrule
chance & 50.0 \\
\bottomrule
\end{tabular}
)");
    const auto sorted = grid.latex(grid.order(1, false));
    CHECK(sorted.find("m1") < sorted.find("50\\%"));
    const TaskGrid sample(table_of(test::sample_task_evaluation()), false);
    CHECK(sample.latex(sample.order(-1, false)).find(" & -- & ") != std::string::npos);
}

TEST_CASE("The table as CSV has numbers in full, and errors where there are any", "[figures][tasks]") {
    auto all = one_task("acc", {0.634567891, 0.5});
    all.results.push_back({0, "piqa", "chance", 2048, 0.5, std::nan(""), 100});
    const TaskGrid grid(table_of(all), false);
    CHECK(grid.csv(grid.order(-1, false)) ==
          "task,m0,m0 error,m1,m1 error,chance\r\n\"piqa, acc\",0.634567891,0.01,0.5,0.01,0.5\r\n");
}

TEST_CASE("The figure tasks: a panel a task, a row a model, the best marked, baselines as lines", "[figures][tasks]") {
    const auto inputs = inputs_of(test::sample_task_evaluation());
    const auto figure = make_figure("tasks", inputs, {});
    CHECK(figure.recipe == "tasks");
    CHECK(figure.title == "Tasks");
    REQUIRE(figure.panels.size() == 9);
    CHECK(figure.panels[8].title == "average of 5 accuracies");
    const Panel& arc = figure.panels[0];
    CHECK(arc.title == "arc easy");
    CHECK(arc.x.label == "acc (%)");
    CHECK(figure.panels[5].x.label == "word perplexity");
    CHECK(figure.panels[7].title == "piqa, 5 shots");
    REQUIRE(arc.y.ticks.size() == 3);
    CHECK(arc.y.ticks[0].label == "Standard");
    const auto& drawn = std::get<Curves>(arc.content);
    REQUIRE(drawn.curves.size() == 3);
    CHECK(drawn.curves[0].x[0] == Approx(55));
    CHECK(drawn.curves[0].error[0] == Approx(2.49));
    CHECK(drawn.curves[0].error_of_x);
    CHECK(drawn.curves[0].dot > drawn.curves[1].dot);
    REQUIRE(drawn.labels.size() == 1);
    CHECK(drawn.labels[0].y == drawn.curves[0].y[0]);
    REQUIRE(arc.markers.size() == 2);
    CHECK(arc.markers[0].position == Approx(25.01));
    CHECK(arc.x.range->first < 25);
    CHECK(arc.x.range->second > 57);
    CHECK(figure.panels[7].markers.empty());
    CHECK(std::get<Curves>(figure.panels[7].content).curves.size() == 2);
    bool shots = false, lower = false;
    for (const auto& note : figure.notes) {
        shots = shots || note == "Examples in the prompt, 5: piqa.";
        lower = lower || note.starts_with("Lower is better: lambada openai, perplexity");
    }
    CHECK(shots);
    CHECK(lower);
    const std::string csv = figure_csv(figure);
    CHECK(csv.starts_with(
        "task,metric,shots,model,mixer,layout,skipped,parameters,length,value,error,seeds,rank,text,subset\r\n"
        "arc_easy,acc,0,Standard,standard,uniform,no,1000000,2048,0.55,0.0249,1,best,,\r\n"));
    CHECK(csv.find("\r\narc_easy,acc,0,majority,,,no,0,0,0.27,,1,,,\r\n") != std::string::npos);
    CHECK(csv.find("piqa,acc,5,") != std::string::npos);
    FigureOptions options;
    options.task = "boolq";
    CHECK(make_figure("tasks", inputs, options).title == "Zero-shot tasks");
    // Values that are no share of anything are drawn as far as there is a place for them.
    const auto wild = make_figure("tasks", inputs_of(one_task("acc", {1e308, -1e308, 0.5})), {});
    CHECK(std::get<Curves>(wild.panels[0].content).curves.size() == 1);
}

TEST_CASE("Baselines are in no other figure, and a task's accuracies are", "[figures][tasks]") {
    const auto inputs = inputs_of(test::sample_task_evaluation());
    for (const char* recipe : {"ablation", "scaling"}) {
        const auto figure = make_figure(recipe, inputs, {});
        CHECK(figure.panels.size() == 7);
        CHECK(figure.panels[0].x.label == "arc easy, acc");
        CHECK(figure.panels[6].x.label == "piqa, acc, 5 shots");
        const std::string csv = figure_csv(figure);
        CHECK(csv.find("chance") == std::string::npos);
        CHECK(csv.find("majority") == std::string::npos);
    }
    FigureOptions options;
    options.metric = "chance";
    CHECK_THROWS_MATCHES(make_figure("ablation", inputs, options), Error, IsError(ErrorCode::usage, "--metric"));
}

TEST_CASE("Models of one name are numbered in legends", "[figures][tasks]") {
    store::Evaluation two = one_task("acc", {0.5, 0.6});
    for (std::size_t i = 0; i < two.models.size(); ++i) {
        two.models[i].name = "same";
        two.models[i].sha256 = std::string(64, static_cast<char>('a' + i));
    }
    const auto inputs = inputs_of(two);
    const EvaluationGroups groups(inputs.evaluations, "tasks");
    CHECK(group_names(groups.groups()) == std::vector<std::string>{"same #1", "same #2"});
}

TEST_CASE("LongBench has a panel a task and class of lengths, and a LaTeX table a class", "[figures][tasks]") {
    store::Evaluation all;
    for (const char* name : {"long", "short"}) {
        store::EvaluatedModel model;
        model.name = model.sha256 = name;
        all.models.push_back(model);
        const std::int64_t index = std::ssize(all.models) - 1;
        for (const char* task : {"longbench_trec_e", "longbench_lcc_e", "longbench_e"})
            for (const char* subset : {"", "0-4k", "8k+"}) {
                store::EvaluationResult result{index, task, "score", 8192, index == 0 ? 0.5 : 0.25, 0.1, 10};
                result.subset = subset;
                all.results.push_back(result);
                result.metric = "code_sim_score";
                all.results.push_back(result);
            }
    }
    const FigureData figure = make_figure("longbench", inputs_of(all), {});
    CHECK(figure.panels.size() == 9);
    CHECK(figure.panels[0].title == "longbench trec e");
    CHECK(figure.panels[3].title == "longbench trec e, 0-4k");
    CHECK(figure.table().rows() == 18);
    const std::string text = figure.latex();
    for (const char* part : {"% all lengths\n", "% 0-4k words\n", "% 8k+ words\n", "\\textbf{50.0}"})
        CHECK(text.find(part) != std::string::npos);
    CHECK(text.find("% 4-8k") == std::string::npos);
    CHECK_THROWS_MATCHES(make_figure("tasks", inputs_of(all), {}), Error, IsError(ErrorCode::usage, "zero_shot"));
}
