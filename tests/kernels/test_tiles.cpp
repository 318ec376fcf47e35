// SPDX-License-Identifier: GPL-3.0-or-later
// Rectangles of weights and scores, and downsampled maps, against the matrix computed pair by pair in float64.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

#include "kernels/backend.h"
#include "kernels/normaliser.h"
#include "kernels/parallel.h"
#include "kernels/reference/attention.h"
#include "kernels/score_pairs.h"
#include "kernels/tiles.h"
#include "tests/kernels/golden_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::Generator;
using headscope::kernels::testing::GoldenCase;
using headscope::kernels::testing::load_golden;

namespace {

constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
constexpr float kCanary = 777.0F;

double element(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
    const std::int64_t at = b * view.batch_stride + h * view.head_stride + i * view.row_stride + c;
    if (view.type == ElementType::float32) return static_cast<const float*>(view.data)[at];
    const std::uint32_t bits = static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(view.data)[at]) << 16;
    float value = 0.0F;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/// Score of a pair and a bound for what float32 may do to it: sum of |terms| times epsilon times their number.
struct Score {
    double value = 0.0, error = 0.0;
};

Score score_at(const AttentionInput& input, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    const std::int64_t group = h / (input.query.heads / input.key.heads);
    double dot = 0.0, size = 0.0;
    const ScoreRule& rule = *input.rule;
    const bool far = rule.far_distance >= 0 && i + rule.query_offset - j > rule.far_distance;
    for (std::int64_t c = 0; c < (far ? rule.near_begin : input.query.size); ++c) {
        const double term = element(input.query, b, h, i, c) * element(input.key, b, group, j, c);
        dot += term;
        size += std::abs(term);
    }
    if (far) {
        const double last = element(input.query, b, h, i, input.query.size - 1);
        dot += last;
        size += std::abs(last);
    }
    const double value = score_of<double>(rule, h, i, j, dot);
    const double error = kEpsilon * static_cast<double>(input.query.size + 4) *
                         (size * std::abs(input.rule->scale) + std::abs(value) + 1.0);
    return {value, error};
}

/// `offset`: what the row adds, of the elastic normaliser.
double weight_at(const ScoreRule& rule, double score, double constant, double offset) {
    const double above = score - constant;
    switch (traits_of(rule.normaliser).terms) {
        case Terms::elastic:
            return std::max(std::exp(above) + offset, 0.0);
        case Terms::threshold:
            return std::max(above, 0.0);
        case Terms::square:
            return std::pow(std::max(0.5 * above, 0.0), 2);
        case Terms::sigmoid:
            return 1.0 / (1.0 + std::exp(-above));
        default:
            return std::exp(above);
    }
}

struct Weight {
    double value = 0.0, error = 0.0;
};

/// A Taylor weight by its formula, with what the scores' errors do to it: through its own term, and through the sums.
Weight taylor_weight_at(const AttentionInput& input, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    const ScoreRule& rule = *input.rule;
    const SequenceBounds bounds = sequence_bounds(rule, b, input.query.length, input.key.length);
    const std::int64_t group = h / (input.query.heads / input.key.heads);
    double number = 0.0, sums[2] = {0.0, 0.0}, sizes[2] = {0.0, 0.0}, own[2] = {0.0, 0.0}, error = 0.0;
    for (std::int64_t other = 0; other < input.key.length; ++other) {
        if (!allowed(rule, bounds, b, h, input.query.heads, i, other)) continue;
        const Score score = score_at(input, b, h, i, other);
        double second = 0.5 * score.value * score.value;
        if (traits_of(rule.normaliser).diagonal) {
            second = 0.0;
            for (std::int64_t c = 0; c < input.query.size; ++c) {
                second +=
                    0.5 *
                    std::pow(rule.scale * element(input.query, b, h, i, c) * element(input.key, b, group, other, c), 2);
            }
        }
        number += 1.0;
        const double terms[2] = {score.value, second};
        for (int n = 0; n < 2; ++n) {
            sums[n] += terms[n];
            sizes[n] += std::abs(terms[n]) + kEpsilon;
            if (other == j) own[n] = terms[n];
        }
        error += score.error * (2.0 + std::abs(score.value) + second);
    }
    if (traits_of(rule.normaliser).per_order) {
        const double least = std::min(std::abs(sums[0]), std::abs(sums[1]));
        const double most = 1.0 + sizes[0] / std::abs(sums[0]) + sizes[1] / std::abs(sums[1]);
        return {1.0 / number + own[0] / sums[0] + own[1] / sums[1], 4.0 * most * (error / least + kEpsilon)};
    }
    const double total = number + sums[0] + sums[1];
    const double most = (number + sizes[0] + sizes[1]) / std::abs(total);
    return {(1.0 + own[0] + own[1]) / total, 4.0 * most * (error / std::abs(total) + kEpsilon)};
}

std::vector<float> constants_of(const AttentionInput& input) {
    Statistics statistics;
    const StatisticsRequest request;
    attention_reference(input, {}, &request, &statistics);
    return statistics.row_constant;
}

/// Checks one rectangle of weights and of scores, and that nothing is written outside it.
void check_rectangle(const AttentionInput& input, const std::vector<float>& constants, const MapRectangle& at) {
    const ScoreRule& rule = *input.rule;
    const std::int64_t columns = at.k_end - at.k_begin, cells = (at.q_end - at.q_begin) * columns;
    std::vector<float> weights(static_cast<std::size_t>(cells + 1), kCanary), scores = weights;
    attention_weights(input, constants, at.b, at.h, at.q_begin, at.q_end, at.k_begin, at.k_end, weights.data());
    attention_scores(input, at.b, at.h, at.q_begin, at.q_end, at.k_begin, at.k_end, scores.data());
    REQUIRE(weights.back() == kCanary);
    REQUIRE(scores.back() == kCanary);
    const SequenceBounds bounds = sequence_bounds(rule, at.b, input.query.length, input.key.length);
    for (std::int64_t n = 0; n < cells; ++n) {
        const std::int64_t i = at.q_begin + n / columns, j = at.k_begin + n % columns;
        const float weight = weights[static_cast<std::size_t>(n)], found = scores[static_cast<std::size_t>(n)];
        INFO("head " << at.h << ", query " << i << ", key " << j << ": weight " << weight << ", score " << found);
        if (!allowed(rule, bounds, at.b, at.h, input.query.heads, i, j)) {
            REQUIRE(weight == 0.0F);
            REQUIRE(found == -std::numeric_limits<float>::infinity());
            continue;
        }
        const Score score = score_at(input, at.b, at.h, i, j);
        REQUIRE(std::abs(found - score.value) <= score.error);
        if (is_taylor(rule.normaliser)) {
            const Weight expected = taylor_weight_at(input, at.b, at.h, i, j);
            INFO("expected " << expected.value << " within " << expected.error);
            REQUIRE(std::abs(weight - expected.value) <= expected.error);
            continue;
        }
        const double constant =
            constants[static_cast<std::size_t>((at.b * input.query.heads + at.h) * input.query.length + i)];
        if (rule.normaliser == Normaliser::sigmoid) REQUIRE(constant == 0.0);
        const double offset = double{offset_of(rule, bounds, at.h, i)};
        const double expected = weight_at(rule, score.value, constant, offset);
        const double error = score.error + kEpsilon * std::abs(constant);
        const bool exponential = rule.normaliser == Normaliser::softmax || rule.normaliser == Normaliser::elastic;
        const double relative =
            exponential ? std::min(1.0, (expected + std::abs(offset)) * (std::expm1(error) + 4 * kEpsilon)) : error;
        REQUIRE(std::abs(weight - expected) <= relative + 1e-37);
    }
}

/// A self-attention with random queries and keys, [1, heads, length, size].
struct RandomAttention {
    std::vector<float> query, key;
    ScoreRule rule;
    TensorView q, k;
    RandomAttention(std::int64_t heads, std::int64_t length, std::int64_t size, std::uint32_t seed = 7) {
        Generator source(seed, 24);
        for (auto* values : {&query, &key}) {
            for (std::int64_t n = 0; n < heads * length * size; ++n) values->push_back(source.draw() * 1.5F);
        }
        q = {query.data(), ElementType::float32, 1, heads, length, size, heads * length * size, length * size, size};
        k = q;
        k.data = key.data();
        rule.scale = 1.0 / std::sqrt(static_cast<double>(size));
    }
    AttentionInput input() const { return {q, k, k, &rule, nullptr}; }
};

void check_map(const RandomAttention& attention, const MapRectangle& at, std::int64_t rows, std::int64_t columns) {
    const AttentionInput input = attention.input();
    const std::vector<float> constants = constants_of(input);
    const std::int64_t queries = at.q_end - at.q_begin, keys = at.k_end - at.k_begin;
    std::vector<float> dense(static_cast<std::size_t>(queries * keys));
    attention_weights(input, constants, at.b, at.h, at.q_begin, at.q_end, at.k_begin, at.k_end, dense.data());
    const auto pixels = static_cast<std::size_t>(rows * columns);
    std::vector<double> sum(pixels), cells(pixels);
    std::vector<float> highest(pixels), mean(pixels + 1, kCanary), maximum(pixels + 1, kCanary);
    for (std::int64_t n = 0; n < queries * keys; ++n) {
        const auto pixel = static_cast<std::size_t>(n / keys * rows / queries * columns + n % keys * columns / keys);
        sum[pixel] += dense[static_cast<std::size_t>(n)];
        cells[pixel] += 1.0;
        highest[pixel] = std::max(highest[pixel], dense[static_cast<std::size_t>(n)]);
    }
    attention_map(input, constants, at, rows, columns, mean.data(), maximum.data());
    REQUIRE(mean.back() == kCanary);
    REQUIRE(maximum.back() == kCanary);
    for (std::size_t n = 0; n < pixels; ++n) {
        INFO("pixel " << n);
        REQUIRE(cells[n] > 0.0);
        // The same weights from tiles of another shape: vector lanes are the same, so sums alone differ.
        REQUIRE(maximum[n] == Approx(highest[n]).epsilon(1e-6).margin(1e-37));
        REQUIRE(mean[n] == Approx(sum[n] / cells[n]).epsilon(64 * kEpsilon).margin(1e-37));
    }
}

}  // namespace

