// SPDX-License-Identifier: GPL-3.0-or-later
// lm-eval's tasks x models: which metric is shown, ranks, averages, the table as text, and the figure of it.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/figures/make_figure.h"
#include "core/figures/task_table.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/figures/sample_records.h"

using namespace headscope;
using namespace headscope::figures;
using test::IsError;

namespace {

FigureInputs inputs_of(const store::Evaluation& evaluation) {
    FigureInputs inputs;
    inputs.evaluations.push_back(std::make_shared<const store::Evaluation>(evaluation));
    return inputs;
}

TaskTable table_of(const store::Evaluation& evaluation, const FigureOptions& options = {}) {
    const auto inputs = inputs_of(evaluation);
    return {EvaluationGroups(inputs.evaluations, "tasks"), options};
}

std::vector<std::string> titles(const TaskTable& table) {
    std::vector<std::string> titles;
    for (const auto& task : table.tasks()) titles.push_back(task.title);
    return titles;
}

const TaskResults& task(const TaskTable& table, const std::string& title) {
    for (const auto& one : table.tasks())
        if (one.title == title) return one;
    throw std::runtime_error("no task " + title);
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

namespace {

using Named = std::vector<std::pair<const char*, double>>;

/// Adds a row of a paper's table: accuracies in per cent, by task.
void add_printed(store::Evaluation& all, const std::string& name, const char* metric, const Named& values) {
    store::EvaluatedModel model;
    model.name = name;
    model.mixer = "standard";
    all.models.push_back(model);
    for (const auto& [task, value] : values) {
        const bool normed =
            std::string(metric) == "acc" && (std::string(task) == "hellaswag" || std::string(task) == "openbookqa" ||
                                             std::string(task) == "arc_challenge");
        all.results.push_back(
            {std::ssize(all.models) - 1, task, normed ? "acc_norm" : metric, 2048, value / 100, 0, 100});
    }
}

double average_of(const store::Evaluation& all, const std::string& name, std::size_t model = 0) {
    FigureOptions options;
    options.average = name;
    const auto table = table_of(all, options);
    REQUIRE(table.average());
    CHECK(table.average_name() == name);
    REQUIRE(table.average()->values.at(model));
    return 100 * table.average()->values[model]->value;
}

}  // namespace

TEST_CASE("Averages are those that the papers print of their own tables", "[figures][tasks]") {
    store::Evaluation natsl;  // Table 1, 800M
    const auto add_natsl = [&](const std::string& name, const std::vector<double>& v) {
        add_printed(natsl, name, "acc",
                    {{"lambada_openai", v[0]},
                     {"piqa", v[1]},
                     {"hellaswag", v[2]},
                     {"winogrande", v[3]},
                     {"openbookqa", v[4]},
                     {"arc_challenge", v[5]},
                     {"arc_easy", v[6]}});
        natsl.models.pop_back();
        add_printed(natsl, name, "contains",
                    {{"swde", v[7]},
                     {"squad_completion", v[8]},
                     {"fda", v[9]},
                     {"based_triviaqa", v[10]},
                     {"based_nq", v[11]},
                     {"based_drop", v[12]}});
    };
    add_natsl("NAtS-L Hybrid",
              {44.30, 70.67, 51.10, 55.96, 38.60, 32.51, 66.75, 62.38, 40.01, 67.70, 57.64, 21.86, 20.84});
    add_natsl("Transformer",
              {41.88, 70.78, 50.58, 54.22, 37.80, 33.53, 66.67, 58.42, 3.25, 43.47, 56.69, 18.28, 21.85});
    CHECK(average_of(natsl, "natsl") == Approx(51.41).margin(0.005));
    CHECK(average_of(natsl, "natsl_retrieval") == Approx(45.07).margin(0.005));
    CHECK(average_of(natsl, "natsl", 1) == Approx(50.78).margin(0.005));
    CHECK(average_of(natsl, "natsl_retrieval", 1) == Approx(33.66).margin(0.005));
    // These are NAtS-L's tasks, so nothing needs to be said; hellaswag's acc would be another average.
    CHECK(table_of(natsl).average_name() == "natsl");

    store::Evaluation lazy;  // Table 1
    const auto add_lazy = [&](const std::string& name, const std::vector<double>& v) {
        add_printed(lazy, name, "acc",
                    {{"lambada_openai", v[0]},
                     {"piqa", v[1]},
                     {"hellaswag", v[2]},
                     {"winogrande", v[3]},
                     {"arc_easy", v[4]},
                     {"arc_challenge", v[5]},
                     {"social_iqa", v[6]},
                     {"boolq", v[7]}});
    };
    add_lazy("Lazy 340M", {35.28, 66.92, 41.58, 52.25, 60.31, 27.56, 38.95, 61.22});
    add_lazy("Lazy 760M", {39.72, 69.59, 48.34, 53.83, 65.40, 33.53, 40.43, 61.42});
    add_lazy("TTT 760M", {34.74, 67.25, 43.92, 50.99, 64.53, 33.81, 40.16, 59.58});
    CHECK(average_of(lazy, "lazy") == Approx(48.01).margin(0.005));
    CHECK(average_of(lazy, "lazy", 1) == Approx(51.53).margin(0.005));
    CHECK(average_of(lazy, "lazy", 2) == Approx(49.37).margin(0.005));  // printed as 47.32
    CHECK(table_of(lazy).average_name() == "lazy");
    FigureOptions options;
    options.average = "deconattn";  // copa, sciq and rte are missing
    CHECK_FALSE(table_of(lazy, options).average()->values[0]);
    CHECK(table_of(lazy, options).average()->title == "average of 7, Deconstructing Attention");
}

TEST_CASE("LAMBADA is none of the seven tasks, and guessers have their average", "[figures][tasks]") {
    store::Evaluation all;  // Deconstructing Attention, Table 1: Standard
    add_printed(all, "Standard", "acc",
                {{"arc_easy", 41.5},
                 {"boolq", 56.6},
                 {"copa", 63.0},
                 {"piqa", 60.9},
                 {"sciq", 60.2},
                 {"rte", 53.1},
                 {"lambada_openai", 22.9}});
    const auto add = [&](const char* task, const char* metric, double value) {
        all.results.push_back({0, task, metric, 2048, value, 0, 100});
    };
    add("hellaswag", "acc", 0.283);
    add("hellaswag", "acc_norm", 0.31);
    add("lambada_openai", "perplexity", 134.1);
    add("wikitext", "word_perplexity", 38.1);
    // "Rnd. Guess" and "Majority" of the same table.
    const std::pair<const char*, std::pair<double, double>> guessers[] = {
        {"arc_easy", {0.25, 0.257}}, {"boolq", {0.5, 0.622}}, {"copa", {0.5, 0.56}},      {"piqa", {0.5, 0.505}},
        {"sciq", {0.25, 0.25}},      {"rte", {0.5, 0.527}},   {"hellaswag", {0.25, 0.25}}};
    for (const auto& [task, values] : guessers) {
        add(task, "chance", values.first);
        add(task, "majority", values.second);
    }
    add("lambada_openai", "chance_perplexity", 3e6);
    add("wikitext", "chance_word_perplexity", 3e5);
    const auto table = table_of(all);
    REQUIRE(table.average());
    CHECK(table.average_name() == "deconattn");
    CHECK(table.average()->title == "average of 7, Deconstructing Attention");
    CHECK(100 * table.average()->values[0]->value == Approx(51.9).margin(0.05));
    // The paper prints 39.9 for both, which its own columns are not.
    CHECK(100 * table.average()->baselines.chance.value() == Approx(275 / 7.0));
    CHECK(100 * table.average()->baselines.majority.value() == Approx(297.1 / 7));
    CHECK(task(table, "lambada openai, perplexity").baselines.chance == 3e6);
    CHECK(task(table, "wikitext, word perplexity").baselines.chance == 3e5);
    FigureOptions options;
    options.average = "all";
    CHECK(table_of(all, options).average()->title == "average of 8 accuracies");
    CHECK_FALSE(table_of(all, options).average()->baselines.chance);  // nothing is known of LAMBADA's

    // The figure, its numbers and its table have the same average.
    const auto figure = make_figure("tasks", inputs_of(all), {});
    CHECK(figure.panels.back().title == table.average()->title);
    CHECK(figure.panels.back().markers.size() == 2);
    const std::string csv = figure_csv(figure);
    CHECK(csv.find("average,deconattn,0,Standard,") != std::string::npos);
    CHECK(csv.find("average,deconattn,0,chance,") != std::string::npos);
    const std::string latex = figure.latex();
    CHECK(latex.find("average of 7, Deconstructing Attention") != std::string::npos);
    CHECK(latex.find("51.9") != std::string::npos);
    CHECK(latex.find("39.3") != std::string::npos);
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
