// SPDX-License-Identifier: GPL-3.0-or-later
// Differences of two analyses.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/core/figures/figure_files.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::tests;

namespace {

std::string mismatch(const std::vector<std::shared_ptr<store::AnalysisFile>>& files,
                     const FigureOptions& options = {}) {
    try {
        make_figure("difference", files, options);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::mismatch);
        return error.what();
    }
    return "";
}

struct Two {
    Two() {
        wish.record.maps = true;
        a = folder.analysis("a", wish);
        wish.seed = 5;
        wish.model_name = "other";
        b = folder.analysis("b", wish);
    }
    FigureFiles folder;
    SyntheticAnalysis wish;
    std::shared_ptr<store::AnalysisFile> a, b;
};

const HeatMap& cells(const FigureData& figure) {
    return std::get<HeatMap>(figure.panels.at(0).content);
}

}  // namespace

TEST_CASE("An indicator's difference is the second minus the first, symmetric around zero", "[figures][difference]") {
    const Two two;
    FigureOptions options;
    options.indicator = "sink";
    const auto figure = make_figure("difference", std::vector{two.a, two.b}, options);
    CHECK(figure.title == "Sink: other minus synthetic");
    const auto first = two.a->indicator("sink").data, second = two.b->indicator("sink").data;
    double most = 0;
    std::size_t where = 0;
    for (std::size_t i = 0; i < 12; ++i) {
        CHECK(cells(figure).values[i] == Approx(second[i] - first[i]).margin(1e-7));
        if (std::abs(second[i] - first[i]) <= most) continue;
        most = std::abs(second[i] - first[i]);
        where = i;
    }
    CHECK(cells(figure).colours.map == ColourMap::diverging);
    CHECK(cells(figure).colours.maximum == Approx(most));
    CHECK(cells(figure).colours.minimum == -cells(figure).colours.maximum);
    CHECK(noted(figure, "Differ most: " + std::to_string(where / 4) + "." + std::to_string(where % 4) + " "));
    const Table table = figure.table();
    CHECK(table.rows() == 12);
    CHECK(std::get<std::vector<std::int64_t>>(table.columns[7].values)[where] == 1);
}

TEST_CASE("Without a name all indicators are compared, by share of their ranges", "[figures][difference]") {
    const Two two;
    const auto figure = make_figure("difference", std::vector{two.a, two.b}, {});
    CHECK(figure.panels.size() == 14);
    CHECK(noted(figure, "left out: Sparsity"));
    CHECK(noted(figure, "by share of the indicator's range"));
    const auto same = make_figure("difference", std::vector{two.a, two.a}, {});
    CHECK(noted(same, "No head differs."));
    CHECK(same.panels.size() == 1);
    FigureOptions options;
    options.all_sequences = true;
    CHECK(make_figure("difference", std::vector{two.a, two.b}, options).table().columns.back().name == "deviation");
}

TEST_CASE("A head's maps are compared weight by weight", "[figures][difference]") {
    const Two two;
    FigureOptions options;
    options.layer = 1;
    options.head = 3;
    const auto figure = make_figure("difference", std::vector{two.a, two.b}, options);
    const auto first = make_figure("attention", std::vector{two.a}, options);
    const auto second = make_figure("attention", std::vector{two.b}, options);
    REQUIRE(cells(figure).values.size() == 576);
    for (std::size_t i = 0; i < 576; ++i) {
        const float expected = cells(second).values[i] - cells(first).values[i];
        if (std::isnan(expected) != std::isnan(cells(figure).values[i])) FAIL(i);
        if (!std::isnan(expected)) CHECK(cells(figure).values[i] == expected);
    }
    CHECK(figure.title == "Attention, layer 1, head 3: other minus synthetic");
    CHECK(figure.panels[0].x.cell_labels[0] == "␣the");
    CHECK(cells(figure).pooling == Pooling::extreme);
    options.pixels = 16;
    const auto pooled = make_figure("difference", std::vector{two.a, two.b}, options);
    std::vector<float> most(256, NAN);
    for (std::size_t r = 0; r < 24; ++r) {
        for (std::size_t c = 0; c <= r; ++c) {
            float& cell = most[r * 16 / 24 * 16 + c * 16 / 24];
            const float value = cells(figure).values[r * 24 + c];
            if (std::isnan(cell) || std::abs(value) > std::abs(cell)) cell = value;
        }
    }
    for (std::size_t i = 0; i < 256; ++i) {
        CHECK(std::isnan(most[i]) == std::isnan(cells(pooled).values[i]));
        if (!std::isnan(most[i])) CHECK(cells(pooled).values[i] == most[i]);
    }
    CHECK(noted(pooled, "farthest from 0"));
    // With an indicator named, it is the indicator of that head.
    options.indicator = "sink";
    CHECK(cells(make_figure("difference", std::vector{two.a, two.b}, options)).values.size() == 1);
}

TEST_CASE("Two heads of one analysis are compared, and of two", "[figures][difference]") {
    const Two two;
    FigureOptions options;
    options.layer = 1;
    options.head = 3;
    const auto one = make_figure("attention", std::vector{two.a}, options);
    options.layer = 2;
    options.head = 0;
    const auto left = make_figure("attention", std::vector{two.a}, options);
    const auto far = make_figure("attention", std::vector{two.b}, options);
    options.layer = 1;
    options.head = 3;
    options.other_layer = 2;
    options.other_head = 0;
    const auto figure = make_figure("difference", std::vector{two.a}, options);
    const auto both = make_figure("difference", std::vector{two.a, two.b}, options);
    for (std::size_t i = 0; i < 576; ++i) {
        if (std::isnan(cells(one).values[i])) continue;
        CHECK(cells(figure).values[i] == cells(left).values[i] - cells(one).values[i]);
        CHECK(cells(both).values[i] == cells(far).values[i] - cells(one).values[i]);
    }
    CHECK(figure.title == "Attention: layer 2, head 0 minus layer 1, head 3");
    CHECK(both.title == "Attention: layer 2, head 0 of other minus layer 1, head 3 of synthetic");
    CHECK(figure.notes.front() == "synthetic, 24 tokens.");
    CHECK(figure.table().columns.back().name == "other_head");
    options.other_head = 9;
    CHECK(refusal("difference", {two.a}, options).find("[--head] expected 0 to 3") != std::string::npos);
    options.head.reset();
    CHECK(refusal("difference", {two.a}, options).find("[--other-head]") != std::string::npos);
}

TEST_CASE("What cannot be compared is refused in one line", "[figures][difference]") {
    const Two two;
    CHECK(refusal("difference", {two.a}).find("expected two analysis files, or one") != std::string::npos);
    auto wish = two.wish;
    wish.heads = 2;
    CHECK(mismatch({two.a, two.folder.analysis("c", wish)}).find("same layers and heads") != std::string::npos);
    wish = two.wish;
    wish.layers = 4;
    CHECK(mismatch({two.a, two.folder.analysis("d", wish)}).find("found a.headscope.h5 with 3") != std::string::npos);
    wish = two.wish;
    wish.lengths = {25};
    CHECK(mismatch({two.a, two.folder.analysis("e", wish)}).find("found 24 and 25 tokens") != std::string::npos);
    wish.lengths = {24, 24};
    FigureOptions options;
    options.all_sequences = true;
    CHECK(mismatch({two.a, two.folder.analysis("f", wish)}, options).find("as many sequences") != std::string::npos);
}
