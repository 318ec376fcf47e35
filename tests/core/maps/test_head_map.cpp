// SPDX-License-Identifier: GPL-3.0-or-later
// Pooled pixels of one head's map against pooling the cells one by one in float64.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "core/base/error.h"
#include "core/maps/head_map.h"
#include "kernels/score_pairs.h"

using namespace headscope;
using namespace headscope::maps;

namespace {

constexpr std::int64_t kSize = 5;
// A weight is the exponential of a float32 score of kSize products, all below 30 in magnitude.
constexpr double kTolerance = 64 * kSize * std::numeric_limits<float>::epsilon();

struct Case {
    std::int64_t queries, keys;
    kernels::ScoreRule rule;
    std::vector<float> query, key, constants;
    std::vector<double> weights;  ///< [queries, keys]; NaN: not allowed

    Case(std::int64_t q, std::int64_t k, kernels::ScoreRule given) : queries(q), keys(k), rule(std::move(given)) {
        std::mt19937 random(static_cast<unsigned>(q * 1000 + k));
        std::uniform_real_distribution<float> number(-2.0F, 2.0F);
        const auto fill = [&](std::vector<float>& into, std::int64_t rows) {
            into.resize(static_cast<std::size_t>(rows * kSize));
            std::generate(into.begin(), into.end(), [&] { return number(random); });
        };
        fill(query, queries);
        fill(key, keys);
        weights.assign(static_cast<std::size_t>(queries * keys), std::numeric_limits<double>::quiet_NaN());
        const auto bounds = kernels::sequence_bounds(rule, 0, queries, keys);
        for (std::int64_t i = 0; i < queries; ++i) {
            double sum = 0;
            for (std::int64_t j = 0; j < keys; ++j) {
                if (!kernels::allowed(rule, bounds, 0, 0, 1, i, j)) continue;
                double dot = 0;
                for (std::int64_t c = 0; c < kSize; ++c)
                    dot += double{query[static_cast<std::size_t>(i * kSize + c)]} *
                           double{key[static_cast<std::size_t>(j * kSize + c)]};
                const double weight = std::exp(kernels::score_of<double>(rule, 0, i, j, dot));
                weights[static_cast<std::size_t>(i * keys + j)] = weight;
                sum += weight;
            }
            constants.push_back(sum > 0 ? static_cast<float>(std::log(sum)) : std::numeric_limits<float>::infinity());
            for (std::int64_t j = 0; j < keys; ++j) weights[static_cast<std::size_t>(i * keys + j)] /= sum;
        }
    }

    HeadMap map() const { return {query, key, constants, kSize, rule}; }
};

void check_level(const Case& of, const HeadMap& map, const Cells& cells, int level) {
    const std::int64_t rows = pixels(cells.queries(), level), columns = pixels(cells.keys(), level);
    const std::int64_t stride = columns + 3;
    std::vector<float> mean(static_cast<std::size_t>(rows * stride), 7.0F), extreme = mean;
    const std::atomic<bool> go_on{false};
    map.pool(cells, level, stride, mean.data(), extreme.data(), go_on);
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
            double sum = 0, most = 0;
            std::int64_t count = 0, seen = 0;
            for (std::int64_t i = cells.q_begin + (r << level);
                 i < std::min(cells.q_end, cells.q_begin + ((r + 1) << level)); ++i) {
                for (std::int64_t j = cells.k_begin + (c << level);
                     j < std::min(cells.k_end, cells.k_begin + ((c + 1) << level)); ++j) {
                    const double weight = of.weights[static_cast<std::size_t>(i * of.keys + j)];
                    ++count;
                    if (std::isnan(weight)) continue;
                    ++seen;
                    sum += weight;
                    most = std::max(most, weight);
                }
            }
            const auto at = static_cast<std::size_t>(r * stride + c);
            INFO("level " << level << ", pixel " << r << ", " << c);
            if (seen == 0) {
                REQUIRE(std::isnan(mean[at]));
                REQUIRE(std::isnan(extreme[at]));
            } else {
                REQUIRE(std::abs(mean[at] - sum / static_cast<double>(count)) <= kTolerance);
                REQUIRE(std::abs(extreme[at] - most) <= kTolerance);
            }
        }
        for (std::int64_t c = columns; c < stride; ++c) REQUIRE(mean[static_cast<std::size_t>(r * stride + c)] == 7.0F);
    }
}

