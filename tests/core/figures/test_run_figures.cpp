// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of runs on made-up ones.
#include <algorithm>
#include <catch2/catch.hpp>

#include "core/base/series.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/figures/figure_parts.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::test;

TEST_CASE("One run's loss: steps thin, their mean wide, validation as dots on a line, in one panel", "[figures][run]") {
    const auto run = sample_record("a");
    const auto figure = of_runs("loss", {run});
    CHECK(figure.recipe == "loss");
    REQUIRE(figure.panels.size() == 1);
    const auto& drawn = curves(figure.panels[0]);
    REQUIRE(drawn.size() == 4);
    CHECK(drawn[0].faint);
    CHECK(drawn[0].y == run.training.loss);
    CHECK(drawn[1].y == running_mean(run.training.loss, 8));
    CHECK(drawn[2].y == run.validation.loss);
    CHECK(drawn[2].x.back() == 400);
    CHECK(drawn[3].points);
    const auto table = figure.table();
    CHECK(table.rows() == 420);
    CHECK(column<std::vector<double>>(table, "loss")[3] == run.training.loss[3]);
}

TEST_CASE("Several runs are overlaid, training beside validation, against tokens or time as asked for",
          "[figures][run]") {
    FigureOptions options;
    options.against = Against::tokens;
    options.smooth = 1;
    const auto figure =
        of_runs("loss", {sample_record("a"), sample_record("a", 200), sample_record("b", 100)}, options);
    REQUIRE(figure.panels.size() == 2);
    REQUIRE(curves(figure.panels[0]).size() == 3);
    CHECK(curves(figure.panels[0])[0].x.back() == 400 * 4096.0);
    CHECK(curves(figure.panels[1])[0].x.front() == 20 * 4096.0);
    CHECK(figure.legend.size() == 3);
    CHECK(figure.legend[0].name == "a (1)");
    CHECK(figure.legend[2].name == "b");
    options.against = Against::time;
    CHECK(curves(of_runs("loss", {sample_record("a")}, options).panels[0])[0].x.back() == Approx(80));
}

TEST_CASE("Runs have their jobs' names, and are distinguished by their folders", "[figures][run]") {
    const auto called = [](const std::string& folder, const std::string& title) {
        auto run = sample_record(folder, 40);
        run.title = title;
        return run;
    };
    CHECK(of_runs("loss", {called("a", "Standard, seed 1")}).title == "Loss of Standard, seed 1");
    const auto figure = of_runs("loss", {called("a", "Standard"), called("b", "MLP"), called("c", "Standard"),
                                         called("d", ""), called("MLP", "MLP"), called("d", "")});
    std::vector<std::string> names;
    for (const auto& entry : figure.legend) names.push_back(entry.name);
    CHECK(names == std::vector<std::string>{"Standard (a)", "MLP (b)", "Standard (c)", "d (1)", "MLP", "d (2)"});
    CHECK(column<std::vector<std::string>>(figure.table(), "run").front() == "Standard (a)");
}

TEST_CASE("A run without a step or a validation is drawn as what it is", "[figures][run]") {
    store::RunRecord empty;
    empty.name = "new";
    CHECK(of_runs("loss", {empty}).panels.size() == 1);
    CHECK(figure_csv(of_runs("loss", {empty})).starts_with("run,of,step"));
}

TEST_CASE("The timeline has a curve a layer for each spoke of the radar", "[figures][run]") {
    const auto run = sample_record("a");
    const auto figure = of_runs("timeline", {run});
    REQUIRE(figure.panels.size() == 8);
    CHECK(figure.panels[0].title == "Entropy");
    REQUIRE(curves(figure.panels[0]).size() == 3);
    CHECK(curves(figure.panels[0])[1].y[0] == Approx(900 + 40 + 90));  // the mean over heads, by hand
    CHECK(curves(figure.panels[0])[2].x.empty());                      // a layer without a matrix
    CHECK(column<std::vector<double>>(figure.table(), "value").size() == 8 * 3 * 9);
}

TEST_CASE("The timeline of one indicator, of one layer's heads, of one head", "[figures][run]") {
    FigureOptions options;
    options.indicator = "local_focus_2";
    options.layer = 1;
    const auto heads = of_runs("timeline", {sample_record("a")}, options);
    REQUIRE(heads.panels.size() == 1);
    REQUIRE(curves(heads.panels[0]).size() == 4);
    CHECK(curves(heads.panels[0])[2].y.back() > curves(heads.panels[0])[1].y.back());
    options.head = 2;
    CHECK(curves(of_runs("timeline", {sample_record("a")}, options).panels[0]).size() == 1);
    options.head = 9;
    CHECK_THROWS_MATCHES(of_runs("timeline", {sample_record("a")}, options), Error,
                         IsError(ErrorCode::usage, "--head"));
    options.head.reset();
    options.layer = 9;
    CHECK_THROWS_MATCHES(of_runs("timeline", {sample_record("a")}, options), Error,
                         IsError(ErrorCode::usage, "0 to 2"));
    options.layer.reset();
    options.indicator = "beauty";
    CHECK_THROWS_MATCHES(of_runs("timeline", {sample_record("a")}, options), Error,
                         IsError(ErrorCode::usage, "entropy"));
    store::RunRecord none = sample_record("a");
    none.probes = {};
    CHECK_THROWS_MATCHES(of_runs("timeline", {none}), Error, IsError(ErrorCode::usage, "[probe]"));
}

