// SPDX-License-Identifier: GPL-3.0-or-later
// Figures by position: losses, states; distributions after the normaliser.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/figures/recipe.h"
#include "tests/core/figures/figure_files.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::tests;

namespace {

const Curves& curves(const FigureData& figure, std::size_t panel = 0) {
    return std::get<Curves>(figure.panels.at(panel).content);
}

}  // namespace

TEST_CASE("Loss stands at the token that was predicted, with a running mean", "[figures][loss]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.lengths = {200};
    wish.max_positions = 150;
    const auto file = folder.analysis("a", wish);
    const auto figure = make_figure("loss", std::vector{file}, {});
    const auto stored = file->loss(0).data;
    REQUIRE(curves(figure).curves.size() == 2);
    const auto& tokens = curves(figure).curves[0];
    const auto& running = curves(figure).curves[1];
    CHECK(tokens.faint);
    REQUIRE(tokens.y.size() == 200);
    CHECK(std::isnan(tokens.y[0]));
    for (std::size_t i = 1; i < 200; ++i) CHECK(tokens.y[i] == stored[i - 1]);
    double mean = 0;  // of the last ten positions
    for (std::size_t i = 91; i <= 100; ++i) mean += stored[i - 1] / 10;
    CHECK(running.y[100] == Approx(mean).epsilon(1e-9));
    CHECK(figure.panels[0].markers.at(0).position == 150);
    CHECK(noted(figure, "Most surprising: "));
    CHECK(noted(figure, "at 1 (6)"));  // 2 + 4 / 1, the greatest
    CHECK(noted(figure, "mean of the last 10 positions"));
    REQUIRE(curves(figure).labels.size() == 5);
    CHECK(curves(figure).labels[0].x == 1);
    CHECK(lines(figure_csv(figure)) == 1 + 199);
}

TEST_CASE("Losses of several models and sequences", "[figures][loss]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.lengths = {30, 12};
    const auto a = folder.analysis("a", wish);
    wish.model_name = "other";
    const auto b = folder.analysis("b", wish);
    const auto two = make_figure("loss", std::vector{a, b}, {});
    CHECK(two.legend.size() == 2);
    CHECK(curves(two).curves.size() == 4);
    CHECK(curves(two).labels.empty());
    FigureOptions options;
    options.all_sequences = true;
    const auto all = make_figure("loss", std::vector{a}, options);
    CHECK(!curves(all).curves.back().error.empty());
    CHECK(figure_csv(all).starts_with("model,position,token,loss,running_mean,deviation\r\n"));
    CHECK(lines(figure_csv(all)) == 1 + 29);
}

TEST_CASE("Long curves keep their peaks in few points", "[figures][curves]") {
    Curve curve;
    for (int i = 0; i < 10000; ++i) {
        curve.x.push_back(i);
        curve.y.push_back(i == 5003 ? 100 : (i == 777 ? -50 : std::sin(i * 0.01)));
        curve.error.push_back(1);
    }
    const Curve fewer = thinned(curve, 500, 20);
    CHECK(fewer.x.size() <= 500);
    CHECK(*std::max_element(fewer.y.begin(), fewer.y.end()) == 100);
    CHECK(*std::min_element(fewer.y.begin(), fewer.y.end()) == -50);
    CHECK(std::is_sorted(fewer.x.begin(), fewer.x.end()));
    CHECK(std::count_if(fewer.error.begin(), fewer.error.end(), [](double e) { return !std::isnan(e); }) <= 20);
    CHECK(thinned(curve, 10000).y == curve.y);
}

TEST_CASE("States by position: layers, or heads of one layer", "[figures][states]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.record.states = true;
    const auto file = folder.analysis("a", wish);
    const auto layers = make_figure("states", std::vector{file}, {});
    REQUIRE(layers.panels.size() == 8);
    CHECK(layers.panels[0].title == "Hidden state, norm");
    CHECK(layers.panels[7].title == "Value, variance");
    REQUIRE(curves(layers, 0).curves.size() == 4);  // what the first layer reads, and what three give
    REQUIRE(curves(layers, 2).curves.size() == 3);
    CHECK(curves(layers, 0).curves[3].y[7] == 3);  // boundary 3 was written as 3
    CHECK(curves(layers, 2).curves[2].y[7] == 3);  // layer 2 as 1 + 2
    CHECK(curves(layers, 0).curves[3].colour == curves(layers, 2).curves[2].colour);
    CHECK(layers.legend.size() == 4);
    REQUIRE(!layers.panels[0].markers.empty());
    CHECK(layers.panels[0].markers[0].label == "sink: ␣the");
    CHECK(layers.panels[0].markers[0].position == 0);
    // 4 boundaries by 24 positions; layers share rows with what they give.
    CHECK(lines(figure_csv(layers)) == 1 + 4 * 24);
    FigureOptions options;
    options.layer = 1;
    const auto heads = make_figure("states", std::vector{file}, options);
    CHECK(curves(heads, 0).curves.size() == 2);
    CHECK(curves(heads, 2).curves.size() == 4);
    CHECK(curves(heads, 4).curves.size() == 2);
    CHECK(curves(heads, 4).curves[1].colour == 2);  // the first query head that reads it
    // Tables 4 to 7 of the paper: the first tokens of a layer, the sink marked.
    CHECK_FALSE(layers.text_table.has_value());
    REQUIRE(heads.text_table.has_value());
    CHECK(heads.text_table->header == std::vector<std::string>{"Idx", "ID", "Token", "Q-Norm", "K-Norm", "V-Norm",
                                                               "Q-Var", "K-Var", "V-Var", "Norm", "Var"});
    CHECK(heads.text_table->more_words == std::vector<std::size_t>{2});
    REQUIRE(heads.text_table->rows.size() == 15);
    CHECK(heads.text_table->rows[0] == std::vector<std::string>{"0", "0", "␣the (sink)", "2.0000", "2.0000", "2.0000",
                                                                "2.0000", "2.0000", "2.0000", "2.0000", "2.0000"});
    CHECK(heads.text_table->rows[2][1] == "4");
    const auto beside = make_figure("states", std::vector{file, file}, options);
    CHECK(beside.text_table->rows[0].size() == 21);
    CHECK(beside.text_table->more_words == std::vector<std::size_t>{2, 12});
    options.head = 3;
    CHECK(curves(make_figure("states", std::vector{file}, options), 4).curves.size() == 1);
    CHECK(refusal("states", {folder.analysis("b", {})}).find("--record states") != std::string::npos);
}

