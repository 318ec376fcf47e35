// SPDX-License-Identifier: GPL-3.0-or-later
// Biases by distance, offsets and the mass of rows, on made-up analyses whose numbers are known.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/core/figures/figure_files.h"
#include "tests/core/store/synthetic_lazy.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::tests;
using File = std::shared_ptr<store::AnalysisFile>;

namespace {

File sample(const FigureFiles& folder, const LazySample& wish = {}, const std::string& name = "a") {
    const auto path = folder / (name + ".headscope.h5");
    write_lazy_analysis(path, wish);
    return store::AnalysisFile::open(path);
}

const Curves& curves(const FigureData& figure, std::size_t panel) {
    return std::get<Curves>(figure.panels.at(panel).content);
}

}  // namespace

TEST_CASE("A learned bias with slopes is drawn as their sum", "[figures][bias]") {
    const FigureFiles folder;
    LazySample both;
    both.slopes = true;
    const auto figure = make_figure("bias", std::vector{sample(folder, both)}, {});
    REQUIRE(figure.panels.size() == 3);
    for (std::size_t layer = 0; layer < 3; ++layer) {
        for (std::size_t h = 0; h < 4; ++h) {
            const Curve& curve = curves(figure, layer).curves.at(h);
            REQUIRE(curve.y.size() == 64);
            for (const std::int64_t at : {0, 1, 40, 63}) {
                const double bias = lazy_bias(static_cast<std::int64_t>(layer), static_cast<std::int64_t>(h), at);
                const double slope = lazy_slope(static_cast<std::int64_t>(h));
                CHECK(curve.y[static_cast<std::size_t>(at)] == Approx(bias - slope * static_cast<double>(at)));
            }
        }
    }
    CHECK(noted(figure, "minus slope times distance"));
    CHECK_FALSE(noted(make_figure("bias", std::vector{sample(folder, {}, "learned")}, {}), "minus slope"));
}

TEST_CASE("Learned biases: a panel a layer, a curve a head", "[figures][bias]") {
    const FigureFiles folder;
    const auto file = sample(folder);
    const auto figure = make_figure("bias", std::vector{file}, {});
    REQUIRE(figure.panels.size() == 3);
    CHECK(figure.panels[1].title == "Layer 1");
    CHECK(figure.panels[0].x.scale == ScaleKind::symmetric_log);
    CHECK(figure.panels[0].x.range == std::pair(0.0, 63.0));
    // One scale: layer 0's last head is the lowest anywhere.
    CHECK(figure.panels[0].y.range == figure.panels[2].y.range);
    CHECK(figure.panels[0].y.range->first < static_cast<double>(lazy_bias(0, 3, 63)));
    for (std::size_t layer = 0; layer < 3; ++layer) {
        REQUIRE(curves(figure, layer).curves.size() == 4);
        for (std::size_t h = 0; h < 4; ++h) {
            const Curve& curve = curves(figure, layer).curves[h];
            CHECK(curve.name == "head " + std::to_string(h));
            REQUIRE(curve.y.size() == 64);
            for (const std::int64_t at : {0, 1, 40, 63})
                CHECK(
                    curve.y[static_cast<std::size_t>(at)] ==
                    static_cast<double>(lazy_bias(static_cast<std::int64_t>(layer), static_cast<std::int64_t>(h), at)));
        }
    }
    const std::string csv = figure_csv(figure);
    CHECK(csv.starts_with("model,layer,panel,head,distance,bias"));
    CHECK(lines(csv) == 1 + 3 * 4 * 64);

    FigureOptions one;
    one.layer = 2;
    one.head = 3;
    one.distance = ScaleKind::linear;
    const auto single = make_figure("bias", std::vector{file}, one);
    REQUIRE(single.panels.size() == 1);
    CHECK(single.panels[0].x.scale == ScaleKind::linear);
    REQUIRE(curves(single, 0).curves.size() == 1);
    CHECK(curves(single, 0).curves[0].y[5] == static_cast<double>(lazy_bias(2, 3, 5)));
    one.head = 4;
    CHECK(refusal("bias", {file}, one).find("--head") != std::string::npos);
    CHECK(refusal("bias", {folder.analysis("plain", {})}).find("ALiBi") != std::string::npos);
}

TEST_CASE("Slopes and tables of both directions are drawn alike, equal layers once", "[figures][bias]") {
    const FigureFiles folder;
    const auto file = sample(folder, alibi_sample());
    const auto figure = make_figure("bias", std::vector{file}, {});
    REQUIRE(figure.panels.size() == 1);
    CHECK(figure.panels[0].title == "Layers 0 to 2");
    CHECK(noted(figure, "ALiBi: slope times distance, unbounded"));
    const Curve& curve = curves(figure, 0).curves.at(1);
    CHECK(curve.x.back() == 511);
    CHECK(curve.y.back() == -511.0 / 4);
    CHECK(curve.y.front() == 0);
    // Beyond the first distances only as many points as can be distinguished.
    CHECK(curve.x.size() < 512);
    CHECK(curve.x[100] == 100);
    CHECK(lines(figure_csv(figure)) == 1 + 3 * 4 * 512);

    LazySample both;
    both.first = -8;
    both.window = 17;
    both.analysis.causal = false;
    const auto two = make_figure("bias", std::vector{file, sample(folder, both, "b")}, {});
    REQUIRE(two.panels.size() == 4);
    CHECK(two.panels[0].title == "Layers 0 to 2 · alibi");
    CHECK(two.panels[1].x.range == std::pair(-8.0, 8.0));
    CHECK(curves(two, 1).curves[2].x.front() == -8);
    CHECK(curves(two, 1).curves[2].y.front() == static_cast<double>(lazy_bias(0, 2, -8)));
}

