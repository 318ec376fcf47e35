// SPDX-License-Identifier: GPL-3.0-or-later
// Where arithmetic is known to go wrong, where masks leave nothing, and what must not depend on threads.
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/backend.h"
#include "kernels/cpu/attention/tasks.h"
#include "kernels/normaliser.h"
#include "kernels/parallel.h"
#include "kernels/reference/attention.h"
#include "tests/kernels/attention_case.h"
#include "tests/kernels/forced.h"

using namespace headscope::kernels;
using headscope::kernels::testing::AttentionCase;
using headscope::kernels::testing::check_equal;
using headscope::kernels::testing::Forced;
using headscope::kernels::testing::Result;
using headscope::kernels::testing::run;
using headscope::kernels::testing::same_bits;
using headscope::kernels::testing::Shape;

namespace {

struct Threads {
    explicit Threads(int count) { set_threads(count); }
    ~Threads() {
        set_threads(0);
        set_team(Team::openmp);
    }
};

AttentionCase full_case(const Shape& shape) {
    AttentionCase c(shape, 5);
    c.request.per_query = true;
    for (std::int64_t n = 0; n < shape.batch * shape.keys; ++n)
        c.request.tokens.push_back(static_cast<std::int32_t>(n % 7));
    return c;
}

}  // namespace

TEST_CASE("the bits are the same for every thread count and team", "[attention][threads]") {
    for (const Normaliser normaliser :
         {Normaliser::softmax, Normaliser::sparsemax, Normaliser::taylor, Normaliser::taylor_diagonal_per_order,
          Normaliser::elastic, Normaliser::entmax, Normaliser::sigmoid}) {
        for (const bool together : {true, false}) {
            AttentionCase c = full_case({2, 4, 2, 530, 530, 20, 20});
            c.rule.normaliser = normaliser;
            if (normaliser == Normaliser::elastic) c.rule.offsets = {-1.0F, -0.5F, 0.25F, -1.5F};
            c.request.head_diversity = together;
            const Threads restore(1);
            const Result one = run(c, attention), plain = run(c, attention, false);
            for (const Team team : {Team::openmp, Team::pool}) {
                set_team(team);
                for (const int count : {2, 3, 7}) {
                    set_threads(count);
                    REQUIRE(same_bits(one, run(c, attention)));
                    REQUIRE(same_bits(plain, run(c, attention, false)));
                }
            }
        }
    }
}

TEST_CASE("an offset of a thousand costs the indicators nothing but the scores' own rounding",
          "[attention][numerics]") {
    AttentionCase c = full_case({1, 2, 2, 200, 200, 16, 16});
    const AttentionCase original = c;
    for (std::int64_t h = 0; h < 2; ++h) {
        for (std::int64_t i = 0; i < 200; ++i) {
            c.set('q', 0, h, i, 0, 32.0F);
            c.set('k', 0, h, i, 0, 125.0F);  // 32 * 125 / 4 = 1000
        }
    }
    const Result found = run(c, attention), expected = run(c, attention_reference);
    check_equal(c, found, expected);
    // A score near 1000 is rounded to 2^-14, and so are its weights; what "lse minus mean score" would lose is ten
    // times that.
    const double rounding = 0x1p-14;
    for (std::size_t h = 0; h < 2; ++h) {
        REQUIRE(std::abs(found.statistics.entropy_row_mean[h] - expected.statistics.entropy_row_mean[h]) < rounding);
        REQUIRE(std::abs(found.statistics.score_variance[h] / expected.statistics.score_variance[h] - 1.0) < rounding);
        REQUIRE(std::abs(found.statistics.score_mean[h] - expected.statistics.score_mean[h]) < rounding);
    }
}

TEST_CASE("heads that are equal have no diversity, and almost equal ones the right one", "[attention][numerics]") {
    AttentionCase c = full_case({1, 4, 1, 150, 150, 16, 16});
    for (std::int64_t h = 1; h < 4; ++h) {
        for (std::int64_t i = 0; i < 150; ++i) {
            for (std::int64_t x = 0; x < 16; ++x) c.set('q', 0, h, i, x, c.get('q', 0, 0, i, x));
        }
    }
    REQUIRE(run(c, attention).statistics.head_diversity[0] == 0.0);
    for (std::int64_t i = 0; i < 150; ++i) c.set('q', 0, 2, i, 0, c.get('q', 0, 2, i, 0) + 0x1p-8F);
    const double found = run(c, attention).statistics.head_diversity[0];
    const double expected = run(c, attention_reference).statistics.head_diversity[0];
    REQUIRE(expected > 0.0);
    // The heads differ by about 1e-3 of a weight, so a weight's rounding of 2^-23 is a few 1e-4 of the spread.
    REQUIRE(std::abs(found / expected - 1.0) < 1e-3);
}

