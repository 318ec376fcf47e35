// SPDX-License-Identifier: GPL-3.0-or-later
// A head's map in the mean over sequences, against means of single cells in float64.
#include <catch2/catch.hpp>
#include <limits>

#include "core/base/error.h"
#include "core/maps/logit_source.h"
#include "core/maps/mean_map.h"
#include "core/maps/rank_source.h"
#include "tests/core/maps/random_map.h"

using namespace headscope;
using namespace headscope::maps;

namespace {

const std::atomic<bool> kGoOn{false};
// Weights are at most 1: what float32 rounds off of one, and of a sum of a few.
constexpr double kTolerance = 4 * std::numeric_limits<float>::epsilon();

using Maps = std::vector<std::shared_ptr<const PairMap>>;

/// Alike and of other lengths; causal, within a window, and of another text's keys.
std::vector<Maps> groups() {
    kernels::ScoreRule causal, windowed, cross;
    windowed.window_left = 20;
    windowed.first_keys = 3;
    cross.causal = false;
    const auto group = [](const kernels::ScoreRule& rule, std::initializer_list<std::pair<int, int>> sizes) {
        Maps maps;
        for (const auto& [queries, keys] : sizes)
            maps.push_back(tests::random_map(queries, keys, rule, static_cast<unsigned>(maps.size())));
        return maps;
    };
    return {group(causal, {{65, 65}}), group(causal, {{64, 64}, {64, 64}, {64, 64}}),
            group(causal, {{1, 1}, {63, 63}, {301, 301}, {65, 65}}), group(windowed, {{129, 129}, {70, 70}}),
            group(cross, {{37, 123}, {50, 3}})};
}

/// Every cell of all maps, gathered; empty where none has the pair.
std::vector<double> cell(const Maps& maps, std::int64_t q, std::int64_t k, bool logits) {
    std::vector<double> values;
    for (const auto& map : maps) {
        if (q >= map->queries() || k >= map->keys()) continue;
        const Cells one{q, q + 1, k, k + 1};
        const float value = (logits ? map->scores(one) : map->values(one)).front();
        if (!std::isnan(value)) values.push_back(static_cast<double>(value));
    }
    return values;
}

double mean_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(values.size());
}

/// [queries, keys] means; NaN: no sequence has the pair.
std::vector<double> plain(const MeanMap& map, const Maps& maps, bool logits) {
    std::vector<double> all;
    for (std::int64_t q = 0; q < map.queries(); ++q)
        for (std::int64_t k = 0; k < map.keys(); ++k) all.push_back(mean_of(cell(maps, q, k, logits)));
    return all;
}

}  // namespace

TEST_CASE("A mean map is the mean over the sequences that have a pair", "[tiles]") {
    for (const Maps& maps : groups()) {
        const MeanMap map(maps);
        const Cells all{0, map.queries(), 0, map.keys()};
        for (const bool logits : {false, true}) {
            const auto expected = plain(map, maps, logits);
            const auto found = logits ? map.scores(all) : map.values(all);
            REQUIRE(found.size() == expected.size());
            for (std::size_t i = 0; i < found.size(); ++i) {
                REQUIRE(std::isnan(found[i]) == std::isnan(expected[i]));
                // Scores of four products below 4 each.
                if (!std::isnan(found[i]))
                    REQUIRE(std::abs(double{found[i]} - expected[i]) <= (logits ? 16 : 1) * kTolerance);
            }
        }
    }
}

TEST_CASE("Pooled means count forbidden pairs as 0 and keep the greatest weight", "[tiles]") {
    for (const Maps& maps : groups()) {
        const MeanMap map(maps);
        const auto all = plain(map, maps, false);
        for (const int level : {0, 1, 4, 6}) {
            const std::int64_t side = std::int64_t{1} << level;
            const std::int64_t rows = pixels(map.queries(), level), columns = pixels(map.keys(), level);
            std::vector<float> mean(static_cast<std::size_t>(rows * (columns + 1))), most(mean.size());
            map.pool({0, map.queries(), 0, map.keys()}, level, columns + 1, mean.data(), most.data(), kGoOn);
            for (std::int64_t r = 0; r < rows; ++r) {
                for (std::int64_t c = 0; c < columns; ++c) {
                    double sum = 0, greatest = -1;
                    std::int64_t pairs = 0;
                    for (std::int64_t q = r * side; q < std::min(map.queries(), (r + 1) * side); ++q) {
                        for (std::int64_t k = c * side; k < std::min(map.keys(), (c + 1) * side); ++k) {
                            ++pairs;
                            const double value = all[static_cast<std::size_t>(q * map.keys() + k)];
                            if (std::isnan(value)) continue;
                            sum += value;
                            greatest = std::max(greatest, value);
                        }
                    }
                    const auto at = static_cast<std::size_t>(r * (columns + 1) + c);
                    REQUIRE(std::isnan(mean[at]) == (greatest < 0));
                    REQUIRE(std::isnan(most[at]) == (greatest < 0));
                    if (greatest < 0) continue;
                    REQUIRE(std::abs(double{mean[at]} - sum / static_cast<double>(pairs)) <= kTolerance);
                    REQUIRE(std::abs(double{most[at]} - greatest) <= kTolerance);
                }
            }
        }
        std::vector<float> mean(all.size()), most(all.size());
        CHECK_THROWS(map.pool({0, map.queries(), 0, map.keys()}, 0, map.keys(), mean.data(), most.data(),
                              std::atomic<bool>(true)));
    }
}

