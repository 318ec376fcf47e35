// SPDX-License-Identifier: GPL-3.0-or-later
// Choices within a figure: a part of a map, scales, normalisation, means over sequences.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/core/figures/figure_files.h"
#include "tests/core/figures/head_options.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::tests;

namespace {

const HeatMap& cells(const FigureData& figure) {
    return std::get<HeatMap>(figure.panels.at(0).content);
}

}  // namespace

TEST_CASE("A part of a map is that part, with its own positions and tokens", "[figures][attention]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.lengths = {60};
    wish.max_positions = 30;
    wish.record.maps = true;
    const auto file = folder.analysis("a", wish);
    auto options = options_for(1, 2);
    const auto whole = make_figure("attention", std::vector{file}, options);
    options.from_query = 20;
    options.to_query = 41;
    options.from_key = 7;
    const auto part = make_figure("attention", std::vector{file}, options);
    REQUIRE(cells(part).rows == 21);
    REQUIRE(cells(part).columns == 53);
    std::size_t wrong = 0;
    for (std::int64_t r = 0; r < 21; ++r) {
        for (std::int64_t c = 0; c < 53; ++c) {
            const float here = cells(part).values[static_cast<std::size_t>(r * 53 + c)];
            const float there = cells(whole).values[static_cast<std::size_t>((r + 20) * 60 + c + 7)];
            if (std::isnan(here) != std::isnan(there) || (!std::isnan(here) && here != there)) ++wrong;
        }
    }
    CHECK(wrong == 0);
    CHECK(part.panels[0].x.first_cell == 7);
    CHECK(part.panels[0].y.first_cell == 20);
    CHECK(part.panels[0].x.cell_labels.front() == whole.panels[0].x.cell_labels[7]);
    CHECK(part.panels[0].y.cell_labels.size() == 21);
    CHECK(part.panels[0].markers.size() == 2);
    CHECK(noted(part, "Queries 20 to 40, keys 7 to 59."));
    CHECK(figure_csv(part).find("synthetic,1,1,2,20,7,") != std::string::npos);

    // Pooled: the largest of the cells under it.
    options.pixels = 16;
    const auto pooled = make_figure("attention", std::vector{file}, options);
    REQUIRE(cells(pooled).rows == 16);
    REQUIRE(cells(pooled).columns == 16);
    std::vector<float> most(256, NAN);
    for (std::int64_t r = 0; r < 21; ++r) {
        for (std::int64_t c = 0; c < 53; ++c) {
            float& cell = most[static_cast<std::size_t>(r * 16 / 21 * 16 + c * 16 / 53)];
            cell = std::fmax(cell, cells(part).values[static_cast<std::size_t>(r * 53 + c)]);
        }
    }
    for (std::size_t i = 0; i < most.size(); ++i) {
        INFO(i);
        CHECK(std::isnan(most[i]) == std::isnan(cells(pooled).values[i]));
        if (!std::isnan(most[i])) CHECK(cells(pooled).values[i] == Approx(most[i]).margin(1e-6));
    }
    CHECK(figure_csv(pooled).find("first_query,first_key") != std::string::npos);
}

TEST_CASE("Parts that a map does not have are refused with its size", "[figures][attention]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.record.maps = true;
    const auto file = folder.analysis("a", wish);
    auto options = options_for(0, 0);
    options.from_query = 24;
    CHECK(refusal("attention", {file}, options).find("[--from-query] expected 0 to 23") != std::string::npos);
    options.from_query = 5;
    options.to_query = 5;
    CHECK(refusal("attention", {file}, options).find("[--to-query] expected 6 to 24; found 5") != std::string::npos);
    options.to_query = 6;
    options.to_key = 25;
    CHECK(refusal("attention", {file}, options).find("[--to-key] expected 1 to 24") != std::string::npos);
}

