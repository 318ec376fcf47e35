// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of evaluations and models on made-up ones.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/cost/cost_table.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/figures/evaluation/evaluation_inputs.h"
#include "tests/core/figures/figure_parts.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::test;

TEST_CASE("Perplexity by context: a panel a layout, a line a mixer, errors over seeds, the training length marked",
          "[figures][evaluation]") {
    const auto figure = make_figure("context-perplexity", evaluated(), {});
    REQUIRE(figure.panels.size() == 4);  // layouts; mqar has one length
    CHECK(figure.panels[0].title == "uniform");
    CHECK(figure.panels[3].title == "last");
    const auto& panel = figure.panels[1];
    CHECK(panel.x.scale == ScaleKind::logarithmic);
    CHECK(panel.y.scale == ScaleKind::logarithmic);  // uniform Non-approximate is far off
    CHECK(panel.y.range == figure.panels[0].y.range);
    REQUIRE(panel.markers.size() == 1);
    CHECK(panel.markers[0].position == 256);
    // Standard and two mixers at two sizes: a line and dots each, and what is beyond 256.
    REQUIRE(curves(panel).size() == 18);
    CHECK(curves(panel)[0].x == std::vector<double>{64, 128, 256});
    CHECK(curves(panel)[1].x == std::vector<double>{64, 128, 256, 512});
    CHECK(curves(panel)[12].x == std::vector<double>{256, 512});
    CHECK(curves(panel)[12].thin);
    CHECK(curves(panel)[12].colour == curves(panel)[0].colour);
    CHECK(panel.markers[0].label == "trained at 256");
    CHECK(curves(panel)[0].name == "Standard");
    CHECK(curves(panel)[3].dot > curves(panel)[1].dot);
    CHECK(curves(panel)[0].y[0] == Approx(12 * (1 + 8.0 / 64) + 0.4));
    CHECK(curves(panel)[1].error[0] == Approx(0.2));
    CHECK(figure.legend.size() == 3);
    CHECK(column<std::vector<std::int64_t>>(figure.table(), "seeds")[0] == 3);
}

TEST_CASE("The ablation has a row a layout in the paper's order and a line where Standard is",
          "[figures][evaluation]") {
    auto inputs = evaluated();
    auto one_size = sample_evaluation();
    std::erase_if(one_size.results, [&](const auto& r) {
        return one_size.models[static_cast<std::size_t>(r.model)].parameters > 2'000'000;
    });
    inputs.evaluations = {std::make_shared<const store::Evaluation>(one_size)};
    const auto figure = make_figure("ablation", inputs, {});
    REQUIRE(figure.panels.size() == 2);
    const auto& panel = figure.panels[0];
    std::vector<std::string> rows;
    for (const auto& tick : panel.y.ticks) rows.push_back(tick.label);
    CHECK(rows == std::vector<std::string>{"uniform", "even", "quarter", "last"});
    CHECK(panel.y.ticks[0].position == 3);
    REQUIRE(panel.markers.size() == 1);
    CHECK(panel.markers[0].label == "Standard");
    CHECK(panel.markers[0].position == Approx(12 * (1 + 8.0 / 256) + 0.4));
    CHECK(figure.legend.size() == 2);
    FigureOptions options;
    options.task = "mqar";
    CHECK(make_figure("ablation", inputs, options).panels.size() == 1);
    options.metric = "beauty";
    CHECK_THROWS_MATCHES(make_figure("ablation", inputs, options), Error, IsError(ErrorCode::usage, "mqar accuracy"));
    options = {};
    options.length = 100;
    CHECK_THROWS_MATCHES(make_figure("ablation", inputs, options), Error,
                         IsError(ErrorCode::usage, "64, 128, 256, 512"));
}

TEST_CASE("Scaling draws larger models as larger dots", "[figures][evaluation]") {
    const auto figure = make_figure("scaling", evaluated(), {});
    REQUIRE(figure.panels.size() == 2);
    double small = 10, large = 0;
    for (const auto& curve : curves(figure.panels[0])) {
        if (!curve.points) continue;
        small = std::min(small, curve.dot);
        large = std::max(large, curve.dot);
        CHECK(curve.error_of_x);
    }
    CHECK(large > 2 * small);
    CHECK(figure.panels[0].y.ticks.size() == 9);
}

TEST_CASE("Axes of results reach to the ends of error bars", "[figures][evaluation]") {
    store::Evaluation all;
    for (const char* mixer : {"standard", "mlp"}) {
        store::EvaluatedModel model;
        model.mixer = mixer;
        model.layout = "even";
        model.parameters = 100'000;
        const auto index = std::ssize(all.models);
        all.models.push_back(model);
        for (const std::int64_t length : {16, 64})
            all.results.push_back({index, "perplexity", "token_perplexity", length, 61.5, 0.6, 1000});
    }
    FigureInputs inputs;
    inputs.evaluations.push_back(std::make_shared<const store::Evaluation>(all));
    const auto reaches = [](const Axis& axis) { return axis.range->first < 60.9 && axis.range->second > 62.1; };
    CHECK(reaches(make_figure("context-perplexity", inputs, {}).panels[0].y));
    CHECK(reaches(make_figure("ablation", inputs, {}).panels[0].x));
    const auto scaling = make_figure("scaling", inputs, {});
    CHECK(reaches(scaling.panels[0].x));
    CHECK(scaling.notes[0].starts_with("100k parameters."));  // one size has no small and large
}

