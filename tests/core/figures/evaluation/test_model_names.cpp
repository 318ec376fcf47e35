// SPDX-License-Identifier: GPL-3.0-or-later
// Names of models in figures of evaluations.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/base/error_matcher.h"
#include "tests/core/figures/evaluation/evaluation_inputs.h"
#include "tests/core/figures/figure_parts.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::test;

TEST_CASE("Given names stand in every figure of evaluations", "[figures][evaluation]") {
    FigureOptions options;
    options.names = {"soft, of 2026", "gated", "learned"};
    for (const char* recipe :
         {"position-perplexity", "ruler", "latency", "context-perplexity", "ablation", "scaling", "retention"}) {
        INFO(recipe);
        options.baseline = recipe == std::string("retention") ? "gated" : "";
        const auto figure = make_figure(recipe, on_long_texts(), options);
        std::set<std::string> texts;
        for (const auto& entry : figure.legend) texts.insert(entry.name);
        const std::set<std::string> legend = texts;
        for (const auto& panel : figure.panels) {
            for (const auto& tick : panel.y.ticks) texts.insert(tick.label);
            for (const auto& marker : panel.markers) texts.insert(marker.label);
        }
        for (const auto& name : options.names) CHECK(texts.contains(name));
        const bool by_lines = recipe != std::string("ablation") && recipe != std::string("scaling");
        if (by_lines) CHECK(legend == std::set<std::string>(options.names.begin(), options.names.end()));
        const auto models = column<std::vector<std::string>>(figure.table(), "model");
        for (const auto& model : models) CHECK(std::count(options.names.begin(), options.names.end(), model) == 1);
        options.names.pop_back();
        CHECK_THROWS_MATCHES(make_figure(recipe, on_long_texts(), options), Error,
                             IsError(ErrorCode::usage, "--names"));
        CHECK_THROWS_MATCHES(make_figure(recipe, on_long_texts(), options), Error,
                             IsError(ErrorCode::usage, R"(each model: "standard", "gated_deltanet", "natsl")"));
        options.names.emplace_back("learned");
    }
}

TEST_CASE("Given names belong to models in the order of the files; an empty one is the usual name",
          "[figures][evaluation]") {
    const auto all = sample_task_evaluation();
    const auto only = [&all](std::int64_t model) {
        store::Evaluation one;
        one.models = {all.models[static_cast<std::size_t>(model)]};
        for (auto result : all.results) {
            if (result.model != model) continue;
            result.model = 0;
            one.results.push_back(result);
        }
        return std::make_shared<const store::Evaluation>(std::move(one));
    };
    FigureInputs inputs;
    inputs.evaluations = {only(2), only(0), only(1)};
    FigureOptions options;
    options.names = {"half", "attention", ""};
    const auto figure = make_figure("tasks", inputs, options);
    const auto table = figure.table();
    const auto &models = column<std::vector<std::string>>(table, "model"),
               &mixers = column<std::vector<std::string>>(table, "mixer"),
               &layouts = column<std::vector<std::string>>(table, "layout");
    for (std::size_t i = 0; i < models.size(); ++i) {
        if (models[i] == "attention") CHECK(mixers[i] == "standard");
        if (models[i] == "half") CHECK(layouts[i] == "even");
        CHECK(models[i] != "mlp-even");
    }
    std::set<std::string> rows;
    for (const auto& tick : figure.panels[0].y.ticks) rows.insert(tick.label);
    CHECK(rows == std::set<std::string>{"attention", "half", "MLP uniform"});
    CHECK(figure.latex().find("half") != std::string::npos);
}

TEST_CASE("Models of one mixer and layout are called by their names", "[figures][evaluation]") {
    auto record = sample_long_evaluation();
    for (std::size_t i = 0; i < record.models.size(); ++i) {
        record.models[i].mixer = "standard";
        record.models[i].parameters += static_cast<std::int64_t>(i);
    }
    FigureInputs inputs;
    inputs.evaluations.push_back(std::make_shared<const store::Evaluation>(record));
    const auto figure = make_figure("ruler", inputs, {});
    REQUIRE(figure.legend.size() == 3);
    CHECK(figure.legend[1].name == "gated_deltanet");
}
