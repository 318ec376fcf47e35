// SPDX-License-Identifier: GPL-3.0-or-later
// The fused operator against the float64 reference: odd sizes, every option, every SIMD target.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/backend.h"
#include "kernels/reference/attention.h"
#include "tests/kernels/attention_options.h"
#include "tests/kernels/forced.h"

using namespace headscope::kernels;
using headscope::kernels::testing::attention_options;
using headscope::kernels::testing::AttentionCase;
using headscope::kernels::testing::check_equal;
using headscope::kernels::testing::Forced;
using headscope::kernels::testing::make_case;
using headscope::kernels::testing::run;
using headscope::kernels::testing::Shape;

namespace {

/// The whole answer, with every statistic, and the plain output without any.
void check(const AttentionCase& c) {
    const auto expected = run(c, attention_reference);
    check_equal(c, run(c, attention), expected);
    auto plain = run(c, attention, false);
    plain.statistics = expected.statistics;
    check_equal(c, plain, expected);
}

}  // namespace

TEST_CASE("the fused operator agrees with the reference for odd lengths, heads and sizes", "[attention]") {
    const auto plain = attention_options().front();
    for (const std::int64_t length : {1, 2, 63, 64, 65, 129, 300}) {
        check(make_case({1, 1, 1, length, length, 64, 64}, plain));
        check(make_case({1, 3, 3, length, length, 20, 20}, plain));
        check(make_case({2, 8, 2, length, length, 32, 32}, plain));
    }
    check(make_case({1, 3, 1, 129, 129, 1, 1}, plain));
    check(make_case({1, 3, 1, 129, 129, 80, 80}, plain));
    check(make_case({1, 2, 2, 65, 65, 3, 17}, plain));
    check(make_case({1, 2, 1, 65, 65, 40, 100}, plain));
    check(make_case({1, 2, 2, 700, 700, 16, 16}, plain));
}

TEST_CASE("every option agrees with the reference", "[attention]") {
    for (const auto& option : attention_options()) {
        check(make_case({2, 3, 3, 65, 65, 20, 20}, option));
        check(make_case({2, 4, 2, 300, 300, 16, 12}, option));
    }
}

TEST_CASE("queries and keys may differ in number, and queries may start late", "[attention][targets]") {
    auto unequal = attention_options()[1];
    for (const std::string& backend : available_backends()) {
        const Forced forced(backend);
        INFO(backend);
        check(make_case({2, 3, 3, 40, 130, 20, 20}, unequal));
        check(make_case({1, 2, 1, 130, 40, 20, 20}, unequal));
        for (const std::int64_t keys : {130, 40}) {
            auto cross = make_case({1, 2, 1, 40, keys, 20, 20}, unequal);
            cross.request.cross = true;
            cross.request.tokens.clear();
            check(cross);
            for (const double value : run(cross, attention).statistics.local_focus) CHECK(std::isnan(value));
            cross.rule.causal = true;
            CHECK_THROWS_AS(run(cross, attention), Error);
        }
        for (const std::int64_t queries : {1, 13, 50}) {
            auto c = make_case({1, 4, 2, queries, 300, 20, 20}, attention_options().front());
            c.rule.query_offset = 300 - queries;
            check(c);
            c.rule.window_left = 40;
            check(c);
        }
        // The first ten queries see nothing.
        auto early = make_case({1, 2, 2, 60, 60, 8, 8}, attention_options().front());
        early.rule.query_offset = -10;
        check(early);
    }
}