TEST_CASE("Scales of the attention map are as asked for and named", "[figures][attention]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.record.maps = true;
    const auto file = folder.analysis("a", wish);
    auto options = options_for(1, 3);
    options.scale = CellScale::linear;
    const auto linear = make_figure("attention", std::vector{file}, options);
    CHECK(cells(linear).colours.scale == ScaleKind::linear);
    CHECK(noted(linear, "Linear color scale."));
    options.scale = CellScale::logarithmic;
    CHECK(cells(make_figure("attention", std::vector{file}, options)).colours.scale == ScaleKind::logarithmic);
    options.scale = CellScale::row_rank;
    const auto ranks = make_figure("attention", std::vector{file}, options);
    CHECK(noted(ranks, "rank"));
    CHECK(cells(ranks).colours.maximum == 1);
    for (std::int64_t r = 0; r < 24; ++r) {
        double sum = 0;
        float best = -1, most = -1;
        std::int64_t best_at = -1, most_at = -1;
        for (std::int64_t c = 0; c <= r; ++c) {
            const auto at = static_cast<std::size_t>(r * 24 + c);
            sum += cells(ranks).values[at];
            if (cells(ranks).values[at] > best) best = cells(ranks).values[at], best_at = c;
            if (cells(linear).values[at] > most) most = cells(linear).values[at], most_at = c;
        }
        CHECK(best == 1);
        CHECK(best_at == most_at);
        // Ranks 0 to n - 1 over n - 1, however they lie; a single one is 1.
        CHECK(sum == Approx(r == 0 ? 1 : (r + 1) / 2.0).epsilon(1e-5));
        if (r < 23) CHECK(std::isnan(cells(ranks).values[static_cast<std::size_t>(r * 24 + r + 1)]));
    }
    CHECK(figure_csv(ranks).find(",weight,row_rank\r\n") != std::string::npos);
}

TEST_CASE("Indicators by their range, over everything or layer by layer", "[figures][indicators]") {
    const FigureFiles folder;
    const auto file = folder.analysis("a", {});
    SyntheticAnalysis other;
    other.seed = 9;
    other.model_name = "other";
    const auto second = folder.analysis("b", other);
    FigureOptions options;
    options.indicator = "sink";
    options.normalise = Normalise::minmax;
    const auto all = make_figure("indicators", std::vector{file, second}, options);
    CHECK(noted(all, "Min–max"));
    CHECK(noted(all, "all models"));
    CHECK(all.shared_colours);
    float low = 1, high = 0;
    for (const auto& panel : all.panels) {
        for (const float value : std::get<HeatMap>(panel.content).values) {
            low = std::min(low, value);
            high = std::max(high, value);
        }
    }
    CHECK(low == 0);
    CHECK(high == 1);
    options.normalise = Normalise::layer;
    const auto layers = make_figure("indicators", std::vector{file}, options);
    CHECK(noted(layers, "Per layer"));
    for (std::size_t r = 0; r < 3; ++r) {
        const auto* row = &cells(layers).values[r * 4];
        CHECK(*std::min_element(row, row + 4) == 0);
        CHECK(*std::max_element(row, row + 4) == 1);
    }
    // The raw values stay in the table.
    CHECK(figure_csv(layers).starts_with("model,layer,site,head,indicator,value,share_of_range\r\n"));
    options.indicator.clear();
    for (const auto& panel : make_figure("indicators", std::vector{file}, options).panels) {
        for (const float value : std::get<HeatMap>(panel.content).values) CHECK((value >= 0 && value <= 1));
    }
}

TEST_CASE("All sequences: means, and deviations in the table", "[figures][sequences]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.lengths = {24, 7, 12};
    const auto file = folder.analysis("a", wish);
    FigureOptions options;
    options.all_sequences = true;
    options.indicator = "sink";
    const auto map = make_figure("indicators", std::vector{file}, options);
    const auto stored = file->indicator("sink");
    for (std::size_t cell = 0; cell < 12; ++cell) {
        const double a = stored.data[cell], b = stored.data[12 + cell], c = stored.data[24 + cell];
        const double mean = (a + b + c) / 3;
        CHECK(cells(map).values[cell] == Approx(mean).epsilon(1e-6));
        const double deviation =
            std::sqrt(((a - mean) * (a - mean) + (b - mean) * (b - mean) + (c - mean) * (c - mean)) / 2);
        CHECK(std::get<std::vector<double>>(map.table().columns.back().values)[cell] ==
              Approx(deviation).epsilon(1e-9));
    }
    CHECK(map.table().columns.back().name == "deviation");
    CHECK(noted(map, "means over 3 sequences of 7 to 24 tokens"));

    options.indicator.clear();
    const auto radar = make_figure("radar", std::vector{file}, options);
    const auto& series = std::get<Radar>(radar.panels.at(1).content).series.at(0);
    double sink = 0;
    for (std::size_t s = 0; s < 3; ++s)
        for (std::size_t h = 0; h < 4; ++h) sink += stored.data[s * 12 + 4 + h] / 12;
    CHECK(series.values[7] == Approx(sink).epsilon(1e-12));
    CHECK(figure_csv(radar).starts_with("model,layer,site,indicator,value,displayed,deviation\r\n"));
    CHECK(refusal("thumbnails", {file}, options).find("--sequence") != std::string::npos);
}
