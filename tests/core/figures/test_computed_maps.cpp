// SPDX-License-Identifier: GPL-3.0-or-later
// Maps and texts of rollout and of norms, by their definitions on a synthetic file's weights.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "core/figures/map_values.h"
#include "core/maps/pooled_map.h"
#include "tests/core/figures/figure_files.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::tests;

namespace {

constexpr std::int64_t kTokens = 24;
constexpr std::size_t kSide = kTokens;

SyntheticAnalysis recorded(bool norms = true) {
    SyntheticAnalysis wish;
    wish.lengths = {kTokens};
    wish.record.maps = true;
    wish.record.norms = norms;
    return wish;
}

FigureOptions of(MapValues values, std::int64_t layer) {
    FigureOptions options;
    options.values = values;
    options.layer = layer;
    return options;
}

const HeatMap& cells(const FigureData& figure, std::size_t panel = 0) {
    return std::get<HeatMap>(figure.panels.at(panel).content);
}

/// Weights of a head, 0 where the mask forbids them.
std::vector<double> weights(const store::AnalysisFile& file, std::int64_t layer, std::int64_t head) {
    const auto found = maps::exact_weights(*file.map(0, layer), head, {0, kTokens, 0, kTokens});
    std::vector<double> all;
    for (const float weight : found) all.push_back(std::isnan(weight) ? 0 : double{weight});
    return all;
}

std::vector<double> rollout(const store::AnalysisFile& file, std::int64_t layer) {
    std::vector<double> result(kSide * kSide, 0);
    for (std::size_t i = 0; i < kSide; ++i) result[i * kSide + i] = 1;
    for (std::int64_t l = 0; l <= layer; ++l) {
        std::vector<double> mixed(kSide * kSide, 0), next(kSide * kSide, 0);
        for (std::int64_t h = 0; h < 4; ++h) {
            const auto own = weights(file, l, h);
            for (std::size_t at = 0; at < own.size(); ++at) mixed[at] += own[at] / 8;
        }
        for (std::size_t i = 0; i < kSide; ++i) mixed[i * kSide + i] += 0.5;
        for (std::size_t i = 0; i < kSide; ++i)
            for (std::size_t k = 0; k < kSide; ++k)
                for (std::size_t j = 0; j < kSide; ++j)
                    next[i * kSide + j] += mixed[i * kSide + k] * result[k * kSide + j];
        result = next;
    }
    return result;
}

void check_same(const std::vector<float>& found, const std::vector<double>& wanted) {
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        REQUIRE(std::isnan(found[i]) == (i % kSide > i / kSide));
        if (!std::isnan(found[i])) REQUIRE(found[i] == Approx(wanted[i]).epsilon(1e-4).margin(1e-5));
    }
}

}  // namespace

TEST_CASE("A map of rollout is the product of the layers up to its own", "[figures][rollout]") {
    const FigureFiles folder;
    const auto file = folder.analysis("a", recorded(false));
    for (const std::int64_t layer : {0, 2}) {
        const auto figure = make_figure("attention", std::vector{file}, of(MapValues::rollout, layer));
        REQUIRE(figure.panels.size() == 1);
        check_same(cells(figure).values, rollout(*file, layer));
        CHECK(figure.title == "Attention rollout, layer " + std::to_string(layer));
        CHECK(noted(figure, "Abnar and Zuidema"));
    }
    auto options = of(MapValues::rollout, 2);
    options.pixels = 16;
    options.pooling = Pooling::mean;
    const auto pooled = make_figure("attention", std::vector{file}, options);
    const auto all = rollout(*file, 2);
    double sum = 0;
    for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t j = 0; j < 2; ++j) sum += all[i * kSide + j];
    CHECK(cells(pooled).values[0] == Approx(sum / 4).epsilon(1e-4));
    options.head = 1;
    CHECK(refusal("attention", {file}, options).find("--head") != std::string::npos);
    options = of(MapValues::rollout, 2);
    options.all_sequences = true;
    CHECK(refusal("attention", {file}, options).find("--sequence") != std::string::npos);
}

