// SPDX-License-Identifier: GPL-3.0-or-later
// Gradients of attention on the emulator against the float64 reference.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
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
using headscope::kernels::testing::has_mma;
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

struct How {
    bool hidden_blocks = false;
    ElementType gradient = ElementType::float32;  ///< of d loss / d O
    const char* seed = "1";
};

/// The name that last_backend() has for gradients of a case.
std::string kernels_of(const AttentionCase& c, const std::string& backend, ElementType gradient) {
    if (backend == "reference" || c.input().query.type == ElementType::float32) return backend;
    return backend + (gradient == ElementType::bfloat16 && has_mma(backend) ? " mma" : " fma");
}

Found run_on(const AttentionCase& c, const std::string& backend, const How& how) {
    const ForcedBackend forced(backend, how.seed);
    const Shape& s = c.shape();
    Found found(s);
    Values gradient(s.batch, s.heads, s.queries, s.value_size);
    std::vector<std::uint16_t> halves;  // the same without the lower half of each number
    for (std::size_t n = 0; n < gradient.data.size(); ++n) {
        gradient.data[n] = static_cast<float>(std::sin(static_cast<double>(n) * 0.37));
        halves.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(gradient.data[n]) >> 16U));
    }
    TensorView output_gradient = gradient.input();
    if (how.gradient == ElementType::bfloat16) {
        output_gradient.data = halves.data();
        output_gradient.type = ElementType::bfloat16;
    }
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
        to.hidden_blocks = how.hidden_blocks;
    }
    attention_backward(c.input(), found.output.input(), output_gradient, rows, to);
    REQUIRE(last_backend() == kernels_of(c, backend, how.gradient));
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
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// Scores are at most a few dozen, so their rounding moves a weight by some 1e-6 of itself.
constexpr double kTolerance = 1e-5;
/// Tensor cores take a weight or d loss / d score as two bfloat16 numbers: 2^-9 of it remains, and 2^-9 of that. Errors
/// of the terms of a sum add up as the terms do; twice as much leaves room for sums that cancel.
constexpr double kSplitTolerance = kTolerance + 2.0 * 0x1p-18;

void check_close(const Found& found, const Found& expected, double tolerance) {
    INFO("tolerance " << tolerance);
    CHECK(relative(found.output.data, expected.output.data) < tolerance);
    CHECK(relative(found.query.data, expected.query.data) < tolerance);
    CHECK(relative(found.key.data, expected.key.data) < tolerance);
    CHECK(relative(found.value.data, expected.value.data) < tolerance);
    CHECK(relative(found.sinks, expected.sinks) < tolerance);
    CHECK(relative(found.offsets, expected.offsets) < tolerance);
    CHECK(relative(found.biases, expected.biases) < tolerance);
    CHECK(relative_to_one(found.blocks, expected.blocks) < tolerance);
}

void check_same(const Found& found, const Found& again) {
    CHECK(same(found.query.data, again.query.data));
    CHECK(same(found.key.data, again.key.data));
    CHECK(same(found.value.data, again.value.data));
    CHECK(same(found.sinks, again.sinks));
    CHECK(same(found.offsets, again.offsets));
    CHECK(same(found.biases, again.biases));
    CHECK(same(found.blocks, again.blocks));
}

void check(const AttentionCase& c, bool hidden_blocks = false) {
    INFO(c.name);
    const auto [gpu, other] = gpu_backends();
    // Warps of 64 have no tensor cores, which bfloat16 takes.
    const std::string again = c.input().query.type == ElementType::bfloat16 ? gpu : other;
    const How how{hidden_blocks};
    const Found found = run_on(c, gpu, how);
    check_close(found, run_on(c, "reference", how), kTolerance);
    check_same(found, run_on(c, again, how));
}

