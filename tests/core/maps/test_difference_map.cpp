// SPDX-License-Identifier: GPL-3.0-or-later
// The difference of two maps against plain subtraction, pooled at every level, with tokens that have no partner.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "core/base/error.h"
#include "core/maps/difference_map.h"
#include "core/maps/tile_server.h"
#include "kernels/backend.h"

using namespace headscope;
using namespace headscope::maps;

namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
const std::atomic<bool> kGoOn{false};

/// A map of given numbers; only single cells are asked of it.
class Plain final : public TileSource {
public:
    Plain(std::int64_t queries, std::int64_t keys, std::vector<float> numbers)
        : queries_(queries), keys_(keys), numbers_(std::move(numbers)) {}
    std::int64_t queries() const override { return queries_; }
    std::int64_t keys() const override { return keys_; }
    void pool(const Cells&, int, std::int64_t, float*, float*, const std::atomic<bool>&) const override { FAIL(); }
    std::vector<float> values(const Cells& cells) const override {
        std::vector<float> out;
        for (std::int64_t i = cells.q_begin; i < cells.q_end; ++i)
            for (std::int64_t j = cells.k_begin; j < cells.k_end; ++j) out.push_back(at(i, j));
        return out;
    }
    float at(std::int64_t i, std::int64_t j) const { return numbers_.at(static_cast<std::size_t>(i * keys_ + j)); }

private:
    std::int64_t queries_, keys_;
    std::vector<float> numbers_;
};

/// Random weights, NaN above the diagonal of a causal map.
std::shared_ptr<const Plain> random_map(std::int64_t queries, std::int64_t keys, bool causal, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> number(0.0F, 1.0F);
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < queries; ++i)
        for (std::int64_t j = 0; j < keys; ++j) numbers.push_back(causal && j > i ? kNone : number(random));
    return std::make_shared<const Plain>(queries, keys, std::move(numbers));
}

std::vector<std::int64_t> identity(std::int64_t size) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    return all;
}

/// In order, with gaps on both sides.
std::vector<std::int64_t> with_gaps(std::int64_t first, std::int64_t second, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::int64_t> partners;
    std::int64_t next = 0;
    for (std::int64_t i = 0; i < first; ++i) {
        if (random() % 5 == 0) next += static_cast<std::int64_t>(random() % 4);
        const bool none = random() % 7 == 0 || next >= second;
        partners.push_back(none ? -1 : next++);
    }
    return partners;
}

std::vector<float> subtracted(const Plain& a, const Plain& b, const std::vector<std::int64_t>& queries,
                              const std::vector<std::int64_t>& keys) {
    std::vector<float> all;
    for (std::int64_t i = 0; i < a.queries(); ++i)
        for (std::int64_t j = 0; j < a.keys(); ++j) {
            const auto p = queries[static_cast<std::size_t>(i)], k = keys[static_cast<std::size_t>(j)];
            all.push_back(p < 0 || k < 0 ? kNone : b.at(p, k) - a.at(i, j));
        }
    return all;
}

void check_pooled(const DifferenceMap& source, const std::vector<float>& all, int level) {
    INFO("level " << level);
    const std::int64_t size = std::int64_t{1} << level;
    const Cells cells{0, source.queries(), 0, source.keys()};
    const std::int64_t rows = pixels(cells.queries(), level), columns = pixels(cells.keys(), level);
    std::vector<float> mean(static_cast<std::size_t>(rows * columns)), extreme(mean.size());
    source.pool(cells, level, columns, mean.data(), extreme.data(), kGoOn);
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
            double sum = 0;
            std::int64_t count = 0;
            float most = 0;
            for (std::int64_t i = r * size; i < std::min(cells.q_end, (r + 1) * size); ++i)
                for (std::int64_t j = c * size; j < std::min(cells.k_end, (c + 1) * size); ++j) {
                    const float value = all[static_cast<std::size_t>(i * cells.k_end + j)];
                    if (std::isnan(value)) continue;
                    sum += static_cast<double>(value);
                    if (count++ == 0 || std::abs(value) > std::abs(most)) most = value;
                }
            const auto at = static_cast<std::size_t>(r * columns + c);
            REQUIRE(std::isnan(mean[at]) == (count == 0));
            REQUIRE(std::isnan(extreme[at]) == (count == 0));
            if (count == 0) continue;
            // The sum is of doubles; the mean is rounded once.
            REQUIRE(static_cast<double>(mean[at]) == Approx(sum / static_cast<double>(count)).margin(1e-6));
            REQUIRE(extreme[at] == most);
        }
    }
}

}  // namespace

