// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <functional>
#include <map>

#include "core/base/error.h"
#include "core/cost/mixer_cost.h"

using namespace headscope;
using cost::CostSetting;

namespace {

// Sizes without common factors, so that no two different formulas agree by chance.
constexpr double B = 3, L = 101, d = 56, h = 7, t = 2;
const CostSetting kSetting{3, 101, 56, 7, 2, 2};

/// Tables 5 to 8 once more, typed from the paper.
struct Printed {
    double time, prefill, decode, activation, cache;
};
const std::map<std::string, Printed>& printed() {
    static const Printed standard{B * L * L * d + B * L * d * d, 4 * B * L * L * d + 6 * B * L * d * d,
                                  6 * B * d * d + 4 * B * L * d, (8 * B * L * d + 2 * B * L * L * h) / t,
                                  4 * B * L * d};
    static const Printed fixed{B * L * L * d + B * L * d * d, 2 * L * L * d + 2 * B * L * L * d + 6 * B * L * d * d,
                               2 * L * d + 2 * B * L * d + 6 * B * d * d,
                               (4 * B * L * d + 8 * L * d + 2 * L * L * h) / t, 2 * (B + 1) * L * d};
    static const std::map<std::string, Printed> table{
        {"standard", standard},
        {"mlp", {B * L * d * d, 6 * B * L * d * d, 6 * B * d * d, 8 * B * L * d / t, 0}},
        {"approximate",
         {B * L * d * d, 14 * B * L * d * d, 10 * B * d * d, 11 * B * L * d / t + 3 * B * d * d / (h * t),
          6 * B * d + 4 * B * d * d / h}},
        {"non_approximate",
         {B * L * d * d, 6 * B * L * d * d, 6 * B * d * d, (8 * B * L * d + 4 * B * L * h) / t, 2 * B * d + 4 * B * h}},
        {"rnd_emb_qk", fixed},
        {"fixed_seq_qk", fixed},
        {"static_emb_qk", standard},
        // Of the third paper, which are it with one thing otherwise.
        {"sigmoid", standard},
        {"alibi", standard},
        {"sink_logits", standard}};
    return table;
}

}  // namespace

TEST_CASE("Every entry of Tables 5 to 8 is the paper's", "[cost]") {
    REQUIRE(cost::mixer_costs().size() == printed().size());
    for (const auto& entry : cost::mixer_costs()) {
        INFO(entry.mixer);
        const Printed& wanted = printed().at(entry.mixer);
        const cost::CostNumbers found = cost::evaluate(entry, kSetting);
        CHECK(found.time == wanted.time);
        CHECK(found.prefill == wanted.prefill);
        CHECK(found.decode == wanted.decode);
        CHECK(found.activation == wanted.activation);
        CHECK(found.cache == wanted.cache);
        const bool fixed = entry.mixer == "rnd_emb_qk" || entry.mixer == "fixed_seq_qk";
        REQUIRE(found.precomputed_prefill.has_value() == fixed);
        REQUIRE(found.precomputed_decode.has_value() == fixed);
        if (!fixed) continue;
        CHECK(*found.precomputed_prefill == 2 * L * L * d + 2 * B * L * d * d);
        CHECK(*found.precomputed_decode == 2 * B * L * d + 2 * d * d);
    }
}

TEST_CASE("Bytes of the paper are for half precision and scale with a number's", "[cost]") {
    CostSetting single = kSetting;
    single.bytes = 4;
    for (const auto& entry : cost::mixer_costs()) {
        const auto two = cost::evaluate(entry, kSetting), four = cost::evaluate(entry, single);
        CHECK(four.activation == 2 * two.activation);
        CHECK(four.cache == 2 * two.cache);
        CHECK(four.prefill == two.prefill);
    }
}

TEST_CASE("A formula is computed as it reads", "[cost]") {
    const cost::Letters letters{{'a', 3}, {'b', 5}};
    CHECK(cost::Formula("2 a^2 b - a + 7")(letters) == 94);
    CHECK(cost::Formula("2 (a + b) b / a")(letters) == Approx(80.0 / 3));
    CHECK(cost::Formula("a / (a b) b")(letters) == Approx(1));
    CHECK(cost::Formula("(a + 1)^2")(letters) == 16);
    CHECK(cost::Formula("0")(letters) == 0);
    CHECK(cost::Formula("4 B L^2 d").pretty() == "4 B L² d");
    CHECK_THROWS_AS(cost::Formula("2 a +"), Error);
    CHECK_THROWS_AS(cost::Formula("(a"), Error);
    CHECK_THROWS_AS(cost::Formula("a ^ b"), Error);
    CHECK_THROWS_AS(cost::Formula("a)"), Error);
    CHECK_THROWS_AS(cost::Formula("c")(letters), Error);
}

TEST_CASE("A mixer without an entry is named with those that have one", "[cost]") {
    CHECK(cost::mixer_cost("approximate").label == "Approximate");
    CHECK_FALSE(cost::has_cost("gated_deltanet"));
    CHECK_THROWS_WITH(cost::mixer_cost("standart"), Catch::Contains("non_approximate") && Catch::Contains("standart"));
}