TEST_CASE("Rollout wants every layer below", "[figures][rollout]") {
    const FigureFiles folder;
    auto wish = recorded(false);
    wish.measured_layers = {1, 2};
    const auto file = folder.analysis("a", wish);
    const std::string refused = refusal("attention", {file}, of(MapValues::rollout, 2));
    CHECK(refused.find("expected maps of every layer up to 2; found none of layer 0") != std::string::npos);
}

TEST_CASE("Maps of norms are weights times what a head, or all of a layer, give for a key", "[figures][norms]") {
    const FigureFiles folder;
    const auto file = folder.analysis("a", recorded());
    const auto products = file->value_products(0, 1);
    REQUIRE(products);
    const auto product = [&](std::size_t key, std::size_t g, std::size_t h) {
        return products->data[(key * 4 + g) * 4 + h];
    };
    std::vector<std::vector<double>> of_heads;
    for (std::int64_t h = 0; h < 4; ++h) of_heads.push_back(weights(*file, 1, h));
    const auto figure = make_figure("attention", std::vector{file}, of(MapValues::norms, 1));
    REQUIRE(figure.panels.size() == 4);
    for (std::size_t h = 0; h < 4; ++h) {
        std::vector<double> wanted;
        for (std::size_t at = 0; at < kSide * kSide; ++at)
            wanted.push_back(of_heads[h][at] * std::sqrt(product(at % kSide, h, h)));
        check_same(cells(figure, h).values, wanted);
    }
    CHECK(noted(figure, "Kobayashi"));
    CHECK(cells(figure).colours.maximum > 0);
    const auto together = make_figure("attention", std::vector{file}, of(MapValues::layer_norms, 1));
    REQUIRE(together.panels.size() == 1);
    std::vector<double> wanted;
    for (std::size_t at = 0; at < kSide * kSide; ++at) {
        double square = 0;
        for (std::size_t g = 0; g < 4; ++g)
            for (std::size_t h = 0; h < 4; ++h) square += of_heads[g][at] * of_heads[h][at] * product(at % kSide, g, h);
        wanted.push_back(std::sqrt(std::max(square, 0.0)));
    }
    // Heads cancel in places: half of float32's digits are left there.
    for (std::size_t at = 0; at < wanted.size(); ++at) {
        const float found = cells(together).values[at];
        if (!std::isnan(found)) REQUIRE(found == Approx(wanted[at]).epsilon(1e-3).margin(2e-3));
    }
    const auto without = folder.analysis("b", recorded(false));
    CHECK(refusal("attention", {without}, of(MapValues::norms, 1)).find("--record maps,norms") != std::string::npos);
}

TEST_CASE("A token's row and column of rollout colour the text", "[figures][rollout]") {
    const FigureFiles folder;
    const auto file = folder.analysis("a", recorded());
    const auto all = rollout(*file, 2);
    const auto numbers = [](const FigureData& figure, const char* name) {
        for (const auto& column : figure.table().columns)
            if (column.name == name) return std::get<std::vector<double>>(column.values);
        return std::vector<double>();
    };
    auto options = of(MapValues::rollout, 2);
    options.query = 20;
    const auto row = numbers(make_figure("text", std::vector{file}, options), "rollout");
    REQUIRE(row.size() == kSide);
    for (std::size_t j = 0; j <= 20; ++j) CHECK(row[j] == Approx(all[20 * kSide + j]).epsilon(1e-4).margin(1e-5));
    CHECK(std::isnan(row[21]));
    options.layer.reset();  // through all layers
    options.query.reset();
    options.key = 3;
    const auto column = numbers(make_figure("text", std::vector{file}, options), "rollout");
    for (std::size_t i = 3; i < kSide; ++i) CHECK(column[i] == Approx(all[i * kSide + 3]).epsilon(1e-4).margin(1e-5));
    options.values = MapValues::norms;
    CHECK(numbers(make_figure("text", std::vector{file}, options), "norm").size() == kSide);
    options.values = MapValues::logits;
    CHECK(refusal("text", {file}, options).find("--values") != std::string::npos);
    options = of(MapValues::rollout, 2);
    CHECK(refusal("text", {file}, options).find("--values") != std::string::npos);
    auto difference = of(MapValues::rollout, 2);
    difference.head = 0;
    difference.other_head = 1;
    CHECK(refusal("difference", {file}, difference).find("--values") != std::string::npos);
}
