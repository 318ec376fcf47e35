// SPDX-License-Identifier: GPL-3.0-or-later
// Maps of several files: the mean of a layer's heads, a layer and a head for each file, texts of models as a grid.
#include <catch2/catch.hpp>
#include <cmath>
#include <variant>

#include "tests/core/figures/figure_files.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::tests;
using File = std::shared_ptr<store::AnalysisFile>;

namespace {

/// Scores are sums of eight products of float32 with values of up to 64; weights follow from them.
constexpr double kMargin = 8 * 64 * 1.2e-7;

SyntheticAnalysis with_maps(const std::string& model, std::int64_t tokens, std::uint64_t seed = 1) {
    SyntheticAnalysis wish;
    wish.model_name = model;
    wish.model_sha256 = std::string(64, model.front());
    wish.lengths = {tokens};
    wish.seed = seed;
    wish.record.maps = true;
    return wish;
}

const HeatMap& cells(const FigureData& figure, std::size_t panel = 0) {
    return std::get<HeatMap>(figure.panels.at(panel).content);
}

FigureOptions chosen(std::optional<std::int64_t> layer, std::optional<std::int64_t> head) {
    FigureOptions options;
    options.layer = layer;
    options.head = head;
    return options;
}

/// One word after the token that begins the text.
store::SequenceTokens repeated(std::int64_t tokens) {
    store::SequenceTokens text;
    for (std::int64_t i = 0; i < tokens; ++i) {
        text.ids.push_back(i == 0 ? 0 : 3);
        text.pieces.emplace_back(i == 0 ? "<s>" : " again");
        text.text += text.pieces.back();
        text.offsets.push_back({static_cast<std::int64_t>(text.text.size() - text.pieces.back().size()),
                                static_cast<std::int64_t>(text.text.size())});
    }
    return text;
}

void check_mean(const FigureData& mean, const std::vector<FigureData>& heads) {
    REQUIRE(mean.panels.size() == 1);
    double largest = 0;
    for (std::size_t i = 0; i < cells(mean).values.size(); ++i) {
        double sum = 0;
        for (const auto& head : heads) sum += double{cells(head).values[i]};
        REQUIRE(std::isnan(cells(mean).values[i]) == std::isnan(sum));
        if (std::isnan(sum)) continue;
        const double expected = sum / static_cast<double>(heads.size());
        largest = std::max(largest, std::abs(expected));
        CHECK(double{cells(mean).values[i]} == Approx(expected).epsilon(kMargin).margin(kMargin));
    }
    CHECK(largest > 0.1);
}

}  // namespace

TEST_CASE("The mean of a layer's heads is that of their cells", "[figures][attention]") {
    const FigureFiles folder;
    const auto file = folder.analysis("a", with_maps("a", 24));
    for (const MapValues values : {MapValues::weights, MapValues::logits}) {
        const auto make = [&](std::int64_t head, std::int64_t pixels) {
            FigureOptions options = chosen(1, head);
            options.values = values;
            options.pixels = pixels;
            options.pooling = Pooling::mean;  // a mean of means of as many pairs
            return make_figure("attention", std::vector{file}, options);
        };
        for (const std::int64_t pixels : {1024, 16}) {
            const auto mean = make(kMeanOfHeads, pixels);
            check_mean(mean, {make(0, pixels), make(1, pixels), make(2, pixels), make(3, pixels)});
            CHECK(mean.title.ends_with(", layer 1, mean of the heads"));
            CHECK(figure_csv(mean).find(",1,1,-1,") != std::string::npos);
            CHECK(figure_csv(mean).find("deviation") == std::string::npos);
        }
        CHECK(make(kMeanOfHeads, 1024).panels[0].x.cell_labels.size() == 24);
    }
    FigureOptions words = chosen(2, kMeanOfHeads);
    words.units = Units::words;
    std::vector<FigureData> heads;
    for (std::int64_t h = 0; h < 4; ++h) {
        FigureOptions one = words;
        one.head = h;
        heads.push_back(make_figure("attention", std::vector{file}, one));
    }
    check_mean(make_figure("attention", std::vector{file}, words), heads);

    FigureOptions refused = chosen(1, kMeanOfHeads);
    refused.values = MapValues::rollout;
    CHECK(refusal("attention", {file}, refused).find("found mean") != std::string::npos);
    refused.values = MapValues::norms;
    CHECK(refusal("attention", {file}, refused).find("--values layer-norms") != std::string::npos);
    CHECK(refusal("lines", {file}, chosen(1, kMeanOfHeads)).find("found mean") != std::string::npos);
}

TEST_CASE("The mean of heads over all sequences is the mean of the heads' means", "[figures][attention]") {
    const FigureFiles folder;
    auto wish = with_maps("a", 20);
    wish.lengths = {20, 26};
    const auto file = folder.analysis("a", wish);
    std::vector<FigureData> heads;
    for (std::int64_t h = 0; h < 4; ++h) {
        FigureOptions one = chosen(0, h);
        one.all_sequences = true;
        heads.push_back(make_figure("attention", std::vector{file}, one));
    }
    FigureOptions options = chosen(0, kMeanOfHeads);
    options.all_sequences = true;
    const auto mean = make_figure("attention", std::vector{file}, options);
    check_mean(mean, heads);
    CHECK(mean.panels[0].x.cell_labels.empty());
    CHECK(noted(mean, "Mean over sequences"));
}

