// SPDX-License-Identifier: GPL-3.0-or-later
// Attention with one score per key: the running kernels against their float64 reference, and their statistics against
// the general operator's reference on the whole matrix.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/backend.h"
#include "kernels/parallel.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/running.h"
#include "kernels/running.h"
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

constexpr double kEpsilon = 0x1p-24;

/// Everything that a pass forwards and a pass backwards give, each [batch, heads, length, ...].
struct Found {
    std::vector<float> output, score, maximum, denominator, query, key, value;
};

TensorView view_of(const std::vector<float>& values, const TensorView& like, std::int64_t size) {
    return {values.data(),
            ElementType::float32,
            like.batch,
            like.heads,
            like.length,
            size,
            like.heads * like.length * size,
            like.length * size,
            size};
}

MutableView target_of(std::vector<float>& values, const TensorView& like, std::int64_t size) {
    values.assign(static_cast<std::size_t>(like.batch * like.heads * like.length * size), 777.0F);
    return {values.data(), ElementType::float32, like.heads * like.length * size, like.length * size, size};
}

RunningInput input_of(const AttentionCase& c) {
    const AttentionInput input = c.input();
    return {input.query, input.key, input.value, c.rule.scale, c.rule.key_length, nullptr};
}

std::vector<float> gradient_of(const AttentionCase& c) {
    const Shape& s = c.shape();
    std::vector<float> gradient;
    for (std::int64_t n = 0; n < s.batch * s.heads * s.queries * s.value_size; ++n)
        gradient.push_back(static_cast<float>((n * 37 + 11) % 64 - 32) / 32.0F);
    return gradient;
}

/// Runs the chosen backend.
Found pass(const AttentionCase& c) {
    const RunningInput input = input_of(c);
    Found found;
    const MutableView output = target_of(found.output, input.query, input.value.size);
    for (auto* row : {&found.score, &found.maximum, &found.denominator}) (void)target_of(*row, input.query, 1);
    const RunningRows rows{found.score.data(), found.maximum.data(), found.denominator.data()};
    running_forward(input, output, rows);
    const std::vector<float> gradient = gradient_of(c);
    AttentionGradients gradients;
    gradients.query = target_of(found.query, input.query, input.query.size);
    gradients.key = target_of(found.key, input.key, input.key.size);
    gradients.value = target_of(found.value, input.value, input.value.size);
    running_backward(input, rows, view_of(found.output, input.query, input.value.size),
                     view_of(gradient, input.query, input.value.size), gradients);
    return found;
}

Found reference(const AttentionCase& c) {
    const Forced forced("reference");
    return pass(c);
}

void compare(const char* field, const std::vector<float>& found, const std::vector<float>& expected, double tolerance) {
    INFO(field << ", tolerance " << tolerance);
    REQUIRE(found.size() == expected.size());
    double largest = 1.0;
    for (const float x : expected) largest = std::max(largest, std::abs(double{x}));
    for (std::size_t n = 0; n < found.size(); ++n) {
        if (std::abs(double{found[n]} - double{expected[n]}) <= tolerance * largest) continue;
        FAIL("element " << n << ": found " << found[n] << ", expected " << expected[n]);
    }
}

/// A score rounds as its products do, relative to |q| |k|; an exponential passes that on, and sums of L terms add
/// roundings in random directions.
double tolerance_of(const AttentionCase& c, double largest_score) {
    const Shape& s = c.shape();
    const double size = static_cast<double>(s.key_size), length = static_cast<double>(s.keys);
    const double score = (4.0 * std::sqrt(size) + 8.0) * kEpsilon * (largest_score + 1.0);
    return 4.0 * score + (32.0 + 4.0 * std::sqrt(length * static_cast<double>(s.value_size))) * kEpsilon;
}

void check(const AttentionCase& c, double largest_score) {
    const Found found = pass(c), expected = reference(c);
    const double tolerance = tolerance_of(c, largest_score);
    INFO(c.name << " length " << c.shape().keys << ", heads " << c.shape().heads << ", size " << c.shape().key_size);
    compare("score", found.score, expected.score, tolerance);
    compare("maximum", found.maximum, expected.maximum, tolerance);
    compare("denominator", found.denominator, expected.denominator, tolerance);
    compare("output", found.output, expected.output, tolerance);
    // A gradient adds a row's weights to each key: each of them has that error, relative to the largest sum.
    const double rows = std::sqrt(static_cast<double>(c.shape().keys));
    compare("gradient of queries", found.query, expected.query, tolerance * rows);
    compare("gradient of keys", found.key, expected.key, tolerance * rows);
    compare("gradient of values", found.value, expected.value, tolerance * rows);
}