TEST_CASE("At a step the timeline shows each layer's radar and its heads' thumbnails", "[figures][run]") {
    FigureOptions options;
    options.step = 120;
    const auto figure = of_runs("timeline", {sample_record("a")}, options);
    REQUIRE(figure.panels.size() == 8 + 3 + 2);  // the third layer has no matrix, with a note
    CHECK(std::get<Radar>(figure.panels[10].content).nothing == "no attention matrix");
    CHECK(figure.panels[0].markers[0].position == 100);
    const auto& radar = std::get<Radar>(figure.panels[8].content);
    CHECK(figure.panels[8].title == "Layer 0, step 100");
    // Sink of layer 0 after 100 steps, by hand; the extents are of the whole run.
    const double learned = 1 - std::exp(-100 / 150.0);
    CHECK(radar.series[0].values[7] == Approx(0.02 + 0.4 * learned * (1 + 1 / 2.0 + 1 / 3.0 + 1 / 4.0) / 4));
    const auto& mosaic = std::get<Mosaic>(figure.panels[11].content);
    CHECK(mosaic.rows * mosaic.columns == 4);
    CHECK(mosaic.size == 8);
    CHECK(mosaic.values[0] == 0.5F);
    CHECK_THROWS_MATCHES(of_runs("timeline", {sample_record("a"), sample_record("b")}, options), Error,
                         IsError(ErrorCode::usage, "one run"));
}

TEST_CASE("A recurrent layer's radar has the indicators that it has", "[figures][run]") {
    auto run = sample_record("a");
    run.sites[2].has_implicit = true;
    for (std::size_t k = 0; k < 2; ++k) {  // entropy and concentration
        auto& values = run.probes.indicators[k].values;
        for (std::size_t i = 8; i < values.size(); i += 12)
            for (std::size_t h = 0; h < 4; ++h) values[i + h] = 1000 + static_cast<double>(h);
    }
    FigureOptions options;
    options.step = 120;
    const auto figure = of_runs("timeline", {run}, options);
    const auto& radar = std::get<Radar>(figure.panels[10].content);
    CHECK(radar.nothing.empty());
    CHECK(std::isfinite(radar.series[0].values[0]));
    CHECK(radar.series[0].values[1] == 1);  // the most concentrated of all
    CHECK(std::isnan(radar.series[0].values[2]));
    CHECK(std::isnan(radar.series[0].values[7]));
    CHECK(std::any_of(figure.notes.begin(), figure.notes.end(),
                      [](const std::string& note) { return note.starts_with("Recurrent layers have H and C"); }));
}

TEST_CASE("Runs are drawn on the part, the scale and in the unit that are asked for", "[figures][run]") {
    const auto run = sample_record("a");
    const auto drawn = [&](FigureOptions options) { return of_runs("loss", {run}, options); };
    const auto curve = [](const FigureData& figure) -> const Curve& {
        const auto& all = std::get<Curves>(figure.panels.at(0).content).curves;
        return *std::find_if(all.begin(), all.end(), [](const Curve& one) { return !one.faint && !one.points; });
    };
    FigureOptions options;
    options.smooth = 1;
    const FigureData whole = drawn(options);
    options.from_x = 10;
    options.to_x = 30;
    const FigureData part = drawn(options);
    REQUIRE(!curve(part).x.empty());
    CHECK(curve(part).x.front() >= 10);
    CHECK(curve(part).x.back() <= 30);
    CHECK(part.panels[0].x.range == std::pair(10.0, 30.0));
    CHECK(part.panels[0].y.range != whole.panels[0].y.range);  // of what is drawn
    options.perplexity = true;
    const FigureData perplexity = drawn(options);
    REQUIRE(curve(perplexity).y.size() == curve(part).y.size());
    for (std::size_t i = 0; i < curve(part).y.size(); ++i)
        CHECK(curve(perplexity).y[i] == Approx(std::exp(curve(part).y[i])));
    CHECK(perplexity.panels[0].y.label == "perplexity");
    options.log_loss = true;
    CHECK(drawn(options).panels[0].x.scale == ScaleKind::logarithmic);
    CHECK(drawn(options).panels[0].y.scale == ScaleKind::logarithmic);
    options.from_x = 40;
    CHECK_THROWS_MATCHES(drawn(options), Error, IsError(ErrorCode::usage, "--to"));
    options.names = {"a long run"};
    options.from_x = 10;
    CHECK(drawn(options).title == "Loss of a long run");
}