TEST_CASE("Texts of several models are a grid: models in columns, texts in rows, one scale", "[figures][attention]") {
    const FigureFiles folder;
    // The last text is longer than those that a square root is for.
    const File a = folder.analysis("a", with_maps("alpha", 24)), b = folder.analysis("b", with_maps("beta", 300, 2)),
               again_a = folder.analysis("again-a", with_maps("alpha", 9, 3), repeated(9)),
               again_b = folder.analysis("again-b", with_maps("beta", 9, 4), repeated(9));
    FigureOptions options;
    options.layers = {1, 1, 2, 2};
    options.heads = {3, kMeanOfHeads, 0, kMeanOfHeads};
    const auto figure = make_figure("attention", std::vector{a, again_a, b, again_b}, options);
    REQUIRE(figure.panels.size() == 4);
    CHECK(figure.columns == 2);
    CHECK_FALSE(figure.reflow);
    CHECK(figure.column_labels == std::vector<std::string>{"alpha", "beta"});
    CHECK(figure.title == "Attention");
    CHECK(figure.panels[0].title == "layer 1, head 3");
    CHECK(figure.panels[1].title == "layer 2, head 0");
    CHECK(figure.panels[2].title == "layer 1, mean of the heads, one token repeated");
    CHECK(figure.panels[3].title == "layer 2, mean of the heads, one token repeated");
    CHECK(figure.shared_colours);
    for (std::size_t i = 0; i < 4; ++i) CHECK(cells(figure, i).colours.scale == ScaleKind::logarithmic);
    // Each is what it is alone, but for its scale.
    const std::vector<std::pair<File, FigureOptions>> alone{
        {a, chosen(1, 3)}, {b, chosen(2, 0)}, {again_a, chosen(1, kMeanOfHeads)}, {again_b, chosen(2, kMeanOfHeads)}};
    for (std::size_t i = 0; i < 4; ++i) {
        INFO(i);
        FigureOptions one = alone[i].second;
        one.pixels = cells(figure, i).rows;
        const auto map = make_figure("attention", std::vector{alone[i].first}, i == 1 ? one : alone[i].second);
        REQUIRE(cells(map).rows == cells(figure, i).rows);
        for (std::size_t c = 0; c < cells(map).values.size(); ++c) {
            const float here = cells(figure, i).values[c], there = cells(map).values[c];
            REQUIRE(((std::isnan(here) && std::isnan(there)) || here == there));
        }
    }
    const std::string csv = figure_csv(figure);
    CHECK(csv.find("\nalpha (a),1,1,3,") != std::string::npos);
    CHECK(csv.find("\nbeta (b),2,2,0,") != std::string::npos);
    CHECK(csv.find("\nbeta (again-b),2,2,-1,") != std::string::npos);

    // The same of files row by row, with one layer and head for all.
    const auto rows = make_figure("attention", std::vector{a, b, again_a, again_b}, chosen(1, 2));
    CHECK(rows.title == "Attention, layer 1, head 2");
    CHECK(rows.column_labels == figure.column_labels);
    CHECK(rows.panels[0].title.empty());
    CHECK(rows.panels[3].title == "one token repeated");
    // Models of one name are distinguished by their files.
    auto other = with_maps("alpha", 24, 5);
    other.model_sha256 = std::string(64, 'c');
    const File c = folder.analysis("c", other), d = folder.analysis("d", other);
    CHECK(make_figure("attention", std::vector{a, again_a, c, d}, chosen(1, 2)).column_labels ==
          std::vector<std::string>{"alpha (a)", "alpha (c)"});
}

TEST_CASE("Files that are no grid stand as they come", "[figures][attention]") {
    const FigureFiles folder;
    const File a = folder.analysis("a", with_maps("alpha", 24)), b = folder.analysis("b", with_maps("alpha", 20, 2)),
               c = folder.analysis("c", with_maps("beta", 22, 3)), d = folder.analysis("d", with_maps("beta", 22, 4));
    FigureOptions options = chosen(1, {});
    options.heads = {0, 1, 2};
    // A model with two texts, one with one.
    const auto uneven = make_figure("attention", std::vector{c, a, b}, options);
    CHECK(uneven.column_labels.empty());
    CHECK(uneven.panels[0].title == "beta, head 0");
    CHECK(uneven.panels[1].title == "alpha (a), head 1");
    CHECK(uneven.panels[2].title == "alpha (b), head 2");
    CHECK(uneven.title == "Attention, layer 1");
    // One model; all heads of each file.
    CHECK(make_figure("attention", std::vector{a, b}, chosen(1, 2)).column_labels.empty());
    const auto all = make_figure("attention", std::vector{a, b, c, d}, chosen(1, {}));
    CHECK(all.column_labels.empty());
    CHECK(all.panels.size() == 16);

    options.heads = {0, 1};
    CHECK(refusal("attention", {a, b, c}, options)
              .find("[--head] expected one for all files, or one each of the 3; found 2") != std::string::npos);
    options.heads = {0, 1, 9};
    CHECK(refusal("attention", {a, b, c}, options).find("[--head] expected 0 to 3 of") != std::string::npos);
    options = {};
    options.layers = {0, 1};
    CHECK(refusal("attention", {a}, options).find("[--layer] expected one for all files") != std::string::npos);
    options.layers = {0, 7};
    CHECK(refusal("attention", {a, c}, options).find("[--layer] expected 0 to 2") != std::string::npos);
    options.layers = {0, 1};
    CHECK(refusal("radar", {a, c}, options).find("[--layer] expected one layer") != std::string::npos);
    options = {};
    options.heads = {0, 1};
    CHECK(refusal("radar", {a, c}, options).find("[--head] expected one head") != std::string::npos);
}
