// SPDX-License-Identifier: GPL-3.0-or-later
// Thumbnails of every head, of one sequence or of all.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "core/store/analysis/analysis_file.h"
#include "tests/core/figures/figure_files.h"
#include "tests/core/figures/recipe_figures.h"
#include "tests/core/store/synthetic_analysis.h"

using namespace headscope;
using namespace headscope::figures;
using tests::chosen;
using tests::make;
using tests::noted;
using tests::refusal;
using Folder = tests::FigureFiles;

TEST_CASE("Thumbnails of every head; none is lost, none made up", "[figures][thumbnails]") {
    const Folder folder;
    const auto file = folder.analysis("a", {});
    const auto figure = make("thumbnails", {file});
    const auto& mosaic = std::get<Mosaic>(figure.panels.at(0).content);
    CHECK(mosaic.rows == 3);
    CHECK(mosaic.columns == 4);
    REQUIRE(mosaic.size == 24);
    const auto stored = file->thumbnail("mean", 0, 2);
    const auto tile = static_cast<std::size_t>(2 * 4 + 1) * 24 * 24;
    CHECK(mosaic.values[tile + 10 * 24 + 3] == Approx(stored.data[24 * 24 + 10 * 24 + 3]));
    CHECK(std::isnan(mosaic.values[tile + 10 * 24 + 11]));
    const auto wrapped = make("thumbnails", {file}, chosen(1, {}, {}));
    CHECK(std::get<Mosaic>(wrapped.panels.at(0).content).tile_labels.size() == 4);
    FigureOptions options;
    options.statistic = "median";
    CHECK(!refusal("thumbnails", {file}, options).empty());
}

TEST_CASE("Thumbnails of all sequences are their mean, with a scale per head where that is asked for", "[figures]") {
    const Folder folder;
    tests::SyntheticAnalysis wish;
    wish.lengths = {24, 24, 24};
    const auto file = folder.analysis("a", wish);
    FigureOptions options;
    options.all_sequences = true;
    const auto figure = make("thumbnails", {file}, options);
    const auto& mosaic = std::get<Mosaic>(figure.panels.at(0).content);
    const std::size_t cell = 24 * 24 + 10 * 24 + 3;  // of head 1
    double by_hand = 0;
    for (std::int64_t s = 0; s < 3; ++s) by_hand += file->thumbnail("mean", s, 2).data[cell] / 3;
    CHECK(mosaic.values[static_cast<std::size_t>(2 * 4) * 24 * 24 + cell] == Approx(by_hand).epsilon(1e-6));
    CHECK(noted(figure, "means over 3 sequences"));

    options.scale_per_head = true;
    const auto shares = make("thumbnails", {file}, options);
    const auto& scaled = std::get<Mosaic>(shares.panels.at(0).content);
    CHECK(scaled.colours.maximum == 1);
    for (std::size_t tile = 0; tile < 12; ++tile) {
        float most = 0;
        for (std::size_t i = 0; i < 576; ++i) {
            const float value = scaled.values[tile * 576 + i];
            if (!std::isnan(value)) most = std::max(most, value);
        }
        CHECK(most == Approx(1));
    }
    CHECK(noted(shares, "own logarithmic color scale"));
    // The numbers beside the picture are weights all the same.
    CHECK(figure_csv(shares) == figure_csv(figure));

    wish.lengths = {24, 17};
    options.scale_per_head = false;
    CHECK(refusal("thumbnails", {folder.analysis("b", wish)}, options).find("differ in length") != std::string::npos);
}
