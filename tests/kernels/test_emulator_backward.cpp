// SPDX-License-Identifier: GPL-3.0-or-later
// Gradients of attention on the emulator against the float64 reference.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/attention_backward.h"
#include "kernels/backend.h"
#include "kernels/normaliser.h"
#include "tests/kernels/attention_options.h"
#include "tests/kernels/emulator_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::attention_options;
using headscope::kernels::testing::AttentionCase;
using headscope::kernels::testing::ForcedBackend;
using headscope::kernels::testing::gpu_backends;
using headscope::kernels::testing::make_case;
using headscope::kernels::testing::ran_on;
using headscope::kernels::testing::Shape;

namespace {

constexpr float kCanary = 4321.0F;

/// [batch, heads, length, size] with a canary behind each row.
struct Values {
    Values(std::int64_t batch, std::int64_t head_count, std::int64_t rows, std::int64_t columns)
        : batches(batch),
          heads(head_count),
          length(rows),
          size(columns),
          data(static_cast<std::size_t>(batch * heads * length * (size + 1)), kCanary) {}
    MutableView view() {
        return {data.data(), ElementType::float32, heads * length * (size + 1), length * (size + 1), size + 1};
    }
    TensorView input() const {
        return {data.data(),
                ElementType::float32,
                batches,
                heads,
                length,
                size,
                heads * length * (size + 1),
                length * (size + 1),
                size + 1};
    }
    std::int64_t batches, heads, length, size;
    std::vector<float> data;
};

struct Found {
    explicit Found(const Shape& s)
        : output(s.batch, s.heads, s.queries, s.value_size),
          query(s.batch, s.heads, s.queries, s.key_size),
          key(s.batch, s.key_heads, s.keys, s.key_size),
          value(s.batch, s.key_heads, s.keys, s.value_size),
          shift(static_cast<std::size_t>(s.batch * s.heads * s.queries)),
          factor(shift.size()),
          sinks(static_cast<std::size_t>(s.heads)),
          offsets(sinks) {}
    Values output, query, key, value;
    std::vector<float> shift, factor, sinks, offsets, biases, blocks;
};

Found run_on(const AttentionCase& c, const std::string& backend, bool hidden_blocks) {
    const ForcedBackend forced(backend);
    const Shape& s = c.shape();
    Found found(s);
    Values gradient(s.batch, s.heads, s.queries, s.value_size);
    for (std::size_t n = 0; n < gradient.data.size(); ++n)
        gradient.data[n] = static_cast<float>(std::sin(static_cast<double>(n) * 0.37));
    const SoftmaxRows rows{found.shift.data(), found.factor.data()};
    attention_forward(c.input(), found.output.view(), rows);
    REQUIRE(ran_on(backend));
    AttentionGradients to{found.query.view(), found.key.view(), found.value.view()};
    if (!c.rule.sink_logits.empty()) to.sinks = found.sinks.data();
    if (!c.rule.offsets.empty()) to.offsets = found.offsets.data();
    if (c.rule.bias_length > 0) {
        found.biases.resize(static_cast<std::size_t>(s.heads * c.rule.bias_length));
        to.distance_bias = found.biases.data();
    }
    if (c.rule.blocks.block_size > 0 && c.rule.normaliser == Normaliser::softmax && c.rule.soft_cap == 0.0) {
        found.blocks.resize(static_cast<std::size_t>(s.batch * s.heads * c.rule.blocks.blocks));
        to.blocks = found.blocks.data();
        to.hidden_blocks = hidden_blocks;
    }
    attention_backward(c.input(), found.output.input(), gradient.input(), rows, to);
    REQUIRE(ran_on(backend));
    return found;
}

/// The norm of the difference over that of the expected numbers.
double relative(const std::vector<float>& found, const std::vector<float>& expected) {
    double difference = 0.0, size = 0.0;
    for (std::size_t n = 0; n < expected.size(); ++n) {
        difference += std::pow(double{found[n]} - double{expected[n]}, 2);
        if (expected[n] != kCanary) size += std::pow(double{expected[n]}, 2);
    }
    return size > 0.0 ? std::sqrt(difference / size) : std::sqrt(difference);
}

/// The norm of the difference over that of the expected numbers, or over 1: sums of terms that cancel may be 0.
double relative_to_one(const std::vector<float>& found, const std::vector<float>& expected) {
    std::vector<float> more = expected, own = found;
    more.push_back(1.0F);
    own.push_back(1.0F);
    return relative(own, more);
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void check(const AttentionCase& c, bool hidden_blocks = false) {
    INFO(c.name);
    const auto [gpu, other] = gpu_backends();
    // Warps of 64 have no tensor cores, which bfloat16 takes.
    const std::string again = c.input().query.type == ElementType::bfloat16 ? gpu : other;
    const Found found = run_on(c, gpu, hidden_blocks), expected = run_on(c, "reference", hidden_blocks),
                wide = run_on(c, again, hidden_blocks);
    // Scores are at most a few dozen, so their rounding moves a weight by some 1e-6 of itself.
    constexpr double kTolerance = 1e-5;
    CHECK(relative(found.output.data, expected.output.data) < kTolerance);
    CHECK(relative(found.query.data, expected.query.data) < kTolerance);
    CHECK(relative(found.key.data, expected.key.data) < kTolerance);
    CHECK(relative(found.value.data, expected.value.data) < kTolerance);
    CHECK(relative(found.sinks, expected.sinks) < kTolerance);
    CHECK(relative(found.offsets, expected.offsets) < kTolerance);
    CHECK(relative(found.biases, expected.biases) < kTolerance);
    CHECK(relative_to_one(found.blocks, expected.blocks) < kTolerance);
    CHECK(same(found.query.data, wide.query.data));
    CHECK(same(found.key.data, wide.key.data));
    CHECK(same(found.value.data, wide.value.data));
    CHECK(same(found.biases, wide.biases));
    CHECK(same(found.blocks, wide.blocks));
}

/// Keys of 20 numbers. A weight near 0 is kept or cut off by its rounding; scores of several hundred lose the digits of
/// a weight.
bool trains_here(const AttentionCase& c) {
    return traits_of(c.rule.normaliser).trains() && c.rule.far_distance < 0 && c.rule.scale * std::sqrt(20.0) <= 20.0;
}

}  // namespace

TEST_CASE("gradients agree with the reference under every option on the emulator", "[emulator]") {
    for (const auto& option : attention_options()) {
        const AttentionCase c = make_case({2, 4, 2, 65, 65, 20, 12}, option);
        if (trains_here(c)) check(c);
    }
}

TEST_CASE("gradients of odd shapes agree with the reference on the emulator", "[emulator]") {
    const auto plain = attention_options().front();
    check(make_case({1, 2, 1, 1, 1, 1, 1}, plain));
    check(make_case({1, 2, 1, 65, 65, 3, 17}, plain));
    check(make_case({1, 1, 1, 20, 20, 130, 256}, plain));
    check(make_case({1, 2, 2, 30, 130, 16, 16}, attention_options()[1]));
    check(make_case({1, 4, 2, 70, 70, 20, 20}, plain, ElementType::bfloat16));
}

TEST_CASE("gradients with dropped weights agree with the reference under every option on the emulator", "[emulator]") {
    for (const auto& option : attention_options()) {
        AttentionCase c = make_case({2, 4, 2, 65, 65, 20, 12}, option);
        if (!trains_here(c)) continue;
        c.rule.dropout = {0.3, 91, 3};
        check(c);
    }
    const auto plain = attention_options().front();
    for (const Shape& shape :
         {Shape{1, 2, 1, 1, 1, 1, 1}, Shape{1, 2, 1, 65, 65, 3, 17}, Shape{1, 1, 1, 63, 64, 8, 130}}) {
        AttentionCase c = make_case(shape, plain);
        c.rule.dropout = {0.3, 92, 0};
        check(c);
    }
    AttentionCase halves = make_case({1, 4, 2, 70, 70, 20, 20}, plain, ElementType::bfloat16);
    halves.rule.dropout = {0.3, 93, 0};
    check(halves);
}

TEST_CASE("dropped weights of the emulator are those of the rule", "[emulator]") {
    constexpr std::int64_t kLength = 70;  // values are the identity: O holds the weights
    AttentionCase c = make_case({2, 4, 2, kLength, kLength, 20, kLength}, attention_options().front());
    for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t h = 0; h < 2; ++h)
            for (std::int64_t j = 0; j < kLength; ++j)
                for (std::int64_t x = 0; x < kLength; ++x) c.set('v', b, h, j, x, j == x ? 1.0F : 0.0F);
    c.rule.causal = true;
    c.rule.dropout = {0.3, 17, 2};
    const auto [gpu, again] = gpu_backends();
    const Found found = run_on(c, gpu, false);
    std::int64_t wrong = 0, dropped = 0;
    for (std::int64_t n = 0; n < 2 * 4 * kLength; ++n) {
        const std::int64_t b = n / (4 * kLength), h = n / kLength % 4, i = n % kLength;
        const std::uint64_t row = dropout_row(dropout_sequence(c.rule.dropout, b), h, i);
        for (std::int64_t j = 0; j <= i; ++j) {
            const bool drops = dropout_bits(row, j) < dropout_threshold(0.3);
            const float weight = found.output.data[static_cast<std::size_t>(n * (kLength + 1) + j)];
            wrong += drops == (weight == 0.0F) ? 0 : 1;
            dropped += drops ? 1 : 0;
        }
    }
    CHECK(wrong == 0);
    CHECK(dropped > 1000);
    CHECK(same(found.output.data, run_on(c, again, false).output.data));
}