TEST_CASE("Mixers of one size differ by a few parameters and are one size all the same", "[figures][evaluation]") {
    auto all = sample_evaluation();
    for (auto& model : all.models)
        if (model.mixer == "non_approximate") model.parameters -= 3000;
    FigureInputs inputs;
    inputs.evaluations.push_back(std::make_shared<const store::Evaluation>(all));
    const auto figure = make_figure("scaling", inputs, {});
    std::set<double> dots;
    for (const auto& curve : curves(figure.panels[0]))
        if (curve.points) dots.insert(curve.dot);
    CHECK(dots.size() == 2);
}

TEST_CASE("An evaluation without results, or of one length, is refused by what it lacks", "[figures][evaluation]") {
    FigureInputs inputs;
    inputs.evaluations.push_back(std::make_shared<const store::Evaluation>());
    CHECK_THROWS_MATCHES(make_figure("scaling", inputs, {}), Error, IsError(ErrorCode::usage, "found none"));
    FigureOptions options;
    options.task = "mqar";
    CHECK_THROWS_MATCHES(make_figure("context-perplexity", evaluated(), options), Error,
                         IsError(ErrorCode::usage, "--length"));
}

TEST_CASE("More tasks, models and panels than a figure can show are refused", "[figures][evaluation]") {
    const auto refused = [](const store::Evaluation& evaluation, const std::string& of) {
        FigureInputs inputs;
        inputs.evaluations.push_back(std::make_shared<const store::Evaluation>(evaluation));
        for (const char* recipe : {"context-perplexity", "ablation", "scaling"})
            CHECK_THROWS_MATCHES(make_figure(recipe, inputs, {}), Error, IsError(ErrorCode::limit, of));
    };
    auto tasks = sample_evaluation();
    for (std::size_t i = 0; i < tasks.results.size(); ++i) tasks.results[i].task = "task " + std::to_string(i);
    refused(tasks, "at most 200 tasks");
    auto models = sample_evaluation();
    for (int i = 0; i < 2001; ++i) {
        store::EvaluatedModel model = models.models.back();
        model.parameters = 1000 + i;
        models.models.push_back(model);
        models.results.push_back({std::ssize(models.models) - 1, "perplexity", "token_perplexity", 64, 10, 1, 1});
    }
    refused(models, "at most 2000 models");
    auto lengths = sample_evaluation();
    for (std::int64_t length = 1; length <= 1001; ++length)
        lengths.results.push_back({0, "perplexity", "token_perplexity", length, 10, 1, 1});
    refused(lengths, "at most 1000 lengths");
    // A panel for each layout of each task.
    auto panels = sample_evaluation();
    for (int i = 0; i < 101; ++i)
        for (const std::int64_t length : {64, 128})
            panels.results.push_back({0, "task " + std::to_string(i), "accuracy", length, 0.5, 0.1, 1});
    FigureInputs inputs;
    inputs.evaluations.push_back(std::make_shared<const store::Evaluation>(panels));
    CHECK_THROWS_MATCHES(make_figure("context-perplexity", inputs, {}), Error,
                         IsError(ErrorCode::limit, "choose a task"));
}