TEST_CASE("Maps of the same tokens are subtracted cell by cell and pooled with their sign", "[tiles]") {
    for (const auto& [queries, keys, causal] : {std::tuple<std::int64_t, std::int64_t, bool>{1, 1, true},
                                                {67, 67, true},
                                                {131, 523, false},
                                                {301, 301, true}}) {
        const auto a = random_map(queries, keys, causal, 1), b = random_map(queries, keys, causal, 2);
        const DifferenceMap source(a, b, identity(queries), identity(keys));
        const auto all = subtracted(*a, *b, identity(queries), identity(keys));
        const auto single = source.values({0, queries, 0, keys});
        for (std::size_t i = 0; i < all.size(); ++i)
            REQUIRE((std::isnan(all[i]) ? std::isnan(single[i]) : single[i] == all[i]));
        for (const int level : {0, 1, 3, 5}) check_pooled(source, all, level);
    }
}

TEST_CASE("Tokens without a partner are no pair, wherever the others moved to", "[tiles]") {
    const auto a = random_map(213, 213, true, 3), b = random_map(407, 407, true, 4);
    for (const unsigned seed : {5U, 6U}) {
        const auto queries = with_gaps(213, 407, seed), keys = with_gaps(213, 407, seed + 10);
        const DifferenceMap source(a, b, queries, keys);
        const auto all = subtracted(*a, *b, queries, keys);
        for (const int level : {0, 2, 4}) check_pooled(source, all, level);
    }
    // Backwards, and with a partner far away: nothing hangs on an order.
    auto backwards = identity(213);
    std::reverse(backwards.begin(), backwards.end());
    backwards[100] = 406;
    const DifferenceMap source(a, b, backwards, identity(213));
    for (const int level : {0, 3}) check_pooled(source, subtracted(*a, *b, backwards, identity(213)), level);
    // No query has a partner.
    const DifferenceMap nothing(a, b, std::vector<std::int64_t>(213, -1), identity(213));
    for (const float value : nothing.values({0, 213, 0, 213})) REQUIRE(std::isnan(value));
}

TEST_CASE("A single cell that differs is seen at every level, above or below zero", "[tiles]") {
    constexpr std::int64_t kSize = 1031;
    std::vector<float> flat(static_cast<std::size_t>(kSize * kSize), 0.25F), changed = flat;
    changed[static_cast<std::size_t>(700 * kSize + 3)] = 0.5F;
    changed[static_cast<std::size_t>(1030 * kSize + 1030)] = 0.125F;
    const auto source = std::make_shared<const DifferenceMap>(std::make_shared<const Plain>(kSize, kSize, flat),
                                                              std::make_shared<const Plain>(kSize, kSize, changed),
                                                              identity(kSize), identity(kSize));
    TileServer server(TileServer::Options{2, 64LL << 20, {}});
    const auto map = server.add(source);
    for (int level = 0; level <= top_level(kSize, kSize); ++level) {
        INFO("level " << level);
        const std::int64_t side = kTileSize << level;
        const TileKey first{map, level, 700 / side, 3 / side}, second{map, level, 1030 / side, 1030 / side};
        server.want({first, second});
        server.wait();
        const auto pixel = [&](const TileKey& key, std::int64_t q, std::int64_t k) {
            const auto tile = server.find(key);
            REQUIRE(tile);
            const std::int64_t row = (q % side) >> level, column = (k % side) >> level;
            return tile->extreme.at(static_cast<std::size_t>(row * tile->columns + column));
        };
        CHECK(pixel(first, 700, 3) == 0.25F);
        CHECK(pixel(second, 1030, 1030) == -0.125F);
    }
}

TEST_CASE("Partners that do not fit the maps are refused, and a tile can be given up", "[tiles]") {
    const auto a = random_map(9, 9, true, 7), b = random_map(5, 5, true, 8);
    CHECK_THROWS_AS(DifferenceMap(a, b, identity(9), identity(9)), Error);
    CHECK_THROWS_AS(DifferenceMap(a, b, identity(5), std::vector<std::int64_t>(9, -1)), Error);
    const DifferenceMap source(a, b, std::vector<std::int64_t>(9, 4), std::vector<std::int64_t>(9, -1));
    const std::atomic<bool> stop{true};
    std::vector<float> mean(81), extreme(81);
    CHECK_THROWS_AS(source.pool({0, 9, 0, 9}, 0, 9, mean.data(), extreme.data(), stop), kernels::Cancelled);
}
