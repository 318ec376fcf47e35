// SPDX-License-Identifier: GPL-3.0-or-later
// Rollout and norms against their definitions in numpy (tests/oracle/generate/rollout_numpy.py), and long texts against
// themselves: rows, columns and pooled tiles come about in different ways.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/error.h"
#include "core/maps/norm_map.h"
#include "core/maps/rank_source.h"
#include "core/maps/rollout.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::maps;

namespace {

const std::atomic<bool> kGoOn{false};
/// float32 weights of scores below 10, and some sums of them.
constexpr double kTolerance = 4e-6;

struct Golden {
    std::int64_t tokens = 0;
    struct Layer {
        store::AnalysisFile::Map map;
        std::vector<double> rollout, head_norms, layer_norms;
        std::vector<float> products;
    };
    std::vector<std::vector<Layer>> cases;
};

Golden golden() {
    std::ifstream in(test::golden_file("rollout_numpy.json"));
    const nlohmann::json file = nlohmann::json::parse(in);
    Golden golden;
    golden.tokens = file.at("tokens");
    for (const auto& one : file.at("cases")) {
        auto& layers = golden.cases.emplace_back();
        for (const auto& from : one.at("layers")) {
            Golden::Layer& layer = layers.emplace_back();
            store::AnalysisFile::Map& map = layer.map;
            map.heads = file.at("heads");
            map.key_value_heads = file.at("groups");
            map.queries = map.keys = golden.tokens;
            map.key_size = file.at("size");
            const auto floats = [&](const char* name) { return from.at(name).get<std::vector<float>>(); };
            map.query = floats("query");
            map.key = floats("key");
            map.row_constant = floats("row_constant");
            map.rule.scale = one.at("rule").at("scale");
            map.rule.causal = one.at("rule").at("causal");
            map.rule.window_left = one.at("rule").at("window_left");
            map.rule.sink_logits = one.at("rule").at("sink_logits").get<std::vector<float>>();
            layer.rollout = from.at("rollout").get<std::vector<double>>();
            layer.head_norms = from.at("head_norms").get<std::vector<double>>();
            layer.layer_norms = from.at("layer_norms").get<std::vector<double>>();
            layer.products = floats("products");
        }
    }
    return golden;
}

/// Values that the mask forbids are 0 in numpy and NaN here.
void check_same(const std::vector<float>& found, const double* wanted, double largest) {
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (std::isnan(found[i]))
            REQUIRE(wanted[i] == 0);
        else
            REQUIRE(std::abs(static_cast<double>(found[i]) - wanted[i]) <= kTolerance * largest);
    }
}

std::shared_ptr<const HeadMap> head_of(const store::AnalysisFile::Map& map, std::int64_t head) {
    const auto part = [&](const std::vector<float>& all, std::int64_t index, std::int64_t size) {
        return std::vector<float>(all.begin() + index * size, all.begin() + (index + 1) * size);
    };
    const std::int64_t group = head / (map.heads / map.key_value_heads), size = map.queries * map.key_size;
    return std::make_shared<const HeadMap>(part(map.query, head, size), part(map.key, group, size),
                                           part(map.row_constant, head, map.queries), map.key_size,
                                           rule_of_head(map.rule, 0, head, map.heads));
}

/// A causal layer of one head whose weights are nearly all on a few keys.
store::AnalysisFile::Map long_layer(std::int64_t tokens, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> number(-1.0F, 1.0F);
    store::AnalysisFile::Map map;
    map.heads = map.key_value_heads = 1;
    map.queries = map.keys = tokens;
    map.key_size = 2;
    map.rule.window_left = 300;
    for (std::int64_t i = 0; i < 2 * tokens; ++i) {
        map.query.push_back(number(random));
        map.key.push_back(number(random));
    }
    // The window's keys all alike: weights that need no sum.
    for (std::int64_t i = 0; i < tokens; ++i)
        map.row_constant.push_back(std::log(static_cast<float>(std::min<std::int64_t>(i + 1, 301))));
    map.rule.scale = 0;
    if (seed % 2 != 0) map.rule.window_left = 5;
    if (seed % 2 != 0)
        for (std::int64_t i = 0; i < tokens; ++i)
            map.row_constant[static_cast<std::size_t>(i)] =
                std::log(static_cast<float>(std::min<std::int64_t>(i + 1, 6)));
    return map;
}

}  // namespace

TEST_CASE("Rollout is the product of halved mean weights and halved identities", "[tiles][rollout]") {
    const Golden golden = ::golden();
    const std::int64_t n = golden.tokens;
    for (const auto& layers : golden.cases) {
        std::vector<std::optional<store::AnalysisFile::Map>> below;
        for (const auto& layer : layers) {
            below.emplace_back(layer.map);
            // A layer that mixes no tokens changes nothing.
            below.emplace_back();
            const Rollout rollout(below, n);
            check_same(rollout.values({0, n, 0, n}), layer.rollout.data(), 1);
            const auto columns = rollout.columns(0, n, kGoOn);
            check_same(columns, layer.rollout.data(), 1);
            std::vector<std::int64_t> bounds{0, 3, n};
            const auto means = rollout.mean_rows(bounds, kGoOn);
            for (std::int64_t k = 0; k < n; ++k) {
                double sum = 0;
                for (std::int64_t q = 0; q < 3; ++q) sum += layer.rollout[static_cast<std::size_t>(q * n + k)];
                REQUIRE(means[static_cast<std::size_t>(k)] == Approx(sum / 3).margin(kTolerance));
            }
        }
    }
}

