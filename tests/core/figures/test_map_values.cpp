// SPDX-License-Identifier: GPL-3.0-or-later
// What a map's cells are of: weights or logits, maximum or mean; towers of an encoder-decoder are in
// test_cross_attention.cpp.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/figures/map_values.h"
#include "tests/core/figures/figure_files.h"
#include "tests/core/figures/head_options.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::tests;

namespace {

const HeatMap& cells(const FigureData& figure) {
    return std::get<HeatMap>(figure.panels.at(0).content);
}

SyntheticAnalysis with_maps(std::int64_t length = 24, std::uint64_t seed = 1) {
    SyntheticAnalysis wish;
    wish.lengths = {length};
    wish.record.maps = true;
    wish.seed = seed;
    if (seed > 1) wish.model_name = "other";
    return wish;
}

std::vector<double> numbers(const FigureData& figure, const std::string& name) {
    for (const auto& column : figure.table().columns)
        if (column.name == name) return std::get<std::vector<double>>(column.values);
    return {};
}

/// Score of a pair by its definition.
double score(const store::AnalysisFile::Map& map, std::int64_t head, std::int64_t i, std::int64_t j) {
    const std::int64_t group = head / (map.heads / map.key_value_heads);
    double sum = 0;
    for (std::int64_t c = 0; c < map.key_size; ++c)
        sum += static_cast<double>(map.query[static_cast<std::size_t>((head * map.queries + i) * map.key_size + c)]) *
               static_cast<double>(map.key[static_cast<std::size_t>((group * map.keys + j) * map.key_size + c)]);
    return sum * map.rule.scale;
}

// A product of eight float32 numbers of magnitude 8 at most, summed in another order.
constexpr double kScoreMargin = 8 * 64 * 1.2e-7;

}  // namespace

TEST_CASE("Logits of a map are the scores before the normaliser", "[figures][attention]") {
    const FigureFiles folder;
    const auto file = folder.analysis("a", with_maps());
    auto options = options_for(1, 3);
    options.values = MapValues::logits;
    const auto figure = make_figure("attention", std::vector{file}, options);
    const auto map = file->map(0, 1);
    REQUIRE(map);
    double most = 0;
    for (std::int64_t i = 0; i < 24; ++i) {
        for (std::int64_t j = 0; j < 24; ++j) {
            const float cell = cells(figure).values[static_cast<std::size_t>(i * 24 + j)];
            REQUIRE(std::isnan(cell) == (j > i));
            if (j <= i) CHECK(cell == Approx(score(*map, 3, i, j)).margin(kScoreMargin));
        }
    }
    // The colours end where the analysis measured the head's extremes, so that parts of a map have the same.
    for (const char* which : {"minimum", "maximum"}) {
        const auto values = file->score_statistic(which);
        most = std::max(most, std::abs(values.data[static_cast<std::size_t>(values.shape[2] + 3)]));
    }
    CHECK(cells(figure).colours.map == ColourMap::diverging);
    CHECK(cells(figure).colours.maximum == Approx(most));
    CHECK(cells(figure).colours.minimum == Approx(-most));
    CHECK(cells(figure).colours.scale == ScaleKind::linear);
    CHECK(figure.title.starts_with("Attention scores, layer 1"));
    CHECK(noted(figure, "Scores before the normalizer, colored from minus to plus the greatest magnitude"));
    CHECK(numbers(figure, "logit").size() == 300);
    options.scale = CellScale::logarithmic;
    CHECK(cells(make_figure("attention", std::vector{file}, options)).colours.scale == ScaleKind::symmetric_log);
    // Ranks of logits are those of the weights: the normaliser keeps their order.
    options.scale = CellScale::row_rank;
    const auto ranks = make_figure("attention", std::vector{file}, options);
    options.values = MapValues::weights;
    const auto same = make_figure("attention", std::vector{file}, options);
    for (std::size_t i = 0; i < 576; ++i)
        if (!std::isnan(cells(same).values[i])) CHECK(cells(ranks).values[i] == cells(same).values[i]);
}

TEST_CASE("Pooled cells are a mean where that is asked for, by hand", "[figures][attention]") {
    const FigureFiles folder;
    const auto file = folder.analysis("a", with_maps(45));
    for (const bool logits : {false, true}) {
        auto options = options_for(2, 1);
        if (logits) options.values = MapValues::logits;
        const auto exact = make_figure("attention", std::vector{file}, options);
        options.pixels = 16;
        const auto largest = make_figure("attention", std::vector{file}, options);
        options.pooling = Pooling::mean;
        const auto mean = make_figure("attention", std::vector{file}, options);
        std::vector<double> sum(256), count(256), pairs(256);
        std::vector<float> extreme(256, NAN);
        for (std::size_t i = 0; i < 45; ++i) {
            for (std::size_t j = 0; j < 45; ++j) {
                const std::size_t at = i * 16 / 45 * 16 + j * 16 / 45;
                const float value = cells(exact).values[i * 45 + j];
                ++pairs[at];
                if (std::isnan(value)) continue;
                sum[at] += static_cast<double>(value);
                ++count[at];
                if (std::isnan(extreme[at]) || std::abs(value) > std::abs(extreme[at])) extreme[at] = value;
            }
        }
        for (std::size_t at = 0; at < 256; ++at) {
            INFO(logits << " " << at);
            REQUIRE(std::isnan(cells(mean).values[at]) == (count[at] == 0));
            REQUIRE(std::isnan(cells(largest).values[at]) == (count[at] == 0));
            if (count[at] == 0) continue;
            // Weights that the mask forbids are 0; scores that it forbids are none.
            CHECK(cells(mean).values[at] == Approx(sum[at] / (logits ? count[at] : pairs[at])).margin(1e-5));
            CHECK(cells(largest).values[at] == Approx(extreme[at]).margin(1e-6));
        }
        CHECK(noted(mean, logits ? "mean score" : "mean weight"));
        CHECK_FALSE(numbers(mean, logits ? "mean_logit" : "mean_weight").empty());
        CHECK_FALSE(numbers(largest, logits ? "extreme_logit" : "largest_weight").empty());
        CHECK(cells(mean).pooling == Pooling::mean);
    }
}

