// SPDX-License-Identifier: GPL-3.0-or-later
// t-tests against scipy's numbers, and the marks that they put on tables of tasks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>

#include <nlohmann/json.hpp>

#include "core/figures/make_figure.h"
#include "core/figures/significance/significance.h"
#include "core/figures/significance/t_test.h"
#include "core/figures/task_table.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/figures/evaluation/evaluation_inputs.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::figures;
using test::inputs_of;
using test::IsError;

namespace {

constexpr double kOfScipy = 1e-9;

nlohmann::json golden() {
    std::ifstream file(test::golden_file("t_test.json"));
    return nlohmann::json::parse(file);
}

void check_against(const nlohmann::json& row, const TTest& test) {
    INFO(row.dump());
    CHECK(test.t == Approx(row.at("t").get<double>()).epsilon(kOfScipy));
    CHECK(test.degrees == Approx(row.at("degrees").get<double>()).epsilon(kOfScipy));
    CHECK(std::abs(test.p - row.at("p").get<double>()) < kOfScipy);
}

TaskTable table_of(const store::Evaluation& evaluation, const std::string& model) {
    const auto inputs = inputs_of(evaluation);
    FigureOptions options;
    options.significance = model;
    return {EvaluationGroups(inputs.evaluations, "tasks"), options};
}

void add_model(store::Evaluation& all, const std::string& mixer, std::int64_t seed) {
    store::EvaluatedModel model;
    model.name = mixer + "-" + std::to_string(seed);
    model.mixer = mixer;
    model.layout = "uniform";
    model.seed = seed;
    model.sha256 = std::string(63, mixer.front()) + std::to_string(seed);
    model.job = mixer;
    all.models.push_back(model);
}

/// Three seeds of two models and one seed of a third, on one task.
store::Evaluation seeds() {
    store::Evaluation all;
    const auto add = [&](const std::string& mixer, std::int64_t seed, double value) {
        add_model(all, mixer, seed);
        all.results.push_back({std::ssize(all.models) - 1, "piqa", "acc", 2048, value, 0.01, 100});
    };
    for (const auto& [seed, value] : {std::pair{1, 0.61}, {2, 0.62}, {3, 0.64}}) add("lazy", seed, value);
    for (const auto& [seed, value] : {std::pair{1, 0.55}, {2, 0.56}, {3, 0.58}}) add("standard", seed, value);
    for (const auto& [seed, value] : {std::pair{1, 0.51}, {2, 0.49}, {3, 0.52}}) add("retnet", seed, value);
    return all;
}

const TaskValue& value_of(const TaskTable& table, const std::string& name) {
    for (std::size_t m = 0; m < table.models().size(); ++m)
        if (table.models()[m] == name) return table.tasks().at(0).values[m].value();
    throw std::runtime_error("no model " + name);
}

/// The name in the figure of the first group with this mixer.
std::string name_of(const store::Evaluation& all, const std::string& mixer, const std::string& recipe = "tasks") {
    const auto inputs = inputs_of(all);
    const EvaluationGroups groups(inputs.evaluations, recipe);
    for (std::size_t i = 0; i < groups.groups().size(); ++i)
        if (groups.groups()[i].mixer == mixer) return group_names(groups.groups())[i];
    throw std::runtime_error("no mixer " + mixer);
}

}  // namespace

TEST_CASE("p of Student's t, Welch's and paired tests are scipy's", "[figures][significance]") {
    const nlohmann::json all = golden();
    REQUIRE(all.at("tails").size() > 100);
    for (const auto& row : all.at("tails")) {
        INFO(row.dump());
        const double p = student_p(row.at("t"), row.at("degrees"));
        CHECK(std::abs(p - row.at("p").get<double>()) < kOfScipy);
        CHECK(p == Approx(row.at("p").get<double>()).epsilon(kOfScipy));  // also far out in the tail
        CHECK(student_p(-row.at("t").get<double>(), row.at("degrees")) == p);
    }
    const auto numbers = [](const nlohmann::json& row, const char* key) {
        return row.at(key).get<std::vector<double>>();
    };
    for (const auto& row : all.at("welch")) check_against(row, welch_test(numbers(row, "a"), numbers(row, "b")));
    for (const auto& row : all.at("paired")) check_against(row, paired_test(numbers(row, "a"), numbers(row, "b")));
}

TEST_CASE("Tests of too few or constant values are undefined or certain", "[figures][significance]") {
    const std::vector<double> one{0.5}, same{0.5, 0.5}, other{0.7, 0.7};
    CHECK(std::isnan(welch_test(one, same).p));
    CHECK(std::isnan(paired_test(one, one).p));
    CHECK(std::isnan(welch_test(same, same).p));
    CHECK(std::isnan(paired_test(same, same).p));
    CHECK(welch_test(same, other).p == 0);
    CHECK(paired_test(other, same).t == std::numeric_limits<double>::infinity());
    CHECK_THROWS_AS(paired_test(one, same), Error);
    CHECK(student_p(0, 5) == 1);
    CHECK(std::isnan(student_p(1, 0)));
}