/// A query of ones and keys of size one: scores are whatever the keys are set to.
AttentionCase with_scores(const Shape& shape, const std::function<float(std::int64_t h, std::int64_t j)>& score) {
    Shape own = shape;
    own.key_heads = own.heads;
    own.key_size = 1;
    AttentionCase c(own, 3);
    c.rule.scale = 1.0;
    for (std::int64_t b = 0; b < own.batch; ++b) {
        for (std::int64_t h = 0; h < own.heads; ++h) {
            for (std::int64_t j = 0; j < own.keys; ++j) {
                c.set('q', b, h, j, 0, 1.0F);
                c.set('k', b, h, j, 0, score(h, j) + 0.125F * static_cast<float>(b));
            }
        }
    }
    c.request.per_query = true;
    for (std::int64_t n = 0; n < own.batch * own.keys; ++n)
        c.request.tokens.push_back(static_cast<std::int32_t>(n * n / 3 % 11));
    return c;
}

float wave(std::int64_t h, std::int64_t j) {
    return static_cast<float>(3.0 * std::sin(0.7 * static_cast<double>(j) + static_cast<double>(h)));
}

Statistics statistics_of(const AttentionCase& c) {
    const Found found = pass(c);
    Statistics statistics;
    running_statistics(input_of(c), found.score, c.request, statistics);
    return statistics;
}

void check_statistics(const AttentionCase& c) {
    INFO("length " << c.shape().keys << ", heads " << c.shape().heads);
    const Result expected = run(c, attention_reference);
    Result found{expected.output, statistics_of(c)};
    check_equal(c, found, expected);
}

}  // namespace

TEST_CASE("the running kernels agree with the reference, forwards and backwards", "[running]") {
    for (const std::int64_t length : {1, 2, 63, 64, 65, 300}) {
        check(AttentionCase({2, 1, 1, length, length, 64, 64}, 1), 8.0);
        check(AttentionCase({1, 6, 2, length, length, 20, 12}, 2), 5.0);
        check(AttentionCase({1, 3, 3, length, length, 1, 17}, 3), 1.0);
        AttentionCase padded({3, 5, 1, length, length, 16, 16}, 4);
        padded.rule.key_length = {length, length / 2, 0};
        check(padded, 4.0);
    }
    check(AttentionCase({2, 4, 2, 130, 130, 33, 65}, 5, ElementType::bfloat16), 6.0);
}

TEST_CASE("every SIMD target runs the same sums", "[running][targets]") {
    for (const std::string& name : available_backends()) {
        if (name == "reference") continue;
        const Forced forced(name);
        const AttentionCase c({1, 4, 2, 130, 130, 20, 20}, 6);
        const Found found = pass(c);
        REQUIRE(last_backend() == name);
        const Found expected = reference(c);
        INFO(name);
        compare("output", found.output, expected.output, tolerance_of(c, 5.0));
        force_backend(name);
        check_statistics(with_scores({1, 4, 4, 130, 130, 1, 4}, wave));
    }
}

TEST_CASE("scores with offsets and outliers overflow nothing", "[running][numerics]") {
    const Shape shape{1, 2, 2, 150, 150, 1, 5};
    check(with_scores(shape, [](std::int64_t h, std::int64_t j) { return wave(h, j) + 1000.0F; }), 0.0);
    check(with_scores(shape, [](std::int64_t h, std::int64_t j) { return j % 50 == 20 ? 1e4F : wave(h, j); }), 0.0);
    check(with_scores(shape, [](std::int64_t h, std::int64_t j) { return j % 40 == 7 ? -1e4F : wave(h, j); }), 0.0);
    check(with_scores(shape, [](std::int64_t, std::int64_t j) { return 100.0F * static_cast<float>(j); }), 0.0);
    check(with_scores(shape, [](std::int64_t, std::int64_t j) { return -100.0F * static_cast<float>(j); }), 0.0);
}

TEST_CASE("a number added to all scores changes nothing", "[running][numerics]") {
    const auto exact = [](float offset) {
        // Multiples of 1/128 stay exact beside 1000.
        return with_scores({1, 3, 3, 200, 200, 1, 7}, [offset](std::int64_t h, std::int64_t j) {
            return std::round(wave(h, j) * 128.0F) / 128.0F + offset;
        });
    };
    const Found plain = pass(exact(0.0F)), moved = pass(exact(1000.0F));
    CHECK(plain.output == moved.output);
    CHECK(plain.denominator == moved.denominator);
    CHECK(plain.value == moved.value);
}

