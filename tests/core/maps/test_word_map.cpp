// SPDX-License-Identifier: GPL-3.0-or-later
// Words in place of pieces, against sums of single cells in float64.
#include <catch2/catch.hpp>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/maps/word_map.h"
#include "tests/core/maps/random_map.h"

using namespace headscope;
using namespace headscope::maps;

namespace {

const std::atomic<bool> kGoOn{false};
// Weights are at most 1: what float32 rounds off of one, and of a sum of a few.
constexpr double kTolerance = 4 * std::numeric_limits<float>::epsilon();

/// Words of 1, 2, 3, 1, ... pieces.
std::vector<std::int64_t> begins(std::int64_t pieces) {
    std::vector<std::int64_t> all;
    for (std::int64_t at = 0, size = 1; at < pieces; at += size, size = size % 3 + 1) all.push_back(at);
    all.push_back(pieces);
    return all;
}

std::vector<double> plain(const PairMap& map, const std::vector<std::int64_t>& rows,
                          const std::vector<std::int64_t>& columns) {
    std::vector<double> all;
    for (std::size_t r = 0; r + 1 < rows.size(); ++r) {
        for (std::size_t c = 0; c + 1 < columns.size(); ++c) {
            double sum = 0;
            bool allowed = false;
            for (const float weight : map.values({rows[r], rows[r + 1], columns[c], columns[c + 1]})) {
                if (std::isnan(weight)) continue;
                allowed = true;
                sum += static_cast<double>(weight);
            }
            all.push_back(allowed ? sum / static_cast<double>(rows[r + 1] - rows[r])
                                  : std::numeric_limits<double>::quiet_NaN());
        }
    }
    return all;
}

void require_same(const std::vector<float>& found, const std::vector<double>& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        REQUIRE(std::isnan(found[i]) == std::isnan(expected[i]));
        if (!std::isnan(found[i])) REQUIRE(static_cast<double>(found[i]) == Approx(expected[i]).margin(kTolerance));
    }
}

}  // namespace

TEST_CASE("A row of words is the mean of its pieces' rows, a column the sum of its columns", "[maps][words]") {
    kernels::ScoreRule rule;
    const int kind = GENERATE(0, 1, 2);
    if (kind == 1) {
        rule.window_left = 20;
        rule.first_keys = 3;
    }
    if (kind == 2) rule.causal = false;
    const std::int64_t queries = 301, keys = kind == 2 ? 2500 : 301;
    const auto pieces = tests::random_map(queries, keys, rule);
    const auto rows = begins(queries), columns = begins(keys);
    const WordMap words(pieces, rows, columns);
    const auto expected = plain(*pieces, rows, columns);
    const Cells all{0, words.queries(), 0, words.keys()};
    require_same(words.values(all), expected);
    for (std::int64_t q = 0; q < words.queries(); q += 7) {
        const auto row = words.values({q, q + 1, 0, words.keys()});
        double sum = 0;
        for (const float weight : row) sum += std::isnan(weight) ? 0 : static_cast<double>(weight);
        REQUIRE(sum == Approx(1).epsilon(1e-4));  // the plain sum's constants
    }

    // A part, from anywhere.
    const Cells part{5, 40, 3, words.keys() - 2};
    std::vector<double> cut;
    for (std::int64_t q = part.q_begin; q < part.q_end; ++q)
        for (std::int64_t k = part.k_begin; k < part.k_end; ++k)
            cut.push_back(expected[static_cast<std::size_t>(q * words.keys() + k)]);
    require_same(words.values(part), cut);
    const auto read = words.read(part);
    REQUIRE(std::isnan(read.front().weight) == std::isnan(cut.front()));
    REQUIRE(std::isnan(read.back().logit));

    // Pixels and the mass are those of the cells.
    constexpr int level = 2;
    const std::int64_t high = pixels(words.queries(), level), wide = pixels(words.keys(), level);
    std::vector<float> mean(static_cast<std::size_t>(high * wide)), most(mean.size());
    words.pool(all, level, wide, mean.data(), most.data(), kGoOn);
    double sum = 0, pooled = 0;
    for (const double weight : expected) sum += std::isnan(weight) ? 0 : weight;
    for (std::int64_t r = 0; r < high; ++r) {
        for (std::int64_t c = 0; c < wide; ++c) {
            const float value = mean[static_cast<std::size_t>(r * wide + c)];
            if (std::isnan(value)) continue;
            pooled +=
                static_cast<double>(value) * static_cast<double>(std::min<std::int64_t>(4, words.queries() - 4 * r) *
                                                                 std::min<std::int64_t>(4, words.keys() - 4 * c));
        }
    }
    REQUIRE(pooled == Approx(sum).epsilon(1e-5));
    const RegionMass mass = words.mass(all, kGoOn);
    REQUIRE(mass.mass == Approx(sum).epsilon(1e-5));
    REQUIRE(mass.share == Approx(1).epsilon(1e-4));
    REQUIRE(mass.queries == words.queries());
}

TEST_CASE("Words that are not those of the map are refused", "[maps][words]") {
    const auto pieces = tests::random_map(5, 5, {});
    REQUIRE_THROWS_AS(WordMap(pieces, {0, 2, 2, 5}, {0, 5}), Error);
    REQUIRE_THROWS_AS(WordMap(pieces, {0, 5}, {0, 4}), Error);
    REQUIRE_THROWS_AS(WordMap(pieces, {}, {0, 5}), Error);
    REQUIRE_THROWS_AS(WordMap(pieces, {1, 5}, {0, 5}), Error);
}