TEST_CASE("a single key gets all the weight, exactly", "[attention]") {
    AttentionCase c = full_case({1, 1, 1, 1, 1, 5, 5});
    const Result result = run(c, attention);
    REQUIRE(result.statistics.entropy[0] == 0.0);
    REQUIRE(result.statistics.concentration[0] == 1.0);
    REQUIRE(result.statistics.sink[0] == 1.0);
    REQUIRE(result.statistics.mean_distance[0] == 0.0);
    for (std::int64_t x = 0; x < 5; ++x) REQUIRE(result.output[static_cast<std::size_t>(x)] == c.get('v', 0, 0, 0, x));
}

TEST_CASE("masks that leave nothing give zeros and undefined means", "[attention][targets]") {
    AttentionCase c = full_case({2, 2, 2, 70, 70, 8, 8});
    c.rule.key_begin = {0, 30};
    c.rule.key_length = {0, 40};
    const Result expected = run(c, attention_reference);
    for (const std::string& backend : available_backends()) {
        const Forced forced(backend);
        INFO(backend);
        const Result found = run(c, attention);
        check_equal(c, found, expected);
        REQUIRE(found.output[0] == 0.0F);
        REQUIRE(std::isinf(found.statistics.row_constant[0]));
        REQUIRE(std::isnan(found.statistics.sink[0]));
        REQUIRE_FALSE(std::isnan(found.statistics.sink[2]));
    }
}

TEST_CASE("what padding holds stays out, even NaN", "[attention][targets]") {
    AttentionCase c = full_case({1, 2, 2, 50, 50, 8, 8});
    c.rule.key_begin = {5};
    c.rule.key_length = {45};
    AttentionCase broken = c;
    for (const std::int64_t j : {0, 4, 45, 49}) {
        for (std::int64_t h = 0; h < 2; ++h) {
            broken.set('k', 0, h, j, 3, std::numeric_limits<float>::quiet_NaN());
            broken.set('v', 0, h, j, 3, std::numeric_limits<float>::infinity());
        }
    }
    for (const std::string& backend : available_backends()) {
        if (backend == "reference") continue;  // multiplies padding by 0
        const Forced forced(backend);
        INFO(backend);
        REQUIRE(same_bits(run(c, attention), run(broken, attention)));
    }
}

TEST_CASE("a score that is not a number shows in the output instead of vanishing", "[attention]") {
    AttentionCase c = full_case({1, 1, 1, 40, 40, 8, 8});
    c.set('k', 0, 0, 20, 0, std::numeric_limits<float>::quiet_NaN());
    for (const bool measured : {true, false}) {
        const Result result = run(c, attention, measured);
        REQUIRE_FALSE(std::isnan(result.output[19 * 8]));
        REQUIRE(std::isnan(result.output[20 * 8]));
        REQUIRE(std::isnan(result.output[39 * 8]));
        if (!measured) continue;
        REQUIRE(std::isnan(result.statistics.score_minimum[0]));
        REQUIRE(std::isnan(result.statistics.score_maximum[0]));
        REQUIRE(std::isnan(result.statistics.entropy[0]));
    }
}

TEST_CASE("one repeated token is one run of equal tokens", "[attention]") {
    AttentionCase c = full_case({1, 2, 2, 300, 300, 8, 8});
    for (auto& token : c.request.tokens) token = 4;
    check_equal(c, run(c, attention), run(c, attention_reference));
}

TEST_CASE("a set flag cancels", "[attention]") {
    const AttentionCase c = full_case({1, 2, 2, 300, 300, 8, 8});
    const std::atomic<bool> cancel{true};
    AttentionInput input = c.input();
    input.cancel = &cancel;
    Statistics statistics;
    std::vector<float> output(2 * 300 * 8);
    REQUIRE_THROWS_AS(attention(input, {output.data(), 0, 300 * 8, 8}, &c.request, &statistics), Cancelled);
}

TEST_CASE("statistics come without an output, and without the optional ones", "[attention]") {
    AttentionCase c = full_case({1, 3, 3, 129, 129, 8, 8});
    c.request.histogram = c.request.thumbnails = c.request.column_mass = false;
    c.request.per_query = false;
    c.request.tokens.clear();
    const Result expected = run(c, attention_reference);
    check_equal(c, run(c, attention), expected);
    Result found;
    attention(c.input(), {}, &c.request, &found.statistics);
    found.output = expected.output;
    check_equal(c, found, expected);
}

TEST_CASE("The pass without row constants refuses normalizers that need them, and unknown ones", "[attention]") {
    cpu::PlainTask task;
    for (const NormaliserTraits& traits : kNormalisers) {
        if (traits.one_pass()) continue;
        task.normaliser = traits.normaliser;
        CHECK_THROWS_AS(cpu::plain_attention(task), Error);
    }
    task.normaliser = static_cast<Normaliser>(kNormalisers.size());
    CHECK_THROWS_AS(cpu::plain_attention(task), Error);
}