/// d loss / d O is bfloat16, as q, k and v: on warps with tensor cores and without, equal bits in another order of
/// threads.
void check_halves(const AttentionCase& c, bool hidden_blocks = false) {
    INFO(c.name);
    REQUIRE(c.input().query.type == ElementType::bfloat16);
    const Found expected = run_on(c, "reference", {hidden_blocks, ElementType::bfloat16});
    for (const std::string& backend : gpu_backends()) {
        INFO(backend);
        const Found found = run_on(c, backend, {hidden_blocks, ElementType::bfloat16});
        check_close(found, expected, has_mma(backend) ? kSplitTolerance : kTolerance);
        check_same(found, run_on(c, backend, {hidden_blocks, ElementType::bfloat16, "2"}));
    }
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

TEST_CASE("bfloat16 gradients agree with the reference under every option on tensor cores", "[emulator]") {
    for (const auto& option : attention_options()) {
        const AttentionCase c = make_case({2, 2, 1, 65, 65, 20, 12}, option, ElementType::bfloat16);
        if (trains_here(c)) check_halves(c);
    }
}

TEST_CASE("bfloat16 gradients of odd shapes agree with the reference on tensor cores", "[emulator]") {
    const auto plain = attention_options().front();
    const auto half = [&](const Shape& shape) { return make_case(shape, plain, ElementType::bfloat16); };
    for (const std::int64_t length : {1, 63, 64, 65}) {
        AttentionCase c = half({1, 4, 2, length, length, 32, 16});
        check_halves(c);
        c.rule.window_left = 17;
        check_halves(c);
        c.rule.causal = false;
        c.rule.window_right = 40;
        check_halves(c);
    }
    check_halves(half({1, 2, 1, 1, 1, 1, 1}));
    check_halves(half({1, 2, 1, 65, 65, 3, 17}));
    check_halves(half({1, 1, 1, 130, 130, 72, 64}));  // two slices of a key, 128 columns
    check_halves(half({1, 2, 1, 20, 20, 136, 256}));  // queries that do not stay, two launches
    check_halves(make_case({1, 2, 2, 30, 130, 16, 40}, attention_options()[1], ElementType::bfloat16));
    check_halves(make_case({1, 2, 2, 130, 30, 16, 40}, attention_options()[1], ElementType::bfloat16));
}

TEST_CASE("bfloat16 gradients with dropped weights agree with the reference on tensor cores", "[emulator]") {
    for (const Normaliser normaliser : {Normaliser::softmax, Normaliser::entmax}) {
        AttentionCase c = make_case({2, 4, 2, 65, 65, 20, 12}, attention_options().front(), ElementType::bfloat16);
        c.rule.normaliser = normaliser;
        c.rule.dropout = {0.3, 94, 1};
        check_halves(c);
    }
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
    const Found found = run_on(c, gpu, {});
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
    CHECK(same(found.output.data, run_on(c, again, {}).output.data));
}

TEST_CASE("dropout of share 0 changes no bit on the emulator", "[emulator]") {
    AttentionCase c = make_case({2, 4, 2, 65, 65, 20, 12}, attention_options().front());
    const Found plain = run_on(c, gpu_backends()[0], {});
    c.rule.dropout = {0.0, 99, 7};
    const Found none = run_on(c, gpu_backends()[0], {});
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

TEST_CASE("bfloat16 gradients of distance biases agree with the reference on tensor cores", "[emulator]") {
    const auto plain = attention_options().front();
    // One part of a key and of a value; two and three.
    for (const Shape& shape : {Shape{1, 2, 1, 1, 1, 3, 2}, Shape{1, 4, 2, 65, 65, 20, 12},
                               Shape{1, 2, 2, 63, 130, 72, 136}, Shape{1, 1, 1, 130, 64, 64, 64}}) {
        AttentionCase c = make_case(shape, plain, ElementType::bfloat16);
        c.rule.causal = false;
        c.rule.bias_length = 33;
        c.rule.bias_origin = 20;
        for (std::int64_t n = 0; n < shape.heads * 33; ++n)
            c.rule.distance_bias.push_back(static_cast<float>(std::sin(static_cast<double>(n))));
        check_halves(c);
        c.rule.causal = true;
        c.rule.query_offset = shape.keys > shape.queries ? shape.keys - shape.queries : 0;
        c.rule.soft_cap = 3.0;
        check_halves(c);
    }
}

TEST_CASE("bfloat16 gradients of visible and hidden blocks agree with the reference on tensor cores", "[emulator]") {
    AttentionCase c = make_case({1, 4, 2, 70, 70, 72, 8}, attention_options().front(), ElementType::bfloat16);
    c.rule.causal = true;
    c.rule.blocks.block_size = 16;
    c.rule.blocks.blocks = 5;
    for (std::int64_t n = 0; n < 4 * c.rule.blocks.blocks; ++n)
        c.rule.blocks.visible.push_back(static_cast<std::uint8_t>(n * n % 3 == 1 ? 1 : 0));
    for (const bool hidden : {false, true}) check_halves(c, hidden);
}
