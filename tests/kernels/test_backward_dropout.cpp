// SPDX-License-Identifier: GPL-3.0-or-later
// Dropped weights of the training passes: their gradients, independence of threads and batches, shares.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/backend.h"
#include "kernels/parallel.h"
#include "kernels/summary/attention_dropout.h"
#include "tests/kernels/attention_case.h"
#include "tests/kernels/backward_case.h"

using namespace headscope::kernels;
using namespace headscope::kernels::testing::backward;
using headscope::kernels::testing::AttentionCase;

TEST_CASE("gradients with dropped weights agree with the formulas under every option", "[backward][dropout]") {
    for (const std::string& name : available_backends()) {
        const Forced forced(name);
        INFO("backend " << name);
        for (const Option& option : options()) {
            AttentionCase c = make({2, 2, 1, 65, 65, 20, 12}, option);
            c.rule.dropout = {0.3, 91, 3};
            check(c);
        }
    }
    for (const std::int64_t length : {1, 2, 63, 64, 200}) {
        AttentionCase c = make({2, 4, 2, length, length, 16, 12}, options().front());
        c.rule.dropout = {0.3, 92, 0};
        check(c);
    }
    AttentionCase c = make({1, 2, 1, 65, 1700, 8, 8}, options()[1]);  // keys are shared out
    c.rule.dropout = {0.3, 93, 0};
    check(c);
}

TEST_CASE("dropped weights are the same for every thread count and split of the batch", "[backward][dropout]") {
    AttentionCase c = make({4, 4, 2, 130, 130, 16, 12}, options().front());
    c.rule.dropout = {0.3, 17, 0};
    set_threads(1);
    const Found one = run(c);
    for (const int count : {2, 5}) {
        set_threads(count);
        const Found more = run(c);
        CHECK(same(more.output.data, one.output.data));
        CHECK(same(more.query.data, one.query.data));
        CHECK(same(more.key.data, one.key.data));
        CHECK(same(more.value.data, one.value.data));
    }
    set_threads(0);
    // Sequences 2 and 3 alone, as a later pass of the step.
    AttentionCase half = make({2, 4, 2, 130, 130, 16, 12}, options().front());
    for (const char which : {'q', 'k', 'v'}) {
        for (std::int64_t b = 0; b < 2; ++b)
            for (std::int64_t h = 0; h < (which == 'q' ? 4 : 2); ++h)
                for (std::int64_t i = 0; i < 130; ++i)
                    for (std::int64_t x = 0; x < (which == 'v' ? 12 : 16); ++x)
                        half.set(which, b, h, i, x, c.get(which, b + 2, h, i, x));
    }
    half.rule.dropout = {0.3, 17, 2};
    const Found later = run(half);
    const std::size_t size = later.output.data.size();
    CHECK(
        same(later.output.data, {one.output.data.begin() + static_cast<std::ptrdiff_t>(size), one.output.data.end()}));
    half.rule.dropout.first_sequence = 0;
    CHECK_FALSE(same(run(half).output.data, later.output.data));
}

TEST_CASE("dropout of share 0 changes no bit", "[backward][dropout]") {
    AttentionCase c = make({2, 4, 2, 65, 65, 20, 12}, options().front());
    const Found plain = run(c);
    c.rule.dropout = {0.0, 99, 7};
    const Found none = run(c);
    CHECK(same(none.output.data, plain.output.data));
    CHECK(same(none.query.data, plain.query.data));
    CHECK(same(none.key.data, plain.key.data));
    CHECK(same(none.value.data, plain.value.data));
}

TEST_CASE("pairs are dropped with the share's probability, each for itself", "[backward][dropout]") {
    constexpr std::int64_t kRowCount = 200, kKeyCount = 300;
    const std::uint32_t threshold = dropout_threshold(0.3);
    const auto dropped = [&](std::int64_t i, std::int64_t j) {
        const std::int64_t sequence = i / 100, head = i / 10 % 10;
        const std::uint64_t row = dropout_row(dropout_sequence({0.3, 5, 0}, sequence), head, i % 10);
        return dropout_bits(row, j) < threshold;
    };
    double single = 0, beside = 0, below = 0;
    for (std::int64_t i = 0; i < kRowCount; ++i) {
        for (std::int64_t j = 0; j < kKeyCount; ++j) {
            single += dropped(i, j) ? 1 : 0;
            beside += dropped(i, j) && dropped(i, j + 1) ? 1 : 0;
            below += dropped(i, j) && dropped((i + 1) % kRowCount, j) ? 1 : 0;
        }
    }
    // Five deviations of a binomial; pairs of pairs share terms, which at most triples their variance.
    const double count = kRowCount * kKeyCount;
    CHECK(std::abs(single / count - 0.3) < 5 * std::sqrt(0.3 * 0.7 / count));
    CHECK(std::abs(beside / count - 0.09) < 5 * std::sqrt(3 * 0.09 * 0.91 / count));
    CHECK(std::abs(below / count - 0.09) < 5 * std::sqrt(3 * 0.09 * 0.91 / count));
}

TEST_CASE("statistics and bad shares refuse dropout", "[backward][dropout]") {
    AttentionCase c = make({1, 2, 1, 5, 5, 8, 8}, options().front());
    c.rule.dropout.share = 0.5;
    std::vector<float> output(2 * 5 * 8);
    REQUIRE_THROWS_WITH(attention(c.input(), {output.data(), 80, 40, 8}),
                        Catch::Contains("[attention dropout] expected none outside of training; found 0.5"));
    for (const double share : {-0.1, 1.0, std::nan("")}) {
        c.rule.dropout.share = share;
        REQUIRE_THROWS_WITH(run(c), Catch::Contains("[attention dropout] expected a share"));
    }
}