TEST_CASE("States of measured layers only, and means over sequences", "[figures][states]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.record.states = true;
    wish.measured_layers = {2};
    wish.lengths = {24, 9};
    const auto file = folder.analysis("a", wish);
    FigureOptions options;
    options.all_sequences = true;
    const auto figure = make_figure("states", std::vector{file}, options);
    CHECK(curves(figure, 2).curves.size() == 1);
    CHECK(figure_csv(figure).find("hidden_norm,hidden_norm_deviation") != std::string::npos);
    CHECK(noted(figure, "standard deviation over sequences"));
}

TEST_CASE("Weights after the normaliser: all of them, in shares per decade", "[figures][logits]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.record.maps = true;
    const auto file = folder.analysis("a", wish);
    FigureOptions options;
    options.layer = 1;
    options.stage = Stage::both;
    const auto figure = make_figure("logits", std::vector{file}, options);
    REQUIRE(figure.panels.size() == 2);
    CHECK(figure.panels[0].x.label == "score");
    CHECK(figure.panels[1].x.label == "weight");
    FigureOptions map_options;
    map_options.layer = 1;
    map_options.head = 2;
    const auto map = make_figure("attention", std::vector{file}, map_options);
    float most = 0, least = 1;
    double sum = 0, pairs = 0, above = 0;
    for (const float weight : std::get<HeatMap>(map.panels[0].content).values) {
        if (std::isnan(weight)) continue;
        most = std::max(most, weight);
        least = std::min(least, weight);
        sum += weight;
        pairs += 1;
        above += weight > 0.1F ? 1 : 0;
    }
    const auto& ridge = std::get<Ridges>(figure.panels[1].content).ridges.at(2);
    CHECK(ridge.maximum == Approx(most));
    CHECK(ridge.minimum == Approx(least));
    CHECK(ridge.mean == Approx(sum / pairs).epsilon(1e-5));
    double area = 0;
    for (std::size_t b = 0; b < ridge.heights.size(); ++b)
        area += ridge.heights[b] * (std::log10(ridge.edges[b + 1]) - std::log10(ridge.edges[b]));
    CHECK(area == Approx(1).epsilon(1e-9));
    CHECK(std::stod(ridge.notes[1]) == Approx(above / 24).epsilon(0.05));
    const auto csv = figure_csv(figure);
    CHECK(csv.starts_with("stage,model,layer,head,row,"));
    CHECK(csv.find("\r\nweight,synthetic,1,3,3,") != std::string::npos);
    options.stage = Stage::after;
    CHECK(make_figure("logits", std::vector{file}, options).panels.size() == 1);
    CHECK(figure_csv(make_figure("logits", std::vector{file}, options)).find("score") == std::string::npos);
    CHECK(refusal("logits", {folder.analysis("b", {})}, options).find("--record maps") != std::string::npos);
}

TEST_CASE("Scores of all sequences are counted together", "[figures][logits]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.lengths = {40, 60};
    const auto file = folder.analysis("a", wish);
    FigureOptions options;
    options.all_sequences = true;
    const auto both = make_figure("logits", std::vector{file}, options);
    options.all_sequences = false;
    double counts[3] = {0, 0, 0};
    const auto total = [](const FigureData& figure) {
        double sum = 0;
        const Table table = figure.table();
        for (const double count : std::get<std::vector<double>>(table.columns[6].values)) sum += count;
        return sum;
    };
    counts[2] = total(both);
    for (std::int64_t s = 0; s < 2; ++s) {
        options.sequence = s;
        counts[s] = total(make_figure("logits", std::vector{file}, options));
    }
    CHECK(counts[2] == counts[0] + counts[1]);
    CHECK(noted(both, "means over 2 sequences"));
}