TEST_CASE("tiles of weights and scores are the matrix's own, for every rule", "[tiles]") {
    for (const GoldenCase& c : load_golden().cases) {
        INFO("case: " << c.name);
        const AttentionInput input = c.input();
        const std::int64_t queries = std::min<std::int64_t>(c.query.length, 70),
                           keys = std::min<std::int64_t>(c.key.length, 70);
        const std::vector<float> constants = constants_of(input);
        for (std::int64_t b = 0; b < c.query.batch; ++b) {
            for (std::int64_t h = 0; h < c.query.heads; ++h) {
                check_rectangle(input, constants, {b, h, 0, queries, 0, keys});
                check_rectangle(input, constants, {b, h, queries / 2, queries, keys / 3, keys});
                check_rectangle(input, constants, {b, h, queries - 1, queries, 0, 1});
            }
        }
    }
}

TEST_CASE("tiles of odd sizes around the vector's are right, and rows of whole tiles sum to 1", "[tiles]") {
    for (const std::int64_t length : {1, 15, 16, 17, 31, 33, 63, 64, 65, 257}) {
        const RandomAttention attention(2, length, length % 2 == 0 ? 64 : 33);
        const AttentionInput input = attention.input();
        const std::vector<float> constants = constants_of(input);
        check_rectangle(input, constants, {0, 1, 0, length, 0, length});
        std::vector<float> weights(static_cast<std::size_t>(length * length));
        attention_weights(input, constants, 0, 1, 0, length, 0, length, weights.data());
        for (std::int64_t i = 0; i < length; ++i) {
            const auto row = weights.begin() + i * length;
            CHECK(std::abs(std::accumulate(row, row + length, 0.0) - 1.0) < 16 * kEpsilon);
        }
    }
}

