// SPDX-License-Identifier: GPL-3.0-or-later
// Types of chunks as figures, on a made-up analysis whose types are known.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/figures/make_figure.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_recurrent.h"

using namespace headscope;
using namespace headscope::figures;
using File = std::shared_ptr<store::AnalysisFile>;

namespace {

File sample(const test::TemporaryFolder& folder, const std::string& name = "a", const tests::RecurrentSample& r = {}) {
    const auto path = folder / (name + ".headscope.h5");
    tests::write_recurrent_analysis(path, r);
    return store::AnalysisFile::open(path);
}

std::string refusal(const std::vector<File>& files, const FigureOptions& options = {}) {
    try {
        make_figure("token-types", files, options);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::usage);
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("Softmax fractions by layer and head, texts and files side by side", "[figures][token_types]") {
    const test::TemporaryFolder folder;
    tests::RecurrentSample other;
    other.seed = 2;
    other.model_name = "other";
    const std::vector<File> files{sample(folder), sample(folder, "b", other)};
    const auto one = make_figure("token-types", std::vector{files[0]}, {});
    REQUIRE(one.panels.size() == 1);
    const auto& map = std::get<HeatMap>(one.panels[0].content);
    CHECK(map.rows == 1);  // one layer has types
    REQUIRE(map.columns == 4);
    // 24 tokens are three chunks; head h has its first (h + 1) mod 4 of them softmax.
    for (std::size_t h = 0; h < 4; ++h) {
        CHECK(map.values[h] == static_cast<float>(static_cast<double>((h + 1) % 4) / 3));
        CHECK(static_cast<double>(map.values[h]) ==
              Approx(files[0]->indicator("softmax_fraction").data[tests::kLinearBranch * 4 + h]));
    }
    CHECK(map.colours.minimum == 0);
    CHECK(map.colours.maximum == 1);
    CHECK(one.panels[0].y.ticks[0].label == "0 linear");

    FigureOptions all;
    all.all_sequences = true;
    const auto four = make_figure("token-types", files, all);
    REQUIRE(four.panels.size() == 4);
    CHECK(four.panels[1].title == "recurrent, sequence 1");
    CHECK(four.panels[2].title == "other, sequence 0");
    CHECK(std::get<HeatMap>(four.panels[2].content).values[0] == Approx(2.0 / 3));
    const std::string csv = figure_csv(four);
    CHECK(csv.starts_with("model,sequence,layer,head,chunks,softmax_fraction"));
    CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 4 * 4);
}

TEST_CASE("Of a layer the type of every chunk, of a head the text", "[figures][token_types]") {
    const test::TemporaryFolder folder;
    const auto file = sample(folder);
    FigureOptions options;
    options.layer = 0;
    options.sequence = 1;  // 19 tokens: the third chunk has three
    const auto chunks = make_figure("token-types", std::vector{file}, options);
    const auto& map = std::get<HeatMap>(chunks.panels.at(0).content);
    CHECK(map.rows == 4);
    CHECK(map.columns == 3);
    CHECK(map.values == std::vector<float>{1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0});
    CHECK(chunks.panels[0].x.cells_per_value == 1.0 / 8);
    CHECK(figure_csv(chunks).find("recurrent,1,0,3,1,8,linear") != std::string::npos);
    options.head = 3;
    const auto text = make_figure("token-types", std::vector{file}, options);
    const auto& block = std::get<TextBlock>(text.panels.at(0).content);
    std::vector<float> values;
    for (const auto& chip : block.chips) values.insert(values.end(), chip.values.begin(), chip.values.end());
    REQUIRE(values.size() == 19);
    for (std::size_t i = 0; i < 19; ++i) CHECK(values[i] == (i < 8 ? 1.0F : 0.0F));
}

TEST_CASE("Two texts are compared by their softmax fractions", "[figures][token_types]") {
    const test::TemporaryFolder folder;
    const auto file = sample(folder);
    FigureOptions options;
    options.indicator = "softmax_fraction";
    options.sequence = 0;
    options.other_sequence = 1;
    const auto figure = make_figure("difference", std::vector{file, file}, options);
    const auto& map = std::get<HeatMap>(figure.panels.at(0).content);
    // Sequence 0: 1, 2, 3, 0 of three chunks; sequence 1: 2, 3, 0, 1.
    const std::vector<double> expected{1.0 / 3, 1.0 / 3, -1.0, 1.0 / 3};
    REQUIRE(map.columns == 4);
    for (std::size_t h = 0; h < 4; ++h)
        CHECK(static_cast<double>(map.values[tests::kLinearBranch * 4 + h]) == Approx(expected[h]).epsilon(1e-6));
}

TEST_CASE("Weights of the branches by token: of layers, of heads", "[figures][branch_weights]") {
    const test::TemporaryFolder folder;
    const auto file = sample(folder);
    const auto layers = make_figure("branch-weights", std::vector{file}, {});
    REQUIRE(layers.panels.size() == 2);
    CHECK(layers.panels[0].title == "softmax");
    const auto& mean = std::get<Curves>(layers.panels[0].content).curves;
    REQUIRE(mean.size() == 1);
    CHECK(mean[0].name == "layer 0");
    REQUIRE(mean[0].y.size() == 24);
    // Sample: the linear weight of head h at token i is 0.5 + 0.4 sin(24 h + i).
    const auto softmax = [](int h, int i) {
        return static_cast<double>(1 - (0.5F + 0.4F * std::sin(static_cast<float>(24 * h + i))));
    };
    CHECK(mean[0].y[5] == Approx((softmax(0, 5) + softmax(1, 5)) / 2).epsilon(1e-6));
    FigureOptions options;
    options.layer = 0;
    const auto heads = make_figure("branch-weights", std::vector{file}, options);
    const auto& curves = std::get<Curves>(heads.panels[1].content).curves;
    REQUIRE(curves.size() == 2);
    CHECK(curves[1].name == "head 1");
    CHECK(curves[1].y[7] == Approx(1 - softmax(1, 7)).epsilon(1e-6));
    CHECK(figure_csv(heads).starts_with("model,layer,head,position,linear,softmax"));
    tests::RecurrentSample bare;
    bare.record = {};
    try {
        make_figure("branch-weights", std::vector{sample(folder, "bare", bare)}, {});
        FAIL("was drawn");
    } catch (const Error& error) {
        CHECK(std::string(error.what()).find("--record branch-weights") != std::string::npos);
    }
}

TEST_CASE("Files and layers without types are refused", "[figures][token_types]") {
    const test::TemporaryFolder folder;
    tests::write_synthetic_analysis(folder / "plain.headscope.h5");
    CHECK(refusal({store::AnalysisFile::open(folder / "plain.headscope.h5")}).find("NAtS-L") != std::string::npos);
    const auto file = sample(folder);
    FigureOptions options;
    options.layer = 1;
    CHECK(refusal({file}, options).find("found 1") != std::string::npos);
    options.layer = 0;
    options.head = 4;
    CHECK(!refusal({file}, options).empty());
}
