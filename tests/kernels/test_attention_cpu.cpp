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
#include "tests/kernels/attention_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::AttentionCase;
using headscope::kernels::testing::check_equal;
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

struct Forced {
    explicit Forced(const std::string& name) { force_backend(name); }
    ~Forced() { force_backend("auto"); }
};

std::vector<std::int32_t> some_tokens(const Shape& s, int kinds) {
    std::vector<std::int32_t> tokens;
    for (std::int64_t n = 0; n < s.batch * s.keys; ++n) tokens.push_back(static_cast<std::int32_t>(n * n / 3 % kinds));
    return tokens;
}

/// Queries and keys without a sign, so that no denominator comes near 0.
void make_positive(AttentionCase& c) {
    const Shape& s = c.shape();
    for (std::int64_t b = 0; b < s.batch; ++b) {
        for (const char which : {'q', 'k'}) {
            for (std::int64_t h = 0; h < (which == 'q' ? s.heads : s.key_heads); ++h) {
                for (std::int64_t i = 0; i < (which == 'q' ? s.queries : s.keys); ++i) {
                    for (std::int64_t x = 0; x < s.key_size; ++x)
                        c.set(which, b, h, i, x, std::abs(c.get(which, b, h, i, x)));
                }
            }
        }
    }
}

/// Relative positions that stand still beyond a distance: of a head's numbers the first 5 count for every pair.
void set_far(AttentionCase& c, std::int64_t distance) {
    c.rule.far_distance = distance;
    c.rule.near_begin = 5;
    const Shape& s = c.shape();
    for (std::int64_t b = 0; b < s.batch; ++b) {
        for (std::int64_t h = 0; h < s.key_heads; ++h) {
            for (std::int64_t j = 0; j < s.keys; ++j) c.set('k', b, h, j, s.key_size - 1, 0.0F);
        }
    }
}

using Option = std::function<void(AttentionCase&)>;