TEST_CASE("tiles are right on every SIMD target of this processor", "[tiles][targets]") {
    struct BackToAuto {
        ~BackToAuto() { force_backend("auto"); }
    } const back_to_auto;
    for (const std::string& name : available_backends()) {
        INFO(name);
        force_backend(name);
        RandomAttention attention(2, 47, 19);
        check_rectangle(attention.input(), constants_of(attention.input()), {0, 1, 3, 46, 0, 47});
        check_map(attention, {0, 0, 0, 47, 0, 47}, 5, 9);
        attention.rule.soft_cap = 1.5;
        attention.rule.slopes = {0.5F, 0.125F};
        check_rectangle(attention.input(), constants_of(attention.input()), {0, 1, 3, 46, 0, 47});
        for (std::size_t last = 18; last < attention.key.size(); last += 19) attention.key[last] = 0.0F;
        attention.rule.far_distance = 11;
        attention.rule.near_begin = 4;
        attention.rule.window_left = 7;
        attention.rule.window_segment = 20;
        check_rectangle(attention.input(), constants_of(attention.input()), {0, 1, 3, 46, 0, 47});
        check_map(attention, {0, 0, 0, 47, 0, 47}, 5, 9);
    }
}

TEST_CASE("a map's pixels are the mean and the maximum of their cells", "[tiles][map]") {
    RandomAttention attention(2, 301, 16);
    check_map(attention, {0, 1, 0, 301, 0, 301}, 301, 301);
    check_map(attention, {0, 1, 0, 301, 0, 301}, 64, 50);
    check_map(attention, {0, 0, 17, 300, 5, 299}, 7, 200);
    check_map(attention, {0, 0, 17, 18, 5, 299}, 1, 1);
    attention.rule.causal = false;
    check_map(attention, {0, 0, 0, 301, 0, 301}, 2, 3);
    attention.rule.causal = true;
    attention.rule.window_left = 40;
    attention.rule.first_keys = 3;
    check_map(attention, {0, 1, 0, 301, 0, 301}, 30, 31);
}

