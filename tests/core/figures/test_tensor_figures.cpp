// SPDX-License-Identifier: GPL-3.0-or-later
// Histograms of tensors, on made-up counts.
#include <catch2/catch.hpp>

#include "core/figures/make_figure.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/figures/sample_tensors.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::test;

namespace {

FigureData draw(std::vector<TensorSpread> tensors) {
    FigureInputs inputs;
    inputs.tensors = std::move(tensors);
    return make_figure("tensors", inputs, {});
}

const Curve& bars(const Panel& panel) {
    const auto& curves = std::get<Curves>(panel.content).curves;
    REQUIRE(curves.size() == 1);
    return curves.front();
}

TensorSpread with_counts(std::vector<double> edges, std::vector<std::int64_t> counts) {
    auto summary = std::make_shared<checkpoint::TensorSummary>();
    summary->edges = std::move(edges);
    summary->counts = std::move(counts);
    return {"model", "tensor", "F32", {}, summary};
}

}  // namespace

TEST_CASE("A bin is as high as its count, and what is empty ends at the axis", "[figures][tensors]") {
    const auto figure = draw({with_counts({-1, 0, 2, 4}, {3, 0, 12})});
    REQUIRE(figure.panels.size() == 1);
    const Panel& panel = figure.panels.front();
    CHECK(figure.title == "tensor");
    CHECK(panel.y.scale == ScaleKind::logarithmic);
    const Curve& curve = bars(panel);
    CHECK(curve.filled);
    CHECK(curve.x == std::vector<double>{-1, -1, 0, 0, 2, 2, 4, 4});
    const double bottom = panel.y.range->first;
    CHECK((bottom > 0 && bottom < 1));
    CHECK(curve.y == std::vector<double>{bottom, 3, 3, bottom, bottom, 12, 12, bottom});
    CHECK(panel.y.range->second > 12);
    CHECK((panel.x.range->first < -1 && panel.x.range->second > 4));
    CHECK(figure.text_table->rows.front()[1] == "F32 one number");
    CHECK(figure.text_table->header.back() == "L2 norm");
    CHECK(figure.notes.back() == "No zeros, NaN, +inf, -inf.");
}

TEST_CASE("Checkpoints stand side by side on equal axes, with a place for what one lacks", "[figures][tensors]") {
    const auto inputs = sample_tensors();
    const auto figure = make_figure("tensors", inputs, {});
    CHECK(figure.columns == 2);
    CHECK(figure.column_labels == std::vector<std::string>{"first", "second"});
    REQUIRE(figure.panels.size() == 4);
    for (const std::size_t row : {0, 2}) {
        CHECK(figure.panels[row].title == figure.panels[row + 1].title);
        CHECK(figure.panels[row].x.range == figure.panels[row + 1].x.range);
        CHECK(figure.panels[row].y.range == figure.panels[row + 1].y.range);
    }
    CHECK(figure.panels[0].x.range->second > 3);  // the wider one's
    CHECK(bars(figure.panels[3]).x.empty());
    CHECK(figure.panels[2].title == "norm.weight");  // all begin with "model."
    CHECK(figure.notes.front() == "Names begin with model.");
    CHECK(figure.text_table->rows.size() == 3);
    CHECK(figure.text_table->rows[2] == std::vector<std::string>{"second", "layers.0.self_attn.q_proj.weight",
                                                                 "BF16 64 × 48", "-3", "3", "0.125", "0.25", "31.5",
                                                                 "7", "2", "1"});
}

TEST_CASE("Tensors of one value, or of none that is finite, have a panel", "[figures][tensors]") {
    const auto one = draw({with_counts({5, 5}, {9})});
    const auto& range = *one.panels.front().x.range;
    CHECK((range.first < 5 && range.second > 5));
    const Curve& curve = bars(one.panels.front());
    CHECK(curve.x.front() < curve.x.back());
    const double bottom = one.panels.front().y.range->first;
    CHECK(curve.y == std::vector<double>{bottom, 9, 9, bottom});
    const auto none = draw({with_counts({}, {})});
    CHECK(bars(none.panels.front()).x.empty());
    CHECK(none.panels.front().x.range->first < none.panels.front().x.range->second);
    CHECK(figure_csv(none).find("model,tensor,minimum,,,\r\n") != std::string::npos);
}

TEST_CASE("Numbers of a histogram: a row a bin, a row a number", "[figures][tensors]") {
    const std::string text = figure_csv(draw({sample_tensor("first", "w", 2, 1)}));
    CHECK(text ==
          "model,tensor,quantity,low,high,value\r\nfirst,w,values,-1,0,135\r\nfirst,w,values,0,1,1\r\n"
          "first,w,minimum,,,-1\r\nfirst,w,maximum,,,1\r\nfirst,w,mean,,,0.125\r\nfirst,w,deviation,,,0.25\r\n"
          "first,w,norm,,,31.5\r\nfirst,w,zeros,,,7\r\nfirst,w,nans,,,2\r\nfirst,w,positive_infinities,,,0\r\n"
          "first,w,negative_infinities,,,1\r\n");
}

TEST_CASE("A name with control characters is written, not obeyed", "[figures][tensors]") {
    const auto figure = draw({sample_tensor("model", "a\nb\x1b[31m")});
    CHECK(figure.title.find('\n') == std::string::npos);
    CHECK(figure.title.find('\x1b') == std::string::npos);
}

TEST_CASE("The figure wants checkpoints alone", "[figures][tensors]") {
    CHECK_THROWS_MATCHES(make_figure("tensors", FigureInputs(), {}), Error, IsError(ErrorCode::usage, "found none"));
    CHECK_THROWS_MATCHES(make_figure("loss", sample_tensors(), {}), Error,
                         IsError(ErrorCode::usage, "found checkpoints"));
}