TEST_CASE("A model that differs from the best of the others over seeds is marked", "[figures][significance]") {
    const auto all = seeds();
    const std::string lazy = name_of(all, "lazy");
    const auto table = table_of(all, lazy);
    const std::vector<double> ours{0.61, 0.62, 0.64}, best{0.55, 0.56, 0.58};
    CHECK(value_of(table, lazy).p == Approx(welch_test(ours, best).p));
    CHECK(value_of(table, lazy).significant());
    CHECK_FALSE(value_of(table, name_of(all, "standard")).significant());
    const TaskGrid grid(table, true);
    CHECK(grid.latex(grid.order(-1, false)).find("\\textbf{62.3}$^{*}$") != std::string::npos);

    FigureOptions options;
    options.significance = lazy;
    const auto figure = make_figure("tasks", inputs_of(all), options);
    const std::string csv = figure_csv(figure);
    CHECK(csv.substr(0, csv.find('\r')).ends_with(",p"));
    const auto numbers = figure.table();
    for (const auto& column : numbers.columns) {
        if (column.name != "p") continue;
        const auto& p = std::get<std::vector<double>>(column.values);
        CHECK(std::count_if(p.begin(), p.end(), [](double value) { return value < 0.05; }) == 1);
    }
    options.significance = "absent";
    CHECK_THROWS_MATCHES(make_figure("tasks", inputs_of(all), options), Error,
                         IsError(ErrorCode::usage, "--significance"));
}

TEST_CASE("Without seeds the items that files hold are paired", "[figures][significance]") {
    store::Evaluation all;
    constexpr std::int64_t kItems = 60;
    std::vector<double> scores[2];
    for (const char* mixer : {"standard", "lazy"}) {
        add_model(all, mixer, 1);
        const std::int64_t model = std::ssize(all.models) - 1;
        double right = 0;
        for (std::int64_t i = 0; i < kItems; ++i) {
            store::EvaluatedItem item;
            item.model = model;
            item.task = "piqa";
            item.length = 2048;
            item.item = i;
            item.gold = i % 2;
            item.right = model == 0 ? i % 3 != 0 : i % 3 != 0 || i % 2 == 0;
            right += item.right ? 1 : 0;
            scores[model].push_back(item.right ? 1 : 0);
            all.items.push_back(item);
        }
        const double share = right / kItems;
        all.results.push_back({model, "piqa", "acc", 2048, share, 0.01, kItems});
        all.results.push_back(
            {model, "lambada_openai", "perplexity", 2048, 20.0 + static_cast<double>(model), 0.5, 10});
    }
    const std::string lazy = name_of(all, "lazy");
    const auto table = table_of(all, lazy);
    REQUIRE(table.tasks().size() == 2);
    CHECK(value_of(table, lazy).p == Approx(paired_test(scores[1], scores[0]).p));
    CHECK(value_of(table, lazy).significant());
    for (const auto& value : table.tasks()[1].values) CHECK(std::isnan(value->p));  // a single perplexity has none

    all.items.pop_back();  // not the same items
    CHECK(std::isnan(value_of(table_of(all, lazy), lazy).p));
    all.items.clear();
    CHECK(std::isnan(value_of(table_of(all, lazy), lazy).p));
}

TEST_CASE("Shares of items are paired by their metric, and by their part of the task", "[figures][significance]") {
    store::Evaluation all;
    constexpr std::int64_t kItems = 40;
    std::vector<double> scores[2], of_long[2];
    for (const char* mixer : {"standard", "lazy"}) {
        add_model(all, mixer, 1);
        const std::int64_t model = std::ssize(all.models) - 1;
        double sum = 0, sum_of_long = 0;
        for (std::int64_t i = 0; i < kItems; ++i) {
            store::EvaluatedItem item;
            item.model = model;
            item.task = "longbench_qasper_e";
            item.length = 2048;
            item.item = i;
            item.subset = i % 4 == 0 ? "8k+" : "0-4k";
            const double score = static_cast<double>((i * 7 + 3 * model) % 11) / 16;
            item.metrics = nlohmann::json{{"score", score}, {"qa_f1_score", score}}.dump();
            scores[model].push_back(score);
            sum += score;
            if (i % 4 == 0) {
                of_long[model].push_back(score);
                sum_of_long += score;
            }
            all.items.push_back(item);
        }
        store::EvaluationResult result{
            model, "longbench_qasper_e", "score", 2048, sum / static_cast<double>(kItems), 0.01, kItems};
        all.results.push_back(result);
        result.subset = "8k+";
        result.value = sum_of_long / 10;
        result.count = 10;
        all.results.push_back(result);
    }
    const auto p_of = [&](const std::string& subset) {
        const auto shared = std::make_shared<const store::Evaluation>(all);
        const EvaluationMember standard{shared, 0}, lazy{shared, 1};
        const std::vector<double> one{0.1}, other{0.2};
        return difference_p({one, {&standard, 1}, "longbench_qasper_e", 2048, subset},
                            {other, {&lazy, 1}, "longbench_qasper_e", 2048, subset}, "score", 0);
    };
    CHECK(p_of("") == Approx(paired_test(scores[0], scores[1]).p));
    CHECK(p_of("8k+") == Approx(paired_test(of_long[0], of_long[1]).p));
    CHECK(std::isnan(p_of("4-8k")));

    FigureOptions options;
    const auto inputs = inputs_of(all);
    options.significance = name_of(all, "lazy", "longbench");
    const auto figure = make_figure("longbench", inputs, options);
    const auto numbers = figure.table();
    std::vector<double> found;
    for (const auto& column : numbers.columns)
        if (column.name == "p")
            for (const double p : std::get<std::vector<double>>(column.values))
                if (!std::isnan(p)) found.push_back(p);
    REQUIRE(found.size() == 2);
    std::sort(found.begin(), found.end());
    std::vector<double> expected{p_of(""), p_of("8k+")};
    std::sort(expected.begin(), expected.end());
    CHECK(found[0] == Approx(expected[0]));
    CHECK(found[1] == Approx(expected[1]));

    all.items[3].metrics = "{}";
    CHECK(std::isnan(p_of("")));
    CHECK_FALSE(std::isnan(p_of("8k+")));
}
