// SPDX-License-Identifier: GPL-3.0-or-later
// The load of experts, counted by hand.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/figures/make_figure.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"

using namespace headscope;
using namespace headscope::figures;
using File = std::shared_ptr<store::AnalysisFile>;

namespace {

/// Two sequences of 4 and 2 tokens, three experts of which a token has two; layer 0 has none, layer 2 was not reached.
File by_hand(const test::TemporaryFolder& folder) {
    tests::SyntheticAnalysis a;
    a.lengths = {4, 2};
    a.record.experts = true;
    a.experts = 3;
    const auto path = folder / "a.headscope.h5";
    store::AnalysisWriter writer(path, tests::synthetic_header(a));
    writer.write_experts(0, 1, std::vector<std::int16_t>{0, 1, 0, 1, 0, 1, 0, 2},
                         std::vector<float>{0.75F, 0.25F, 0.75F, 0.25F, 0.5F, 0.5F, 1.0F, 0.0F});
    writer.write_experts(1, 1, std::vector<std::int16_t>{2, 1, 2, 1}, std::vector<float>{0.5F, 0.5F, 0.5F, 0.5F});
    writer.publish();
    return store::AnalysisFile::open(path);
}

std::string refusal(const std::vector<File>& files, const FigureOptions& options = {}) {
    try {
        make_figure("experts", files, options);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::usage);
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("The load is the share of tokens by expert and layer, with an even one marked", "[figures][experts]") {
    const test::TemporaryFolder folder;
    const auto figure = make_figure("experts", std::vector{by_hand(folder)}, {});
    REQUIRE(figure.panels.size() == 2);
    const auto& map = std::get<HeatMap>(figure.panels[0].content);
    REQUIRE(map.rows == 3);
    REQUIRE(map.columns == 3);
    for (std::size_t expert = 0; expert < 3; ++expert) {
        CHECK(std::isnan(map.values[3 * expert]));
        CHECK(std::isnan(map.values[3 * expert + 2]));
    }
    CHECK(map.values[1] == 1.0F);
    CHECK(map.values[4] == 0.75F);
    CHECK(map.values[7] == 0.25F);
    CHECK(map.colours.maximum == 1.0);
    REQUIRE(map.colours.mark.has_value());
    CHECK(map.colours.mark->position == Approx(2.0 / 3));
    // Eight picks: 4, 3 and 1 of them.
    const double entropy = -(0.5 * std::log(0.5) + 0.375 * std::log(0.375) + 0.125 * std::log(0.125));
    const auto& curves = std::get<Curves>(figure.panels[1].content);
    CHECK(curves.curves[0].y[1] == Approx(std::exp(entropy)));
    CHECK(std::isnan(curves.curves[0].y[0]));
    CHECK(figure_csv(figure) ==
          "model,layer,expert,tokens,share,weight\r\n"
          "synthetic,1,0,4,1,0.75\r\nsynthetic,1,1,3,0.75,0.25\r\nsynthetic,1,2,1,0.25,0\r\n");
}

TEST_CASE("All sequences are counted together, and one layer has a bar an expert", "[figures][experts]") {
    const test::TemporaryFolder folder;
    const auto file = by_hand(folder);
    FigureOptions options;
    options.all_sequences = true;
    options.layer = 1;
    const auto figure = make_figure("experts", std::vector{file}, options);
    REQUIRE(figure.panels.size() == 2);
    const auto& tokens = std::get<Curves>(figure.panels[0].content).curves.front();
    REQUIRE(tokens.y.size() == 12);
    CHECK(tokens.y[1] == Approx(4.0 / 6));
    CHECK(tokens.y[5] == Approx(5.0 / 6));
    CHECK(tokens.y[9] == Approx(3.0 / 6));
    const auto& weight = std::get<Curves>(figure.panels[1].content).curves.front();
    CHECK(weight.y[1] == Approx(3.0 / 6));
    CHECK(weight.y[5] == Approx(2.0 / 6));
    CHECK(weight.y[9] == Approx(1.0 / 6));
    CHECK(figure.panels[0].markers.front().position == Approx(2.0 / 3));
    CHECK(figure.panels[1].markers.front().position == Approx(1.0 / 3));
}

TEST_CASE("Loads of two models stand side by side on one scale", "[figures][experts]") {
    const test::TemporaryFolder folder;
    tests::SyntheticAnalysis a;
    a.record.experts = true;
    a.experts = 16;
    a.model_name = "other";
    a.plain_layers = {0};
    tests::write_synthetic_analysis(folder / "b.headscope.h5", a);
    const auto figure =
        make_figure("experts", std::vector{by_hand(folder), store::AnalysisFile::open(folder / "b.headscope.h5")}, {});
    REQUIRE(figure.panels.size() == 4);
    CHECK(figure.columns == 2);
    CHECK(std::get<HeatMap>(figure.panels[1].content).colours.maximum ==
          std::get<HeatMap>(figure.panels[0].content).colours.maximum);
    CHECK(std::get<HeatMap>(figure.panels[1].content).colours.mark->position == Approx(2.0 / 16));
}

TEST_CASE("Loads that a file lacks are refused with what it has", "[figures][experts]") {
    const test::TemporaryFolder folder;
    const auto file = by_hand(folder);
    FigureOptions options;
    options.layer = 3;
    CHECK(refusal({file}, options).find("expected 0 to 2") != std::string::npos);
    options.layer = 0;
    CHECK(refusal({file}, options).find("a layer with experts") != std::string::npos);
    options.layer.reset();
    options.sequence = 2;
    CHECK(refusal({file}, options).find("--sequence") != std::string::npos);
    tests::write_synthetic_analysis(folder / "b.headscope.h5");
    CHECK(refusal({store::AnalysisFile::open(folder / "b.headscope.h5")}).find("--record experts") !=
          std::string::npos);
}