kernels::ScoreRule causal() {
    kernels::ScoreRule rule;
    rule.scale = 0.4;
    return rule;
}

}  // namespace

TEST_CASE("A pixel pools the cells under it, at every level and at the map's ends", "[tiles]") {
    auto windowed = causal();
    windowed.window_left = 9;
    windowed.first_keys = 3;
    auto cross = causal();
    cross.causal = false;
    auto later = causal();
    later.query_offset = 40;
    auto padded = causal();
    padded.key_begin = {5};
    padded.key_length = {60};
    for (const Case& of : {Case(1, 1, causal()), Case(63, 63, causal()), Case(65, 65, causal()),
                           Case(130, 130, windowed), Case(37, 101, cross), Case(25, 65, later), Case(64, 64, padded)}) {
        const HeadMap map = of.map();
        for (int level = 0; level <= 5; ++level) check_level(of, map, {0, of.queries, 0, of.keys}, level);
        if (of.queries > 32) check_level(of, map, {16, of.queries - 3, 24, of.keys - 1}, 3);
    }
}

TEST_CASE("Single cells are weights and scores, and NaN where a pair is not allowed", "[tiles]") {
    const Case of(65, 65, causal());
    const HeadMap map = of.map();
    const Cells cells{30, 41, 20, 50};
    const std::vector<float> values = map.values(cells), scores = map.scores(cells);
    for (std::int64_t i = cells.q_begin; i < cells.q_end; ++i) {
        for (std::int64_t j = cells.k_begin; j < cells.k_end; ++j) {
            const auto at = static_cast<std::size_t>((i - cells.q_begin) * cells.keys() + j - cells.k_begin);
            const double expected = of.weights[static_cast<std::size_t>(i * of.keys + j)];
            REQUIRE(std::isnan(values[at]) == (j > i));
            REQUIRE(std::isnan(scores[at]) == (j > i));
            if (j > i) continue;
            REQUIRE(std::abs(values[at] - expected) <= kTolerance);
            REQUIRE(std::abs(std::exp(double{scores[at]} - of.constants[static_cast<std::size_t>(i)]) - expected) <=
                    kTolerance);
        }
    }
}

TEST_CASE("A head's rule is the head's part of the site's", "[tiles]") {
    kernels::ScoreRule rule;
    rule.slopes = {1, 2, 3};
    rule.sink_logits = {4, 5, 6};
    rule.bias_length = 2;
    rule.distance_bias = {10, 11, 20, 21, 30, 31};
    rule.blocks = {4, 2, {1, 0, 0, 1, 1, 1, /* second sequence */ 0, 0, 1, 0, 0, 1}};
    rule.key_length = {7, 8};
    const kernels::ScoreRule own = rule_of_head(rule, 1, 1, 3);
    CHECK(own.slopes == std::vector<float>{2});
    CHECK(own.sink_logits == std::vector<float>{5});
    CHECK(own.distance_bias == std::vector<float>{20, 21});
    CHECK(own.blocks.visible == std::vector<std::uint8_t>{1, 0});
    CHECK(own.key_length == std::vector<std::int64_t>{8});
    CHECK(own.key_begin.empty());
}

TEST_CASE("Queries and keys that do not fit together are refused", "[tiles]") {
    CHECK_THROWS_AS(HeadMap(std::vector<float>(10), std::vector<float>(10), std::vector<float>(3), 5, causal()), Error);
    CHECK_THROWS_AS(HeadMap({}, {}, {}, 5, causal()), Error);
}