TEST_CASE("Norms of one head and of all are those of the vectors themselves", "[tiles][norms]") {
    const Golden golden = ::golden();
    const std::int64_t n = golden.tokens;
    const auto cells = static_cast<std::size_t>(n * n);
    for (const auto& layers : golden.cases) {
        for (const auto& layer : layers) {
            const std::int64_t heads = layer.map.heads;
            std::vector<std::shared_ptr<const HeadMap>> all;
            for (std::int64_t h = 0; h < heads; ++h) {
                all.push_back(head_of(layer.map, h));
                std::vector<float> own;
                for (std::int64_t j = 0; j < n; ++j)
                    own.push_back(layer.products[static_cast<std::size_t>((j * heads + h) * heads + h)]);
                const NormMap map({all.back()}, own);
                check_same(map.values({0, n, 0, n}), layer.head_norms.data() + static_cast<std::size_t>(h) * cells, 10);
                for (const float value : map.values({0, n, 0, n})) REQUIRE_FALSE(value > map.most());
            }
            const NormMap map(all, layer.products);
            // A root of a sum in which heads may cancel: half the digits may be lost, of a number near zero.
            const auto found = map.values({0, n, 0, n});
            for (std::size_t i = 0; i < found.size(); ++i) {
                if (std::isnan(found[i])) continue;
                const double wanted = layer.layer_norms[i];
                REQUIRE(std::abs(double{found[i]} * found[i] - wanted * wanted) <=
                        16 * kTolerance * double{map.most()} * map.most());
            }
            CHECK_THROWS_AS(NormMap(all, std::vector<float>(3)), Error);
        }
    }
}

TEST_CASE("Tiles of norms pool as weights do, and ranks take numbers above 2", "[tiles][norms]") {
    const Golden golden = ::golden();
    const std::int64_t n = golden.tokens;
    const auto& layer = golden.cases.front().back();
    std::vector<float> large;
    for (std::int64_t j = 0; j < n; ++j) large.push_back(static_cast<float>(100 + j));
    const auto map = std::make_shared<const NormMap>(std::vector{head_of(layer.map, 0)}, large);
    std::vector<float> mean(16), extreme(16);
    map->pool({0, n, 0, n}, 1, 4, mean.data(), extreme.data(), kGoOn);
    const auto values = map->values({0, n, 0, n});
    CHECK(mean[0] ==
          Approx((values[0] + values[static_cast<std::size_t>(n)] + values[static_cast<std::size_t>(n) + 1]) / 4));
    CHECK(std::isnan(mean[3]));
    CHECK(extreme[0] ==
          Approx(std::max({values[0], values[static_cast<std::size_t>(n)], values[static_cast<std::size_t>(n) + 1]})));
    const RankSource ranks(map);
    const auto last = ranks.values({n - 1, n, 0, n});
    CHECK(*std::max_element(last.begin(), last.end()) == 1);
    CHECK(*std::min_element(last.begin(), last.end()) == 0);
    const RegionMass mass = map->mass({0, n, 0, n}, kGoOn);
    CHECK(mass.allowed == n * (n + 1) / 2);
}

TEST_CASE("Beyond what is kept whole, rows, columns and means over queries agree", "[tiles][rollout]") {
    const std::int64_t n = Rollout::kWhole + 700;
    const Rollout rollout({long_layer(n, 2), long_layer(n, 3)}, n);
    const std::int64_t k = 3000;
    const auto column = rollout.values({0, n, k, k + 1});  // from the bottom
    for (const std::int64_t q : {std::int64_t{0}, k, k + 1, k + 200, k + 306, k + 307, n - 1}) {
        const float found = rollout.values({q, q + 1, k, k + 1})[0];  // from the top
        if (q < k)
            CHECK(std::isnan(found));
        else
            CHECK(found == Approx(column[static_cast<std::size_t>(q)]).margin(1e-7));
    }
    const auto row = rollout.values({4000, 4001, 0, n});
    double sum = 0;
    for (const float value : row) sum += std::isnan(value) ? 0 : double{value};
    CHECK(sum == Approx(1).margin(1e-5));
    // Level 3: 8 x 8 cells to a pixel, its mean exact, its extreme that of the mean row.
    const std::int64_t q = 3000 / 8 * 8;
    const maps::Cells cells{q, q + 8, q - 8, q};
    float mean = 0, extreme = 0;
    rollout.pool(cells, 3, 1, &mean, &extreme, kGoOn);
    double wanted = 0, most = 0;
    for (std::int64_t key = cells.k_begin; key < cells.k_end; ++key) {
        double all = 0;
        for (std::int64_t query = q; query < q + 8; ++query) all += rollout.values({query, query + 1, key, key + 1})[0];
        wanted += all / 64;
        most = std::max(most, all / 8);
    }
    CHECK(mean == Approx(wanted).epsilon(1e-5));
    CHECK(extreme == Approx(most).epsilon(1e-5));
    CHECK_THROWS(rollout.mean_rows(std::vector<std::int64_t>{0, n}, std::atomic<bool>(true)));
    CHECK_THROWS_AS(Rollout({long_layer(5, 2)}, 6), Error);
}