TEST_CASE("Differences of scores and mean differences, by hand", "[figures][difference]") {
    const FigureFiles folder;
    const auto a = folder.analysis("a", with_maps()), b = folder.analysis("b", with_maps(24, 2));
    auto options = options_for(0, 2);
    options.values = MapValues::logits;
    const auto first = make_figure("attention", std::vector{a}, options);
    const auto second = make_figure("attention", std::vector{b}, options);
    const auto figure = make_figure("difference", std::vector{a, b}, options);
    std::vector<double> sum(256), count(256);
    for (std::size_t i = 0; i < 576; ++i) {
        const float expected = cells(second).values[i] - cells(first).values[i];
        REQUIRE(std::isnan(expected) == std::isnan(cells(figure).values[i]));
        if (std::isnan(expected)) continue;
        CHECK(cells(figure).values[i] == expected);
        const std::size_t at = i / 24 * 16 / 24 * 16 + i % 24 * 16 / 24;
        sum[at] += static_cast<double>(expected);
        ++count[at];
    }
    CHECK(figure.title.starts_with("Attention scores, layer 0, head 2"));
    CHECK(noted(figure, "Scores before the normalizer of the second minus"));
    options.pixels = 16;
    options.pooling = Pooling::mean;
    options.scale = CellScale::square_root;
    const auto mean = make_figure("difference", std::vector{a, b}, options);
    CHECK(cells(mean).colours.scale == ScaleKind::square_root);
    for (std::size_t at = 0; at < 256; ++at)
        if (count[at] > 0) CHECK(cells(mean).values[at] == Approx(sum[at] / count[at]).margin(1e-5));
    CHECK_FALSE(numbers(mean, "mean_difference").empty());
    options.scale = CellScale::row_rank;
    CHECK(refusal("difference", {a, b}, options).find("expected linear or square-root") != std::string::npos);
}

TEST_CASE("All sequences are drawn as their mean, position by position", "[figures][attention]") {
    const FigureFiles folder;
    SyntheticAnalysis wish = with_maps();
    wish.lengths = {24, 30, 24};
    const auto file = folder.analysis("a", wish);
    FigureOptions options = options_for(1, 2);
    const auto one = [&](std::int64_t s, MapValues values) {
        const auto map = file->map(s, 1);
        REQUIRE(map);
        return exact_values(*map, 2, {0, map->queries, 0, map->keys}, values);
    };
    const auto mean_of = [](const std::vector<std::vector<float>>& maps, std::size_t q, std::size_t k) {
        double sum = 0, count = 0;
        for (const auto& map : maps) {
            const std::size_t side = map.size() == 900 ? 30 : 24;
            if (q >= side || k >= side || std::isnan(map[q * side + k])) continue;
            sum += double{map[q * side + k]};
            ++count;
        }
        return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
    };
    for (const MapValues values : {MapValues::weights, MapValues::logits}) {
        options.values = values;
        options.all_sequences = true;
        options.pixels = 1024;
        options.pooling = Pooling::maximum;
        const std::vector<std::vector<float>> maps{one(0, values), one(1, values), one(2, values)};
        const auto figure = make_figure("attention", std::vector{file}, options);
        const HeatMap& map = cells(figure);
        REQUIRE(map.rows == 30);
        double sum = 0;
        for (std::size_t q = 0; q < 30; ++q) {
            for (std::size_t k = 0; k < 30; ++k) {
                const double expected = mean_of(maps, q, k);
                REQUIRE(std::isnan(map.values[q * 30 + k]) == std::isnan(expected));
                if (std::isnan(expected)) continue;
                CHECK(double{map.values[q * 30 + k]} == Approx(expected).epsilon(1e-5).margin(kScoreMargin));
                if (q < 3 && k < 3) sum += expected;
            }
        }
        CHECK(figure.panels[0].x.cell_labels.empty());  // other tokens in every sequence
        const auto deviation = numbers(figure, "deviation");
        REQUIRE(deviation.size() == 465);
        CHECK(std::isnan(deviation.back()));  // only one sequence is that long
        CHECK(deviation[1] > 0);
        // Ten cells of three pairs: forbidden ones count as 0 among weights, not at all among logits.
        options.pixels = 10;
        options.pooling = Pooling::mean;
        const auto pooled = make_figure("attention", std::vector{file}, options);
        CHECK(double{cells(pooled).values[0]} ==
              Approx(sum / (values == MapValues::weights ? 9 : 6)).epsilon(1e-5).margin(kScoreMargin));
        CHECK(numbers(pooled, "deviation").empty());
    }
    const auto notes = make_figure("attention", std::vector{file}, options).notes;
    CHECK(notes.front().find("means over 3 sequences of 24 to 30 tokens") != std::string::npos);
}