TEST_CASE("Offsets: violins with means, heat map", "[figures][offsets]") {
    const FigureFiles folder;
    const auto file = sample(folder);
    const auto figure = make_figure("offsets", std::vector{file}, {});
    REQUIRE(figure.panels.size() == 2);
    const auto& violins = std::get<Ridges>(figure.panels[0].content);
    CHECK(violins.mirrored);
    REQUIRE(violins.ridges.size() == 3);
    CHECK(violins.ridges[1].name == "1");
    CHECK(violins.ridges[1].minimum == -1.75);
    CHECK(violins.ridges[1].maximum == -1);
    CHECK(violins.ridges[1].mean == Approx(-1.375));
    const auto& map = std::get<HeatMap>(figure.panels[1].content);
    CHECK(map.rows == 3);
    CHECK(map.columns == 4);
    CHECK(map.values[2 * 4 + 3] == lazy_offset(2, 3));
    CHECK(map.colours.map == ColourMap::sequential);
    CHECK(lines(figure_csv(figure)) == 1 + 12);
    CHECK(refusal("offsets", {folder.analysis("plain", {})}).find("elastic") != std::string::npos);
}

TEST_CASE("A violin is scipy's Gaussian kernel density", "[figures][offsets]") {
    const FigureFiles folder;
    LazySample wish;
    wish.analysis.heads = 5;
    wish.analysis.key_value_heads = 1;
    wish.analysis.layers = 1;
    const auto path = folder / "five.headscope.h5";
    {
        const store::AnalysisHeader header = lazy_header(wish);
        store::AnalysisWriter writer(path, header);
        writer.write_parameters(0, std::vector<float>{-1.25F, -1.0F, -0.75F, -3.5F, -1.0625F}, {}, {});
        writer.publish();
    }
    const auto figure = make_figure("offsets", std::vector{store::AnalysisFile::open(path)}, {});
    const Ridge& violin = std::get<Ridges>(figure.panels[0].content).ridges.at(0);
    REQUIRE(violin.heights.size() == 100);
    // scipy 1.17: gaussian_kde([-1.25, -1, -0.75, -3.5, -1.0625]) at the middles of 100 equal steps from -3.5 to -0.75.
    const std::array<std::pair<std::size_t, double>, 5> scipy{{{0, 0.10256545202732445},
                                                               {25, 0.1066414441175647},
                                                               {50, 0.18474309236092404},
                                                               {91, 0.3826509566404459},
                                                               {99, 0.36534326538966405}}};
    // Some dozen roundings of numbers of about 1.
    for (const auto& [at, density] : scipy) CHECK(violin.heights[at] == Approx(density).epsilon(1e-13));
}

TEST_CASE("Mass of rows: stacked bars, zeros, the columns of a table", "[figures][mass]") {
    const FigureFiles folder;
    const auto file = sample(folder);
    const auto figure = make_figure("mass", std::vector{file}, {});
    REQUIRE(figure.panels.size() == 2);
    const auto& bars = curves(figure, 0).curves;
    REQUIRE(bars.size() == 3);  // no learned sink
    CHECK(bars[0].name == "released");
    CHECK(bars[2].name == "first key (sink)");
    CHECK(figure.legend.size() == 3);
    const auto sink = file->indicator("sink").data, density = file->indicator("density").data;
    REQUIRE(bars[2].y.size() == 3 * 4 * 4);
    for (std::size_t bar = 0; bar < 12; ++bar) {
        CHECK(bars[2].y[4 * bar + 1] == Approx(sink[bar]));
        CHECK(bars[1].y[4 * bar + 1] == Approx(sink[bar] + density[bar]));
        CHECK(bars[0].y[4 * bar + 1] == Approx(1.0));
        CHECK(bars[0].y[4 * bar] == 0);
        CHECK(std::floor(bars[0].x[4 * bar] + 0.5) == static_cast<double>(bar / 4));
    }
    const auto& zeros = curves(figure, 1).curves;
    REQUIRE(zeros.size() == 2);
    CHECK(zeros[1].y[4 + 3] == Approx(0.5 + 0.375 / 2));
    CHECK(zeros[0].y[0] == Approx(0.5 + (0.125 + 0.25 + 0.375) / 4));
    REQUIRE(figure.text_table.has_value());
    CHECK(figure.text_table->header ==
          std::vector<std::string>{"model", "loss", "density (%)", "sink (%)", "released (%)", "zeros (%)"});
    REQUIRE(figure.text_table->rows.size() == 1);
    double released = 0;
    for (std::size_t h = 0; h < 12; ++h) released += (1 - sink[h]) / 2 / 12;
    CHECK(std::stod(figure.text_table->rows[0][4]) == Approx(100 * released).epsilon(1e-3));
    const std::string csv = figure_csv(figure);
    CHECK(csv.starts_with("model,layer,site,head,loss,sink,density,virtual_sink,released,zero_fraction"));
    CHECK(lines(csv) == 1 + 1 + 3 * (1 + 4));

    FigureOptions one;
    one.layer = 1;
    const auto layer = make_figure("mass", std::vector{file}, one);
    CHECK(curves(layer, 0).curves[0].y.size() == 4 * 4);
    CHECK(layer.panels[0].x.label == "head");
    one.head = 2;
    CHECK(curves(make_figure("mass", std::vector{file}, one), 0).curves[0].y.size() == 4);
    // A softmax releases nothing.
    const auto plain = make_figure("mass", std::vector{folder.analysis("plain", {})}, {});
    CHECK(curves(plain, 0).curves.size() == 2);
    CHECK(noted(plain, "; the sum is 1."));
}