TEST_CASE("dropout of share 0 changes no bit on the emulator", "[emulator]") {
    AttentionCase c = make_case({2, 4, 2, 65, 65, 20, 12}, attention_options().front());
    const Found plain = run_on(c, gpu_backends()[0], false);
    c.rule.dropout = {0.0, 99, 7};
    const Found none = run_on(c, gpu_backends()[0], false);
    CHECK(same(none.output.data, plain.output.data));
    CHECK(same(none.query.data, plain.query.data));
    CHECK(same(none.key.data, plain.key.data));
    CHECK(same(none.value.data, plain.value.data));
}

TEST_CASE("gradients of distance biases agree with the reference on the emulator", "[emulator]") {
    const auto plain = attention_options().front();
    for (const BeyondTable beyond : {BeyondTable::clamp, BeyondTable::zero}) {
        for (const Shape& shape : {Shape{1, 2, 1, 1, 1, 3, 2}, Shape{2, 4, 2, 65, 65, 20, 12},
                                   Shape{1, 1, 1, 63, 130, 5, 40}, Shape{1, 2, 2, 130, 64, 8, 8}}) {
            AttentionCase c = make_case(shape, plain);
            c.rule.causal = false;
            c.rule.bias_length = 33;
            c.rule.bias_origin = 20;
            c.rule.beyond_table = beyond;
            for (std::int64_t n = 0; n < shape.heads * 33; ++n)
                c.rule.distance_bias.push_back(static_cast<float>(std::sin(static_cast<double>(n))));
            check(c);
            c.rule.causal = true;
            c.rule.query_offset = shape.keys > shape.queries ? shape.keys - shape.queries : 0;
            c.rule.soft_cap = 3.0;
            check(c);
        }
    }
}

TEST_CASE("gradients of visible and hidden blocks agree with the reference on the emulator", "[emulator]") {
    const auto plain = attention_options().front();
    for (const std::int64_t size : {1, 16, 50}) {
        AttentionCase c = make_case({2, 4, 2, 70, 70, 12, 8}, plain);
        c.rule.causal = true;
        c.rule.blocks.block_size = size;
        c.rule.blocks.blocks = (70 + size - 1) / size;
        for (std::int64_t n = 0; n < 2 * 4 * c.rule.blocks.blocks; ++n)
            c.rule.blocks.visible.push_back(static_cast<std::uint8_t>(n * n % 3 == 1 ? 1 : 0));
        for (const bool hidden : {false, true}) check(c, hidden);
    }
}