/// Every option of ScoreRule, each in a case or two.
std::vector<std::pair<std::string, Option>> options() {
    const auto heads_of = [](const AttentionCase& c) { return static_cast<std::size_t>(c.shape().heads); };
    return {
        {"causal", [](AttentionCase&) {}},
        {"everything visible", [](AttentionCase& c) { c.rule.causal = false; }},
        {"soft cap",
         [](AttentionCase& c) {
             c.rule.soft_cap = 1.5;
             c.rule.scale *= 4.0;
         }},
        {"slopes",
         [=](AttentionCase& c) {
             for (std::size_t h = 0; h < heads_of(c); ++h) c.rule.slopes.push_back(0.25F / static_cast<float>(h + 1));
         }},
        {"distance bias, clamped",
         [=](AttentionCase& c) {
             c.rule.bias_length = 9;
             c.rule.bias_origin = 5;
             for (std::size_t n = 0; n < heads_of(c) * 9; ++n)
                 c.rule.distance_bias.push_back(0.3F * static_cast<float>(n % 7) - 1.0F);
             c.rule.causal = false;
         }},
        {"distance bias, zero beyond",
         [=](AttentionCase& c) {
             c.rule.bias_length = 4;
             c.rule.bias_origin = 3;
             c.rule.beyond_table = BeyondTable::zero;
             for (std::size_t n = 0; n < heads_of(c) * 4; ++n)
                 c.rule.distance_bias.push_back(0.5F * static_cast<float>(n % 5) - 1.0F);
         }},
        {"sink logits",
         [=](AttentionCase& c) {
             for (std::size_t h = 0; h < heads_of(c); ++h)
                 c.rule.sink_logits.push_back(static_cast<float>(h) * 2.5F - 1.0F);
         }},
        {"window", [](AttentionCase& c) { c.rule.window_left = 17; }},
        {"window and first keys",
         [](AttentionCase& c) {
             c.rule.window_left = 20;
             c.rule.first_keys = 3;
         }},
        {"window on both sides",
         [](AttentionCase& c) {
             c.rule.causal = false;
             c.rule.window_left = 30;
             c.rule.window_right = 5;
         }},
        {"visible blocks",
         [](AttentionCase& c) {
             auto& blocks = c.rule.blocks;
             blocks.block_size = 20;
             blocks.blocks = (c.shape().keys + 19) / 20;
             for (std::int64_t n = 0; n < c.shape().batch * c.shape().heads * blocks.blocks; ++n)
                 blocks.visible.push_back(n % 3 == 1);
         }},
        {"visible blocks of 64 keys, and the own one hidden",
         [](AttentionCase& c) {
             auto& blocks = c.rule.blocks;
             blocks.block_size = 64;
             blocks.blocks = (c.shape().keys + 63) / 64;
             blocks.own = false;
             for (std::int64_t n = 0; n < c.shape().batch * c.shape().heads * blocks.blocks; ++n)
                 blocks.visible.push_back(n % 2 == 0);
         }},
        {"padding",
         [](AttentionCase& c) {
             for (std::int64_t b = 0; b < c.shape().batch; ++b) {
                 c.rule.query_length.push_back(c.shape().queries - c.shape().queries / 3 * b);
                 c.rule.key_begin.push_back(c.shape().keys / 5 * b);
                 c.rule.key_length.push_back(c.shape().keys - c.shape().keys / 4 * b);
             }
         }},
        {"sigmoid, a bias of all scores, padding",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sigmoid;
             c.rule.distance_bias.assign(heads_of(c), -3.0F);
             c.rule.bias_length = 1;
             for (std::int64_t b = 0; b < c.shape().batch; ++b) {
                 c.rule.query_length.push_back(c.shape().queries - c.shape().queries / 3 * b);
                 c.rule.key_begin.push_back(c.shape().keys / 5 * b);
                 c.rule.key_length.push_back(c.shape().keys - c.shape().keys / 4 * b);
             }
         }},
        {"sharp sigmoid in a window with first keys, vanishing weights",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sigmoid;
             c.rule.window_left = 20;
             c.rule.first_keys = 3;
             c.rule.scale *= 90.0;
         }},
        {"sparsemax", [](AttentionCase& c) { c.rule.normaliser = Normaliser::sparsemax; }},
        {"sparsemax, everything visible, sharp",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sparsemax;
             c.rule.causal = false;
             c.rule.scale *= 10.0;
         }},
        {"sparsemax with sink logits",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sparsemax;
             for (std::size_t h = 0; h < heads_of(c); ++h)
                 c.rule.sink_logits.push_back(0.4F - static_cast<float>(h) * 0.3F);
         }},
        {"elastic, offsets either way, sharp",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.scale *= 4.0;
             for (std::size_t h = 0; h < heads_of(c); ++h)
                 c.rule.offsets.push_back(static_cast<float>(h) * 0.75F - 1.0F);
         }},
        {"elastic, a bias over few distances, padding",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.offsets.assign(heads_of(c), -1.0F);
             c.rule.bias_length = 33;
             c.rule.bias_origin = 32;
             c.rule.beyond_table = BeyondTable::zero;
             for (std::size_t n = 0; n < heads_of(c) * 33; ++n)
                 c.rule.distance_bias.push_back(0.5F * static_cast<float>(n % 11) - 2.0F);
             for (std::int64_t b = 0; b < c.shape().batch; ++b) {
                 c.rule.query_length.push_back(c.shape().queries - c.shape().queries / 3 * b);
                 c.rule.key_begin.push_back(c.shape().keys / 5 * b);
                 c.rule.key_length.push_back(c.shape().keys - c.shape().keys / 4 * b);
             }
         }},
        {"elastic with constant offsets, window and first keys",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.offset_form = OffsetForm::constant;
             for (std::size_t h = 0; h < heads_of(c); ++h)
                 c.rule.offsets.push_back(static_cast<float>(h) * 0.03125F - 0.0625F);
             c.rule.window_left = 20;
             c.rule.first_keys = 3;
         }},
        {"elastic, everything visible, soft cap",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.offsets.assign(heads_of(c), -0.75F);
             c.rule.causal = false;
             c.rule.soft_cap = 1.5;
             c.rule.scale *= 3.0;
         }},
        {"entmax", [](AttentionCase& c) { c.rule.normaliser = Normaliser::entmax; }},
        {"entmax, everything visible, sharp",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::entmax;
             c.rule.causal = false;
             c.rule.scale *= 10.0;
         }},
        {"entmax with sink logits and visible blocks",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::entmax;
             for (std::size_t h = 0; h < heads_of(c); ++h)
                 c.rule.sink_logits.push_back(1.5F - static_cast<float>(h) * 0.75F);
             auto& blocks = c.rule.blocks;
             blocks.block_size = 20;
             blocks.blocks = (c.shape().keys + 19) / 20;
             for (std::int64_t n = 0; n < c.shape().batch * c.shape().heads * blocks.blocks; ++n)
                 blocks.visible.push_back(n % 3 == 1);
         }},
        {"Taylor weights, sharp",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor;
             c.rule.scale *= 20.0;
         }},
        {"Taylor weights in a window",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor;
             c.rule.window_left = 30;
             c.rule.first_keys = 2;
         }},
        {"Taylor weights of a diagonal second order, some negative",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor_diagonal;
             c.rule.scale *= 6.0;
         }},
        {"Taylor weights by order, padding",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor_per_order;
             make_positive(c);
             for (std::int64_t b = 0; b < c.shape().batch; ++b) {
                 c.rule.query_length.push_back(c.shape().queries - c.shape().queries / 3 * b);
                 c.rule.key_begin.push_back(c.shape().keys / 5 * b);
                 c.rule.key_length.push_back(c.shape().keys - c.shape().keys / 4 * b);
             }
         }},
        {"Taylor weights by order of a diagonal second order, everything visible",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor_diagonal_per_order;
             c.rule.causal = false;
             make_positive(c);
         }},
        {"sharp rows with vanishing weights", [](AttentionCase& c) { c.rule.scale *= 90.0; }},
        {"histogram of every fifth row, small thumbnails",
         [](AttentionCase& c) {
             c.request.histogram_row_step = 5;
             c.request.thumbnail_size = 7;
             c.request.local_distances = {0, 5, 1000};
         }},
        {"heads one by one", [](AttentionCase& c) { c.request.head_diversity = false; }},
        {"a memory before each segment",
         [](AttentionCase& c) {
             c.rule.window_left = 20;
             c.rule.window_segment = 17;
         }},
        {"segments without a memory, queries that start late",
         [](AttentionCase& c) {
             c.rule.window_left = 0;
             c.rule.window_segment = 23;
             c.rule.query_offset = 3;
             c.request.tokens.clear();
         }},
        {"positions that stand still beyond a distance, padding",
         [](AttentionCase& c) {
             set_far(c, 29);
             for (std::int64_t b = 0; b < c.shape().batch; ++b) {
                 c.rule.query_length.push_back(c.shape().queries - c.shape().queries / 3 * b);
                 c.rule.key_begin.push_back(c.shape().keys / 5 * b);
                 c.rule.key_length.push_back(c.shape().keys - c.shape().keys / 4 * b);
             }
         }},
        {"positions that stand still beyond the query itself, in segments, sparsemax",
         [](AttentionCase& c) {
             set_far(c, 0);
             c.rule.window_left = 9;
             c.rule.window_segment = 30;
             c.rule.normaliser = Normaliser::sparsemax;
         }},
    };
}