TEST_CASE("elastic weights are what the paper's numbers say, and the first row is exactly 0", "[attention]") {
    // Three keys, s_ij = (j - 1) / 2, v = 1, 2, 4.
    for (const std::string& backend : available_backends()) {
        const Forced forced(backend);
        for (const auto& [offset, expected] :
             {std::pair{-1.0F, std::array{0.0, 0.244919, 0.692588}}, {-0.5F, std::array{0.5, 0.872459, 1.659970}}}) {
            AttentionCase c({1, 1, 1, 3, 3, 1, 1}, 1);
            c.rule.scale = 1.0;
            c.rule.normaliser = Normaliser::elastic;
            c.rule.offsets = {offset};
            const float value[] = {1.0F, 2.0F, 4.0F};
            for (std::int64_t i = 0; i < 3; ++i) {
                c.set('q', 0, 0, i, 0, 1.0F);
                c.set('k', 0, 0, i, 0, 0.5F * static_cast<float>(i));
                c.set('v', 0, 0, i, 0, value[i]);
            }
            for (const bool statistics : {true, false}) {
                const auto found = run(c, attention, statistics);
                for (std::size_t i = 0; i < 3; ++i) CHECK(double{found.output[i]} == Approx(expected[i]).margin(5e-7));
                if (offset == -1.0F) CHECK(found.output[0] == 0.0F);
            }
        }
    }
}

TEST_CASE("rows of entmax sum to 1 where all keys weigh the same, and where few do", "[attention]") {
    for (const float spread : {0.0F, 1e-3F, 1.0F, 40.0F}) {
        AttentionCase c({1, 1, 1, 2, 500, 1, 1}, 1);
        c.rule.normaliser = Normaliser::entmax;
        c.rule.causal = false;
        c.rule.scale = 1.0;
        for (std::int64_t j = 0; j < 500; ++j) {
            c.set('k', 0, 0, j, 0, spread * c.get('k', 0, 0, j, 0));
            c.set('v', 0, 0, j, 0, 1.0F);
        }
        INFO("spread " << spread);
        for (const std::string& backend : available_backends()) {
            const Forced forced(backend);
            INFO(backend);
            // 500 additions, each off by half a unit at most.
            for (const float sum : run(c, attention).output) CHECK(double{sum} == Approx(1.0).epsilon(500 * 0x1p-24));
        }
    }
}

TEST_CASE("the elastic normaliser wants offsets, and the others none", "[attention]") {
    AttentionCase c({1, 2, 2, 3, 3, 4, 4}, 1);
    c.rule.offsets = {-1.0F, -1.0F};
    CHECK_THROWS_WITH(run(c, attention), Catch::Contains("[offsets] expected none beside softmax; found 2"));
    c.rule.normaliser = Normaliser::elastic;
    CHECK_NOTHROW(run(c, attention));
    c.rule.offsets.pop_back();
    CHECK_THROWS_WITH(run(c, attention), Catch::Contains("[offsets] expected 2 values [heads]; found 1"));
    c.rule.offsets = {0.0F, std::numeric_limits<float>::infinity()};
    CHECK_THROWS_WITH(run(c, attention), Catch::Contains("[offsets] expected finite values"));
    c.rule.offsets = {0.0F, 0.0F};
    c.rule.sink_logits = {0.0F, 0.0F};
    CHECK_THROWS_WITH(run(c, attention), Catch::Contains("[sink_logits] expected none beside elastic"));
}

TEST_CASE("bfloat16 inputs give what their values give in float32", "[attention]") {
    for (const std::size_t option : {0U, 1U, 11U}) {
        check(make_case({2, 4, 2, 129, 129, 20, 20}, attention_options()[option], ElementType::bfloat16));
        check(make_case({2, 3, 3, 65, 65, 64, 64}, attention_options()[option], ElementType::bfloat16));
    }
}

TEST_CASE("every SIMD target of this processor agrees with the reference", "[attention][targets]") {
    for (const std::string& name : available_backends()) {
        if (name == "reference") continue;
        const Forced forced(name);
        INFO("target " << name);
        for (const auto& option : attention_options()) {
            check(make_case({1, 3, 1, 65, 65, 20, 20}, option));
            REQUIRE(last_backend() == name);
        }
        check(make_case({2, 2, 2, 150, 150, 33, 65}, attention_options().front(), ElementType::bfloat16));
    }
}
