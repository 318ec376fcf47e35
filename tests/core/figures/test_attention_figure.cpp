// SPDX-License-Identifier: GPL-3.0-or-later
// Attention of short and long texts, and its cells without an allowed pair.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "core/store/analysis/analysis_file.h"
#include "kernels/score_pairs.h"
#include "tests/core/figures/figure_files.h"
#include "tests/core/figures/recipe_figures.h"
#include "tests/core/store/synthetic_analysis.h"

using namespace headscope;
using namespace headscope::figures;
using tests::chosen;
using tests::lines;
using tests::make;
using tests::noted;
using tests::refusal;
using Folder = tests::FigureFiles;

TEST_CASE("Attention of a short text is exact, with tokens", "[figures][attention]") {
    const Folder folder;
    tests::SyntheticAnalysis wish;
    wish.record.maps = true;
    const auto file = folder.analysis("a", wish);
    const auto figure = make("attention", {file}, chosen(1, 3, {}));
    REQUIRE(figure.panels.size() == 1);
    const auto& panel = figure.panels[0];
    const auto& map = std::get<HeatMap>(panel.content);
    REQUIRE(map.rows == 24);
    REQUIRE(map.columns == 24);
    CHECK(panel.markers.empty());
    REQUIRE(panel.x.cell_labels.size() == 24);
    CHECK(panel.x.cell_labels[0] == "␣the");
    for (std::int64_t r = 0; r < 24; ++r) {
        double sum = 0;
        for (std::int64_t c = 0; c < 24; ++c) {
            const float value = map.values[static_cast<std::size_t>(r * 24 + c)];
            CHECK(std::isnan(value) == (c > r));
            if (c <= r) sum += value;
        }
        CHECK(sum == Approx(1).epsilon(1e-5));
    }
    CHECK(lines(figure_csv(figure)) == 1 + 24 * 25 / 2);
    CHECK(make("attention", {file}, chosen(1, {}, {})).panels.size() == 4);
}

TEST_CASE("Attention of a long text is max-pooled and marks the trained positions", "[figures][attention]") {
    const Folder folder;
    tests::SyntheticAnalysis wish;
    wish.lengths = {601};
    wish.record.maps = true;
    wish.max_positions = 300;
    wish.layers = 1;
    const auto file = folder.analysis("a", wish);
    FigureOptions options = chosen(0, 2, 0);
    const auto exact = make("attention", {file}, options);
    options.pixels = 64;
    const auto pooled = make("attention", {file}, options);
    const auto& all = std::get<HeatMap>(exact.panels[0].content);
    const auto& map = std::get<HeatMap>(pooled.panels[0].content);
    REQUIRE(all.rows == 601);
    REQUIRE(map.rows == 64);
    for (std::int64_t r = 0; r < 64; ++r) {
        for (std::int64_t c = 0; c < 64; ++c) {
            float most = std::nanf("");
            for (std::int64_t i = 0; i < 601; ++i) {
                if (i * 64 / 601 != r) continue;
                for (std::int64_t j = 0; j <= i; ++j) {
                    const float value = all.values[static_cast<std::size_t>(i * 601 + j)];
                    if (j * 64 / 601 == c) most = std::isnan(most) ? value : std::max(most, value);
                }
            }
            const float found = map.values[static_cast<std::size_t>(r * 64 + c)];
            if (std::isnan(most) != std::isnan(found) || (!std::isnan(most) && std::abs(most - found) > 1e-6F)) {
                FAIL("cell " << r << ", " << c << ": " << found << " instead of " << most);
            }
        }
    }
    REQUIRE(pooled.panels[0].markers.size() == 2);
    CHECK(pooled.panels[0].markers[0].position == 300);
    CHECK(pooled.panels[0].markers[0].label == "trained to 300");
    CHECK(pooled.panels[0].x.cells_per_value == Approx(64.0 / 601));
    CHECK(noted(pooled, "largest weight"));
    CHECK(!noted(exact, "largest weight"));
}

TEST_CASE("Grey cells are those without an allowed pair: window, first keys, blocks", "[figures][attention]") {
    const Folder folder;
    tests::SyntheticAnalysis wish;
    wish.lengths = {150};
    wish.record.maps = true;
    wish.layers = 1;
    auto map = tests::synthetic_map(wish, 150, 1);
    map.rule.window_left = 40;
    map.rule.first_keys = 3;
    SECTION("window and first keys") {}
    SECTION("not causal") {
        map.rule.causal = false;
        map.rule.window_right = 11;
    }
    SECTION("blocks") {
        map.rule.blocks = {16, 10, std::vector<std::uint8_t>(40, 0)};
        for (std::size_t i = 0; i < 40; i += 3) map.rule.blocks.visible[i] = 1;
    }
    const auto path = folder.path() / "w.headscope.h5";
    {
        store::AnalysisWriter writer(path, tests::synthetic_header(wish));
        writer.write_map(0, 0, map.query, map.key, map.row_constant, map.rule, 0);
        writer.write_site(0, 0, tests::synthetic_statistics(wish, 150, 0, 1), 0);
        tests::write_synthetic_output(writer, wish, 0);
        writer.publish();
    }
    const auto file = store::AnalysisFile::open(path);
    const auto bounds = kernels::sequence_bounds(map.rule, 0, 150, 150);
    for (const std::int64_t side : {150, 32}) {
        FigureOptions options = chosen(0, 1, 0);
        options.pixels = side;
        const auto figure = make("attention", {file}, options);
        const auto& cells = std::get<HeatMap>(figure.panels.at(0).content);
        REQUIRE(cells.rows == side);
        std::vector<bool> seen(cells.values.size(), false);
        for (std::int64_t i = 0; i < 150; ++i) {
            for (std::int64_t j = 0; j < 150; ++j) {
                if (kernels::allowed(map.rule, bounds, 0, 1, 4, i, j))
                    seen[static_cast<std::size_t>(i * side / 150 * side + j * side / 150)] = true;
            }
        }
        std::size_t wrong = 0;
        for (std::size_t c = 0; c < seen.size(); ++c) wrong += seen[c] == std::isnan(cells.values[c]) ? 1 : 0;
        CHECK(wrong == 0);
        CHECK(std::count(seen.begin(), seen.end(), false) > side);
    }
}

TEST_CASE("Attention without recorded maps says which option records them", "[figures][attention]") {
    const Folder folder;
    const auto file = folder.analysis("a", {});
    CHECK(refusal("attention", {file}).find("--record maps") != std::string::npos);
}