AttentionCase make(const Shape& shape, const std::pair<std::string, Option>& option,
                   ElementType type = ElementType::float32) {
    AttentionCase c(shape, static_cast<std::uint32_t>(shape.queries * 31 + shape.heads * 7 + shape.key_size), type);
    c.request.per_query = true;
    if (shape.queries == shape.keys) c.request.tokens = some_tokens(shape, 11);
    option.second(c);
    c.name = option.first + ", L " + std::to_string(shape.queries) + " x " + std::to_string(shape.keys) + ", H " +
             std::to_string(shape.heads) + ", d " + std::to_string(shape.key_size);
    return c;
}

}  // namespace

TEST_CASE("the fused operator agrees with the reference for odd lengths, heads and sizes", "[attention]") {
    const auto plain = options().front();
    for (const std::int64_t length : {1, 2, 63, 64, 65, 129, 300}) {
        check(make({1, 1, 1, length, length, 64, 64}, plain));
        check(make({1, 3, 3, length, length, 20, 20}, plain));
        check(make({2, 8, 2, length, length, 32, 32}, plain));
    }
    check(make({1, 3, 1, 129, 129, 1, 1}, plain));
    check(make({1, 3, 1, 129, 129, 80, 80}, plain));
    check(make({1, 2, 2, 65, 65, 3, 17}, plain));
    check(make({1, 2, 1, 65, 65, 40, 100}, plain));
    check(make({1, 2, 2, 700, 700, 16, 16}, plain));
}

TEST_CASE("every option agrees with the reference", "[attention]") {
    for (const auto& option : options()) {
        check(make({2, 3, 3, 65, 65, 20, 20}, option));
        check(make({2, 4, 2, 300, 300, 16, 12}, option));
    }
}

TEST_CASE("queries and keys may differ in number, and queries may start late", "[attention]") {
    auto unequal = options()[1];
    check(make({2, 3, 3, 40, 130, 20, 20}, unequal));
    check(make({1, 2, 1, 130, 40, 20, 20}, unequal));
    for (const std::int64_t keys : {130, 40}) {
        auto cross = make({1, 2, 1, 40, keys, 20, 20}, unequal);
        cross.request.cross = true;
        cross.request.tokens.clear();
        check(cross);
        for (const double value : run(cross, attention).statistics.local_focus) CHECK(std::isnan(value));
        cross.rule.causal = true;
        CHECK_THROWS_AS(run(cross, attention), Error);
    }
    for (const std::int64_t queries : {1, 13, 50}) {
        auto c = make({1, 4, 2, queries, 300, 20, 20}, options().front());
        c.rule.query_offset = 300 - queries;
        check(c);
        c.rule.window_left = 40;
        check(c);
    }
    auto early = make({1, 2, 2, 60, 60, 8, 8}, options().front());  // the first ten queries see nothing
    early.rule.query_offset = -10;
    check(early);
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
        check(make({2, 4, 2, 129, 129, 20, 20}, options()[option], ElementType::bfloat16));
        check(make({2, 3, 3, 65, 65, 64, 64}, options()[option], ElementType::bfloat16));
    }
}

TEST_CASE("every SIMD target of this processor agrees with the reference", "[attention][targets]") {
    for (const std::string& name : available_backends()) {
        if (name == "reference") continue;
        const Forced forced(name);
        INFO("target " << name);
        for (const auto& option : options()) {
            check(make({1, 3, 1, 65, 65, 20, 20}, option));
            REQUIRE(last_backend() == name);
        }
        check(make({2, 2, 2, 150, 150, 33, 65}, options().front(), ElementType::bfloat16));
    }
}