TEST_CASE("Context lengths of several models: each by its job, with its own training length", "[figures][evaluation]") {
    store::Evaluation all;
    const auto add = [&](const char* name, const char* mixer, std::int64_t seed, const char* job, char sha,
                         std::int64_t trained, double at_most) {
        store::EvaluatedModel model;
        model.name = name;
        model.mixer = mixer;
        model.layout = "uniform";
        model.parameters = 5'000'000;
        model.training_length = trained;
        model.seed = seed;
        model.job = job;
        model.sha256 = std::string(64, sha);
        const auto index = std::ssize(all.models);
        all.models.push_back(model);
        for (const auto& [length, value] : {std::pair{512, 20.0}, {1024, 22.0}, {2048, at_most}})
            all.results.push_back({index, "wikitext", "word_perplexity", length, value, 0.5, 1000});
    };
    add("llama", "standard", 1, "l", 'a', 512, 300);
    add("llama-long", "standard", 1, "k", 'b', 1024, 150);
    add("lazy-1", "lazy", 1, "z", 'c', 512, 30);
    add("lazy-2", "lazy", 2, "z", 'd', 512, 32);
    add("lazy-no-offset", "lazy", 1, "n", 'e', 512, 60);  // as many parameters
    const auto made = [&] {
        FigureInputs inputs;
        inputs.evaluations.push_back(std::make_shared<const store::Evaluation>(all));
        return make_figure("context-perplexity", inputs, {});
    };
    const auto figure = made();
    REQUIRE(figure.panels.size() == 1);
    const auto& panel = figure.panels[0];
    std::vector<std::string> legend;
    std::set<int> colours;
    for (const auto& entry : figure.legend) {
        legend.push_back(entry.name);
        colours.insert(entry.colour);
    }
    CHECK(std::set(legend.begin(), legend.end()) ==
          std::set<std::string>{"llama", "llama-long", "lazy-1", "lazy-no-offset"});
    CHECK(colours.size() == 4);
    REQUIRE(panel.markers.size() == 2);
    CHECK(panel.markers[0].label == "trained at 512: 3 models");
    CHECK(panel.markers[1].label == "trained at 1024: llama-long");
    CHECK(panel.x.range->second > 2048);
    CHECK(panel.y.scale == ScaleKind::logarithmic);
    CHECK(panel.y.range->second > 300);
    REQUIRE(curves(panel).size() == 12);
    for (std::size_t i = 0; i < 8; i += 2) {
        const auto &line = curves(panel)[i], &dots = curves(panel)[i + 1];
        const bool longer = line.name == "llama-long";
        CHECK(line.x.back() == (longer ? 1024 : 512));
        CHECK(dots.x.back() == 2048);
        if (line.name == "lazy-1") CHECK(dots.y.back() == 31);  // the mean of two seeds
        const auto& rest = curves(panel)[8 + i / 2];
        CHECK(rest.name == line.name);
        CHECK(rest.thin);
        CHECK(rest.x == (longer ? std::vector<double>{1024, 2048} : std::vector<double>{512, 1024, 2048}));
    }
    CHECK(std::any_of(figure.notes.begin(), figure.notes.end(), [](const std::string& note) {
        return note.find("Thin lines: longer than the training length.") != std::string::npos;
    }));
    const auto table = figure.table();
    CHECK(table.rows() == 12);
    CHECK(column<std::vector<std::string>>(table, "model")[0] == "llama");
    CHECK(column<std::vector<std::int64_t>>(table, "training_length")[3] == 1024);

    // Files that know no jobs: two models of seed 1 are no seeds of one, nor is anybody of their kind.
    for (auto& model : all.models) model.job.clear();
    std::set<std::string> apart;
    for (const auto& entry : made().legend) apart.insert(entry.name);
    CHECK(apart == std::set<std::string>{"llama", "llama-long", "lazy-1", "lazy-2", "lazy-no-offset"});
}

TEST_CASE("Costs are the paper's formulas as curves and as a table", "[figures][cost]") {
    cost::CostSetting setting;
    cost::CostTable table = cost::paper_table(setting, {128, 256, 512, 1024});
    table.rows[1].measured = cost::MeasuredMixer{"standard", 5e8, 1e6, 2e6, 3e5};
    FigureInputs inputs;
    inputs.models.push_back({"500M", 512, std::make_shared<const cost::CostTable>(table)});
    const auto figure = make_figure("cost", inputs, {});
    REQUIRE(figure.panels.size() == 4);
    const auto& prefill = curves(figure.panels[0]);
    // 4 B L^2 d + 6 B L d^2 at the paper's 500M sizes.
    CHECK(prefill[0].y[3] == 4.0 * 1024 * 1024 * 896 + 6.0 * 1024 * 896 * 896);
    CHECK(prefill[1].points);
    CHECK(prefill[1].y == std::vector<double>{5e8});
    REQUIRE(figure.text_table.has_value());
    CHECK(figure.text_table->header[0] == "512 tokens");
    CHECK(figure.text_table->rows.size() == cost::mixer_costs().size());
    CHECK(figure.text_table->rows[0].size() == 9);
    const auto together = std::find_if(figure.notes.begin(), figure.notes.end(),
                                       [](const std::string& note) { return note.starts_with("Same curve for "); });
    REQUIRE(together != figure.notes.end());
    CHECK(together->find("MLP, Non-approximate") != std::string::npos);
    FigureOptions options;
    options.length = 256;
    CHECK(make_figure("cost", inputs, options).text_table->rows[0][2] == "500 M");
    options.length = 100;
    CHECK_THROWS_MATCHES(make_figure("cost", inputs, options), Error, IsError(ErrorCode::usage, "--length"));
}

TEST_CASE("A figure is made of one kind of input, the one that it is of", "[figures]") {
    CHECK_THROWS_MATCHES(of_runs("radar", {sample_record("a")}), Error, IsError(ErrorCode::usage, "analysis files"));
    CHECK_THROWS_MATCHES(make_figure("timeline", evaluated(), {}), Error, IsError(ErrorCode::usage, "expected runs"));
    CHECK_THROWS_MATCHES(make_figure("loss", FigureInputs(), {}), Error, IsError(ErrorCode::usage, "found none"));
    auto both = evaluated();
    both.runs.push_back(shared(sample_record("a")));
    CHECK_THROWS_MATCHES(make_figure("loss", both, {}), Error, IsError(ErrorCode::usage, "of one kind"));
    CHECK_THROWS_MATCHES(make_figure("pie", both, {}), Error, IsError(ErrorCode::usage, "scaling"));
}