TEST_CASE("decoding token by token equals one pass", "[running][state]") {
    for (const std::int64_t length : {1, 2, 63, 64, 65, 300}) {
        const AttentionCase c({2, 6, 2, length, length, 24, 20}, 7);
        const Found whole = pass(c);
        const RunningInput input = input_of(c);
        std::vector<float> numerator(2 * 6 * 20), denominator(2 * 6), maximum(2 * 6);
        const RunningState state{numerator.data(), denominator.data(), maximum.data()};
        clear_running_state(state, 2 * 6, 20);
        std::vector<float> output(whole.output.size());
        const std::int64_t first = length / 2;  // a prompt, then steps
        const auto step = [&](std::int64_t begin, std::int64_t count) {
            RunningInput part = input;
            for (TensorView* view : {&part.query, &part.key, &part.value}) {
                view->data = static_cast<const float*>(view->data) + begin * view->row_stride;
                view->length = count;
            }
            running_forward(part, {output.data() + begin * 20, ElementType::float32, 6 * length * 20, length * 20, 20},
                            {}, state);
        };
        if (first > 0) step(0, first);
        for (std::int64_t i = first; i < length; ++i) step(i, 1);
        compare("output", output, whole.output, tolerance_of(c, 5.0));
    }
}

TEST_CASE("measured without a matrix, the statistics are those of the matrix", "[running][statistics]") {
    for (const std::int64_t length : {1, 2, 63, 64, 65, 300}) {
        check_statistics(with_scores({2, 3, 3, length, length, 1, 4}, wave));
        check_statistics(with_scores({1, 1, 1, length, length, 1, 4}, wave));
    }
    AttentionCase c = with_scores({2, 2, 2, 700, 700, 1, 3}, wave);
    c.request.thumbnail_size = 37;
    c.request.histogram_row_step = 5;
    c.request.local_distances = {0, 4, 699, 700, 1000};
    check_statistics(c);
    c.rule.key_length = c.rule.query_length = {450, 21};
    check_statistics(c);
    c.rule.key_length = c.rule.query_length = {0, 700};
    check_statistics(c);
    c.request.head_diversity = c.request.thumbnails = c.request.histogram = c.request.column_mass = false;
    c.request.per_query = false;
    c.request.tokens.clear();
    check_statistics(c);
}

TEST_CASE("statistics hold where weights vanish and scores are large", "[running][statistics][numerics]") {
    const Shape shape{1, 3, 3, 300, 300, 1, 2};
    check_statistics(with_scores(shape, [](std::int64_t h, std::int64_t j) { return wave(h, j) * 60.0F; }));
    check_statistics(with_scores(shape, [](std::int64_t, std::int64_t j) { return 2.0F * static_cast<float>(j); }));
    check_statistics(with_scores(shape, [](std::int64_t, std::int64_t j) { return -2.0F * static_cast<float>(j); }));
    check_statistics(
        with_scores(shape, [](std::int64_t h, std::int64_t j) { return j % 50 == 20 ? 1e4F : wave(h, j); }));
    check_statistics(with_scores(
        shape, [](std::int64_t h, std::int64_t j) { return std::round(wave(h, j) * 128.0F) / 128.0F + 1000.0F; }));
}

TEST_CASE("the bits of running sums are the same for every thread count", "[running][threads]") {
    const AttentionCase c({2, 6, 2, 300, 300, 20, 20}, 8), scored = with_scores({2, 4, 4, 530, 530, 1, 3}, wave);
    const int before = threads();
    set_threads(1);
    const Found one = pass(c);
    const Result measured{{}, statistics_of(scored)};
    for (const int count : {2, 3, 7}) {
        set_threads(count);
        const Found many = pass(c);
        CHECK(one.output == many.output);
        CHECK(one.query == many.query);
        CHECK(one.key == many.key);
        CHECK(one.value == many.value);
        CHECK(same_bits(measured, {{}, statistics_of(scored)}));
    }
    set_threads(before);
}

TEST_CASE("a score that is not a number shows in all later rows", "[running]") {
    AttentionCase c({1, 1, 1, 100, 100, 4, 4}, 9);
    c.set('k', 0, 0, 70, 1, std::numeric_limits<float>::quiet_NaN());
    const Found found = pass(c);
    CHECK_FALSE(std::isnan(found.output[69 * 4]));
    CHECK(std::isnan(found.output[70 * 4]));
    CHECK(std::isnan(found.output[99 * 4]));
}

TEST_CASE("what does not fit together is refused, and a flag cancels", "[running][errors]") {
    const AttentionCase c({1, 4, 2, 10, 10, 4, 4}, 10);
    RunningInput input = input_of(c);
    std::vector<float> output(4 * 10 * 4);
    const MutableView view{output.data(), ElementType::float32, 160, 40, 4};
    const std::vector<std::int64_t> two{1, 2}, long_one{11};
    input.lengths = two;
    CHECK_THROWS_AS(running_forward(input, view, {}), Error);
    input.lengths = long_one;
    CHECK_THROWS_AS(running_forward(input, view, {}), Error);
    input.lengths = {};
    CHECK_THROWS_AS(running_forward(input, view, {output.data(), nullptr, nullptr}), Error);
    CHECK_THROWS_AS(running_backward(input, {}, input.query, input.query, {}), Error);
    const std::atomic<bool> cancel{true};
    input.cancel = &cancel;
    CHECK_THROWS_AS(running_forward(input, view, {}), Cancelled);
}