TEST_CASE("a one-cell diagonal survives being zoomed out", "[tiles][map]") {
    RandomAttention attention(1, 2048, 4);
    attention.rule.window_left = 0;
    std::vector<float> mean(16 * 16), maximum(16 * 16);
    attention_map(attention.input(), constants_of(attention.input()), {0, 0, 0, 2048, 0, 2048}, 16, 16, mean.data(),
                  maximum.data());
    for (std::size_t r = 0; r < 16; ++r) {
        for (std::size_t c = 0; c < 16; ++c) {
            CHECK(maximum[16 * r + c] == Approx(r == c ? 1.0 : 0.0).margin(1e-6));
            CHECK(mean[16 * r + c] == Approx(r == c ? 1.0 / 128.0 : 0.0).margin(1e-8));
        }
    }
}

TEST_CASE("a score that is not a number shows in tiles and maps instead of vanishing", "[tiles][map]") {
    RandomAttention attention(1, 100, 8);
    attention.key[20 * 8] = std::numeric_limits<float>::quiet_NaN();
    const AttentionInput input = attention.input();
    const std::vector<float> constants(100, 0.5F);
    std::vector<float> weights(100 * 100), mean(10 * 10), maximum(10 * 10);
    attention_weights(input, constants, 0, 0, 0, 100, 0, 100, weights.data());
    CHECK(std::isnan(weights[50 * 100 + 20]));
    CHECK_FALSE(std::isnan(weights[50 * 100 + 21]));
    attention_map(input, constants, {0, 0, 0, 100, 0, 100}, 10, 10, mean.data(), maximum.data());
    CHECK(std::isnan(mean[5 * 10 + 2]));
    CHECK(std::isnan(maximum[5 * 10 + 2]));
    CHECK_FALSE(std::isnan(maximum[5 * 10 + 3]));
}

TEST_CASE("a map has the same bits for every number of threads", "[tiles][map][threads]") {
    const RandomAttention attention(1, 700, 24);
    const std::vector<float> constants = constants_of(attention.input());
    const int before = threads();
    std::vector<std::vector<float>> results;
    for (const int number : {1, 2, 5}) {
        set_threads(number);
        std::vector<float>& result = results.emplace_back(2 * 90 * 70);
        attention_map(attention.input(), constants, {0, 0, 0, 700, 0, 700}, 90, 70, result.data(),
                      result.data() + 90 * 70);
    }
    set_threads(before);
    CHECK(results[0] == results[1]);
    CHECK(results[0] == results[2]);
}

TEST_CASE("many threads may ask for tiles at once", "[tiles][threads]") {
    const RandomAttention attention(1, 200, 32);
    const AttentionInput input = attention.input();
    const std::vector<float> constants = constants_of(input);
    std::vector<std::vector<float>> results(4, std::vector<float>(200 * 200));
    {
        std::vector<std::jthread> workers;
        for (auto& result : results) {
            workers.emplace_back([&] { attention_weights(input, constants, 0, 0, 0, 200, 0, 200, result.data()); });
        }
    }
    for (const auto& result : results) CHECK(result == results[0]);
}

TEST_CASE("tiles outside the matrix and constants of another call are refused", "[tiles][errors]") {
    const RandomAttention attention(1, 10, 4);
    AttentionInput input = attention.input();
    const std::vector<float> constants(10, 0.0F);
    std::vector<float> out(100);
    const auto weights = [&](std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) {
        attention_weights(input, constants, b, h, 0, q, 0, k, out.data());
    };
    CHECK_NOTHROW(weights(0, 0, 10, 10));
    CHECK_THROWS_AS(weights(1, 0, 10, 10), Error);
    CHECK_THROWS_AS(weights(0, 1, 10, 10), Error);
    CHECK_THROWS_AS(weights(0, -1, 10, 10), Error);
    CHECK_THROWS_AS(weights(0, 0, 11, 10), Error);
    CHECK_THROWS_AS(weights(0, 0, 0, 10), Error);
    CHECK_THROWS_AS(weights(0, 0, 10, 11), Error);
    CHECK_THROWS_AS(attention_weights(input, {constants.data(), 9}, 0, 0, 0, 1, 0, 1, out.data()), Error);
    CHECK_THROWS_AS(attention_scores(input, 0, 0, 0, 1, 0, 1, nullptr), Error);
    CHECK_THROWS_AS(attention_map(input, constants, {0, 0, 0, 10, 0, 10}, 11, 1, out.data(), nullptr), Error);
    CHECK_THROWS_AS(attention_map(input, constants, {0, 0, 0, 10, 0, 10}, 1, 0, out.data(), nullptr), Error);
    input.value = {};
    CHECK_NOTHROW(weights(0, 0, 10, 10));
    const std::atomic<bool> cancel{true};
    input.cancel = &cancel;
    CHECK_THROWS_AS(attention_map(input, constants, {0, 0, 0, 10, 0, 10}, 1, 1, out.data(), nullptr), Cancelled);
}
