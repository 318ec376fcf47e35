// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of evaluations on long texts: perplexity by position, RULER, latency.
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <vector>

#include "tests/core/base/error_matcher.h"
#include "tests/core/figures/evaluation/evaluation_inputs.h"
#include "tests/core/figures/figure_parts.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::test;

TEST_CASE("Perplexity by position: a smoothed line a model over its buckets, the training length marked",
          "[figures][evaluation]") {
    const auto inputs = on_long_texts();
    const auto figure = make_figure("position-perplexity", inputs, {});
    REQUIRE(figure.panels.size() == 1);
    const auto& panel = figure.panels[0];
    CHECK(panel.x.scale == ScaleKind::logarithmic);
    REQUIRE(panel.markers.size() == 1);
    CHECK(panel.markers[0].position == 1024);
    CHECK(panel.markers[0].label == "trained at 1024");
    REQUIRE(curves(panel).size() == 6);  // a faint one and a wide one each
    CHECK(curves(panel)[0].faint);
    CHECK_FALSE(curves(panel)[3].faint);
    CHECK(curves(panel)[3].x.size() == 32);
    CHECK(curves(panel)[3].x.back() == 4096);
    // Two buckets by default: the geometric mean of the last two, by hand.
    CHECK(curves(panel)[3].y[1] == Approx(std::sqrt(30.0 * 25.5)));
    CHECK(figure.legend.size() == 3);
    CHECK(figure.legend[0].name == "Standard");
    const auto table = figure.table();
    CHECK(table.rows() == 96);
    CHECK(column<std::vector<double>>(table, "perplexity")[0] == 30);
    CHECK(column<std::vector<std::int64_t>>(table, "position")[1] == 256);
    FigureOptions options;
    options.smooth = 1;
    const auto raw = make_figure("position-perplexity", inputs, options);
    REQUIRE(curves(raw.panels[0]).size() == 3);
    CHECK(curves(raw.panels[0])[0].y[1] == Approx(25.5));
    // Every position may be a bucket.
    store::Evaluation fine;
    fine.models.push_back({});
    for (std::int64_t position = 2; position <= 5000; ++position)
        fine.results.push_back({0, "position_perplexity", "token_perplexity", position, 10, 0.1, 3});
    FigureInputs many;
    many.evaluations.push_back(std::make_shared<const store::Evaluation>(fine));
    const auto thin = make_figure("position-perplexity", many, {});
    CHECK(curves(thin.panels[0])[0].x.size() < 3000);
    CHECK(thin.table().rows() == 4999);
}

TEST_CASE("RULER: a panel a task, the mean of all last, lines by length, and a table", "[figures][evaluation]") {
    const auto inputs = on_long_texts();
    const auto figure = make_figure("ruler", inputs, {});
    REQUIRE(figure.panels.size() == 4);
    CHECK(figure.panels[0].title == "niah single 1");
    CHECK(figure.panels[3].title == "ruler retrieval");
    const auto& panel = figure.panels[0];
    CHECK(panel.markers.size() == 1);
    REQUIRE(curves(panel).size() == 6);
    CHECK(curves(panel)[0].y == std::vector<double>{0.9, 0.1, 0.1});
    CHECK(curves(panel)[1].points);
    CHECK(curves(panel)[1].error[0] == Approx(0.03));
    REQUIRE(figure.text_table.has_value());
    CHECK(figure.text_table->header.size() == 5);
    CHECK(figure.text_table->rows.size() == 12);
    CHECK(figure.text_table->rows[0][2] == "0.9");
    CHECK(figure.table().rows() == 36);
    FigureOptions options;
    options.task = "ruler_vt";
    CHECK(make_figure("ruler", inputs, options).panels.size() == 1);
    options.task = "niah_single_9";
    CHECK_THROWS_MATCHES(make_figure("ruler", inputs, options), Error,
                         IsError(ErrorCode::usage, "niah_single_1 score"));
    CHECK_THROWS_MATCHES(make_figure("ruler", evaluated(), {}), Error, IsError(ErrorCode::usage, "ruler_retrieval"));
}

TEST_CASE("Latency: reading and one more token, medians with bars from percentile to percentile",
          "[figures][evaluation]") {
    const auto figure = make_figure("latency", on_long_texts(), {});
    REQUIRE(figure.panels.size() == 2);
    for (const auto& panel : figure.panels) {
        CHECK(panel.x.scale == ScaleKind::logarithmic);
        CHECK(panel.y.scale == ScaleKind::logarithmic);
        REQUIRE(curves(panel).size() == 15);  // of each model three bars, a line, dots
    }
    const auto& drawn = curves(figure.panels[0]);
    CHECK(drawn[0].x == std::vector<double>{1024, 1024});
    CHECK(drawn[0].y[0] == Approx(0.9 * 1024e-5));
    CHECK(drawn[0].y[1] == Approx(1.2 * 1024e-5));
    CHECK(drawn[3].y[2] == Approx(1e-5 * 4096 * 4));
    CHECK(drawn[4].points);
    const auto table = figure.table();
    CHECK(table.rows() == 18);
    CHECK(column<std::vector<double>>(table, "cache_bytes")[0] == 2e5);
    CHECK_THROWS_MATCHES(make_figure("latency", evaluated(), {}), Error, IsError(ErrorCode::usage, "cost --latency"));
}

TEST_CASE("Results that have a figure of their own are in no other", "[figures][evaluation]") {
    auto inputs = on_long_texts();
    const auto figure = make_figure("context-perplexity", inputs, {});
    CHECK(figure.panels.size() == 4);  // RULER's tasks, at three lengths each
    FigureOptions options;
    options.task = "position_perplexity";
    CHECK_THROWS_MATCHES(make_figure("context-perplexity", inputs, options), Error,
                         IsError(ErrorCode::usage, "--task"));
}
