// SPDX-License-Identifier: GPL-3.0-or-later
// Tiles of scores and of ranks, and the mass of a region, against single cells taken one by one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "core/maps/logit_source.h"
#include "core/maps/rank_source.h"
#include "tests/core/maps/random_map.h"

using namespace headscope;
using namespace headscope::maps;

namespace {

constexpr std::int64_t kSize = tests::kKeySize;
const std::atomic<bool> kGoOn{false};

std::vector<std::shared_ptr<const HeadMap>> all_maps() {
    kernels::ScoreRule causal, windowed, cross;
    windowed.window_left = 70;
    windowed.first_keys = 3;
    cross.causal = false;
    return {tests::random_map(1, 1, causal), tests::random_map(65, 65, causal), tests::random_map(601, 601, causal),
            tests::random_map(300, 300, windowed), tests::random_map(37, 523, cross)};
}

/// Pools `all` [queries, keys] cell by cell; `signs`: the value of greatest magnitude, else the greatest.
void check_pooled(const TileSource& source, const std::vector<float>& all, int level, bool signs, double tolerance,
                  double mean_tolerance = 0) {
    const std::int64_t size = std::int64_t{1} << level;
    const Cells cells{0, source.queries(), 0, source.keys()};
    const std::int64_t rows = pixels(cells.queries(), level), columns = pixels(cells.keys(), level);
    std::vector<float> mean(static_cast<std::size_t>(rows * columns)), extreme(mean.size());
    source.pool(cells, level, columns, mean.data(), extreme.data(), kGoOn);
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
            double sum = 0, most = 0;
            std::int64_t count = 0;
            for (std::int64_t i = r * size; i < std::min(cells.q_end, (r + 1) * size); ++i) {
                for (std::int64_t j = c * size; j < std::min(cells.k_end, (c + 1) * size); ++j) {
                    const double value = all[static_cast<std::size_t>(i * cells.k_end + j)];
                    if (std::isnan(value)) continue;
                    const bool more = signs ? std::abs(value) > std::abs(most) : value > most;
                    if (count++ == 0 || more) most = value;
                    sum += value;
                }
            }
            const auto at = static_cast<std::size_t>(r * columns + c);
            REQUIRE(std::isnan(mean[at]) == (count == 0));
            REQUIRE(std::isnan(extreme[at]) == (count == 0));
            if (count == 0) continue;
            REQUIRE(std::abs(mean[at] - sum / static_cast<double>(count)) <= std::max(tolerance, mean_tolerance));
            REQUIRE(std::abs((signs ? std::abs(extreme[at]) : double{extreme[at]}) - (signs ? std::abs(most) : most)) <=
                    tolerance);
        }
    }
}

/// The share of the other weights of the row that are smaller, ties counting half.
std::vector<float> plain_ranks(const HeadMap& map) {
    std::vector<float> values = map.values({0, map.queries(), 0, map.keys()});
    for (std::int64_t i = 0; i < map.queries(); ++i) {
        float* row = values.data() + i * map.keys();
        const std::vector<float> weights(row, row + map.keys());
        for (std::int64_t j = 0; j < map.keys(); ++j) {
            double less = 0, others = -1;
            for (const float w : weights) {
                others += std::isnan(w) ? 0 : 1;
                less += w < weights[static_cast<std::size_t>(j)] ? 1 : 0;
                less += w == weights[static_cast<std::size_t>(j)] ? 0.5 : 0;
            }
            if (!std::isnan(row[j])) row[j] = others > 0 ? static_cast<float>((less - 0.5) / others) : 1.0F;
        }
    }
    return values;
}

}  // namespace

TEST_CASE("Pooled scores keep their sign, and the greatest magnitude", "[tiles]") {
    for (const auto& map : all_maps()) {
        const auto all = map->scores({0, map->queries(), 0, map->keys()});
        const LogitSource source(map);
        for (const int level : {0, 1, 3, 5}) check_pooled(source, all, level, true, 1e-4);
    }
}

TEST_CASE("Ranks are exact in short rows and within a 256th in long ones, pooled too", "[tiles]") {
    for (const auto& map : all_maps()) {
        const RankSource source(map);
        const auto all = plain_ranks(*map);
        // Beyond 257 keys a rank lies between those of two quantiles; float32 sums of up to 32 x 32 ranks.
        const double tolerance = map->keys() <= RankSource::kKnots ? 1e-5 : 1.0 / 256 + 1e-5;
        const auto single = source.values({0, map->queries(), 0, map->keys()});
        for (std::size_t i = 0; i < all.size(); ++i) {
            REQUIRE(std::isnan(all[i]) == std::isnan(single[i]));
            if (!std::isnan(all[i])) REQUIRE(std::abs(all[i] - single[i]) <= tolerance);
        }
        for (const int level : {0, 2, 3}) check_pooled(source, all, level, false, tolerance);
        // Means of a quarter of the keys: a few hundred ranks each, or of a few at the ends of rows.
        check_pooled(source, all, 5, false, tolerance, 0.25);
    }
}

TEST_CASE("Weights that are equal share a rank", "[tiles]") {
    // No scores at all: every query looks at all its keys alike.
    const HeadMap flat(std::vector<float>(20 * kSize), std::vector<float>(20 * kSize), std::vector<float>(20), kSize,
                       kernels::ScoreRule());
    const RankSource source(std::make_shared<const HeadMap>(flat));
    const auto ranks = source.values({0, 20, 0, 20});
    CHECK(ranks[0] == 1.0F);
    for (std::size_t i = 1; i < 20; ++i) CHECK(ranks[i * 20] == 0.5F);
}

TEST_CASE("A tile of ranks can be given up, and made later", "[tiles]") {
    const auto map = tests::random_map(601, 601, kernels::ScoreRule());
    const RankSource source(map);
    std::vector<float> mean(601 * 601), extreme(mean.size());
    const std::atomic<bool> stop{true};
    CHECK_THROWS(source.pool({0, 601, 0, 601}, 0, 601, mean.data(), extreme.data(), stop));
    source.pool({0, 601, 0, 601}, 0, 601, mean.data(), extreme.data(), kGoOn);
    CHECK(extreme[600 * 601 + 600] >= 0);
}

TEST_CASE("A region's mass is the sum of its weights", "[tiles]") {
    for (const auto& map : all_maps()) {
        const Cells cells{map->queries() / 3, map->queries(), 0, (map->keys() + 1) / 2};
        double sum = 0;
        std::int64_t allowed = 0;
        for (const float w : map->values(cells)) {
            if (std::isnan(w)) continue;
            sum += double{w};
            ++allowed;
        }
        const RegionMass mass = map->mass(cells, kGoOn);
        CHECK(mass.mass == Approx(sum).epsilon(1e-5));
        CHECK(mass.allowed == allowed);
        CHECK(mass.cells == cells.queries() * cells.keys());
        CHECK(mass.queries == cells.queries());
        CHECK(mass.share == Approx(sum / static_cast<double>(cells.queries())).epsilon(1e-5));
        CHECK_THROWS(map->mass(cells, std::atomic<bool>(true)));
    }
}
