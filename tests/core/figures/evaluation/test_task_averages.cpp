// SPDX-License-Identifier: GPL-3.0-or-later
// Averages over tasks that papers print of their own tables.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/figures/make_figure.h"
#include "core/figures/task_table.h"
#include "tests/core/figures/evaluation/evaluation_inputs.h"
#include "tests/core/figures/evaluation/task_tables.h"

using namespace headscope;
using namespace headscope::figures;
using test::inputs_of;
using test::table_of;
using test::task;

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