TEST_CASE("A pair of a mean map says how far sequences lie apart", "[tiles]") {
    const auto maps = groups()[2];
    const MeanMap map(maps);
    CHECK(map.sequences() == 4);
    CHECK(map.read({60, 66, 60, 70}).at(4 * 10 + 4).sequences == 2);  // query 64, key 64
    for (const auto& [q, k, sequences] : {std::tuple{0, 0, 4}, {62, 3, 3}, {64, 64, 2}, {300, 7, 1}, {5, 6, 0}}) {
        CAPTURE(q, k);
        const auto weights = cell(maps, q, k, false), logits = cell(maps, q, k, true);
        const PairReading found = map.read({q, q + 1, k, k + 1}).front();
        CHECK(found.sequences == sequences);
        REQUIRE(std::ssize(weights) == sequences);
        CHECK(std::isnan(found.weight) == (sequences == 0));
        CHECK(std::isnan(found.weight_deviation) == (sequences < 2));
        CHECK(std::isnan(found.logit_deviation) == (sequences < 2));
        if (sequences == 0) continue;
        CHECK(double{found.weight} == Approx(mean_of(weights)));
        CHECK(double{found.logit} == Approx(mean_of(logits)));
        if (sequences < 2) continue;
        double squares = 0;
        for (const double logit : logits) squares += (logit - mean_of(logits)) * (logit - mean_of(logits));
        CHECK(double{found.logit_deviation} == Approx(std::sqrt(squares / (sequences - 1))));
    }
}

TEST_CASE("A region's mass is its mean over the sequences that reach it", "[tiles]") {
    const auto maps = groups()[2];
    const MeanMap map(maps);
    const Cells cells{60, 66, 1, 40};  // of three sequences, the last query of two of them
    std::vector<double> masses, shares;
    for (const std::size_t i : {1U, 2U, 3U}) {
        const RegionMass one = maps[i]->mass({60, std::min<std::int64_t>(66, maps[i]->queries()), 1, 40}, kGoOn);
        masses.push_back(one.mass);
        shares.push_back(one.share);
    }
    const RegionMass found = map.mass(cells, kGoOn);
    CHECK(found.sequences == 3);
    CHECK(found.mass == Approx(mean_of(masses)));
    CHECK(found.share == Approx(mean_of(shares)));
    CHECK(found.mass_deviation > 0);
    CHECK(found.share_deviation > 0);
    CHECK(found.cells == 6 * 39);
    CHECK(found.allowed == found.cells);
    CHECK(found.queries == 6);
}

TEST_CASE("Ranks and scores are pooled of a mean map too", "[tiles]") {
    const auto map = std::make_shared<const MeanMap>(groups()[2]);
    CHECK(map->allowed(70) == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 71}});
    CHECK(map->seen(0, 64) == std::pair<std::int64_t, std::int64_t>(0, 64));
    const RankSource ranks(map);
    const auto row = map->values({250, 251, 0, 301}), ranked = ranks.values({250, 251, 0, 301});
    const auto largest = std::max_element(row.begin(), row.begin() + 251) - row.begin();
    CHECK(ranked[static_cast<std::size_t>(largest)] == 1.0F);
    CHECK(std::isnan(ranked[251]));
    const LogitSource logits(map);
    const std::int64_t side = pixels(301, 5);
    std::vector<float> mean(static_cast<std::size_t>(side * side)), extreme(mean.size());
    logits.pool({0, 301, 0, 301}, 5, side, mean.data(), extreme.data(), kGoOn);
    double most = 0;
    for (const float score : map->scores({32, 64, 0, 32})) most = std::max(most, std::abs(double{score}));
    CHECK(std::abs(double{extreme[static_cast<std::size_t>(side)]}) == Approx(most));
}

TEST_CASE("A mean of no maps is an error", "[tiles]") {
    CHECK_THROWS_AS(MeanMap({}), Error);
}
