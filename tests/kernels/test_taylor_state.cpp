// SPDX-License-Identifier: GPL-3.0-or-later
// Taylor weights from a state, against the same weights pair by pair.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/normaliser.h"
#include "kernels/parallel.h"
#include "kernels/reference/attention.h"
#include "kernels/taylor_state.h"
#include "tests/kernels/attention_case.h"
#include "tests/kernels/forced.h"

using namespace headscope::kernels;
using headscope::kernels::testing::AttentionCase;
using headscope::kernels::testing::Forced;
using headscope::kernels::testing::run;
using headscope::kernels::testing::Shape;

namespace {

constexpr double kEpsilon = 0x1p-24;
constexpr Normaliser kRules[] = {Normaliser::taylor, Normaliser::taylor_diagonal, Normaliser::taylor_per_order,
                                 Normaliser::taylor_diagonal_per_order};

/// Queries and keys are positive, so that no denominator comes near 0 by any rule.
AttentionCase make(const Shape& shape, Normaliser normaliser, ElementType type = ElementType::float32) {
    AttentionCase c(shape, static_cast<std::uint32_t>(shape.keys * 5 + shape.heads), type);
    c.rule.normaliser = normaliser;
    for (std::int64_t b = 0; b < shape.batch; ++b) {
        for (const char which : {'q', 'k'}) {
            for (std::int64_t h = 0; h < (which == 'q' ? shape.heads : shape.key_heads); ++h) {
                for (std::int64_t i = 0; i < shape.keys; ++i) {
                    for (std::int64_t x = 0; x < shape.key_size; ++x)
                        c.set(which, b, h, i, x, std::abs(c.get(which, b, h, i, x)));
                }
            }
        }
    }
    return c;
}

TaylorInput input_of(const AttentionCase& c) {
    const AttentionInput input = c.input();
    return {input.query, input.key, input.value, c.rule.scale, c.rule.normaliser, nullptr};
}

std::int64_t state_size(const AttentionCase& c) {
    const Shape& s = c.shape();
    return s.batch * s.key_heads * taylor_features(c.rule.normaliser, s.key_size) * (s.value_size + 1);
}

/// Tokens [begin, begin + count) of a case; the output is laid out [batch, heads, length, size].
void read_tokens(const AttentionCase& c, std::int64_t begin, std::int64_t count, std::vector<float>& output,
                 float* state) {
    const Shape& s = c.shape();
    TaylorInput input = input_of(c);
    for (TensorView* view : {&input.query, &input.key, &input.value}) {
        const std::int64_t bytes = view->type == ElementType::float32 ? 4 : 2;
        view->data = static_cast<const char*>(view->data) + begin * view->row_stride * bytes;
        view->length = count;
    }
    output.resize(static_cast<std::size_t>(s.batch * s.heads * s.keys * s.value_size));
    taylor_forward(input,
                   {output.data() + begin * s.value_size, ElementType::float32, s.heads * s.keys * s.value_size,
                    s.keys * s.value_size, s.value_size},
                   state);
}

/// A sum over n keys of products of dk numbers rounds in random directions; what is divided is a mean of values within
/// one, of three orders at most.
double tolerance_of(const Shape& s) {
    const double terms = static_cast<double>(s.keys) + static_cast<double>(s.key_size * s.key_size);
    return (64.0 + 16.0 * std::sqrt(terms)) * kEpsilon;
}

void compare(const std::vector<float>& found, const std::vector<float>& expected, double tolerance) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t n = 0; n < found.size(); ++n) {
        const double most = tolerance * std::max(1.0, std::abs(double{expected[n]}));
        if (std::abs(double{found[n]} - double{expected[n]}) <= most) continue;
        FAIL("element " << n << ": found " << found[n] << ", expected " << expected[n] << ", tolerance " << most);
    }
}

void check(const AttentionCase& c) {
    const Shape& s = c.shape();
    INFO(normaliser_name(c.rule.normaliser) << ", L " << s.keys << ", H " << s.heads << " / " << s.key_heads << ", d "
                                            << s.key_size << " / " << s.value_size);
    const std::vector<float> expected = run(c, attention_reference, false).output;
    const double tolerance = tolerance_of(s);
    std::vector<float> found;
    read_tokens(c, 0, s.keys, found, nullptr);
    compare(found, expected, tolerance);
    // A prompt, then token by token; then in parts of unequal length.
    const auto all = static_cast<std::size_t>(state_size(c));
    std::vector<float> state(all, 0.0F), parts(all, 0.0F), whole(all, 0.0F);
    const std::int64_t prompt = s.keys / 2;
    if (prompt > 0) read_tokens(c, 0, prompt, found, state.data());
    for (std::int64_t i = prompt; i < s.keys; ++i) read_tokens(c, i, 1, found, state.data());
    compare(found, expected, tolerance);
    for (std::int64_t i = 0, n = 1; i < s.keys; i += n, n = 2 * n + 1)
        read_tokens(c, i, std::min(n, s.keys - i), found, parts.data());
    compare(found, expected, tolerance);
    read_tokens(c, 0, s.keys, found, whole.data());
    double apart = 0.0;
    for (std::size_t n = 0; n < all; ++n)
        apart = std::max({apart, std::abs(double{state[n]} - whole[n]), std::abs(double{parts[n]} - whole[n])});
    REQUIRE(apart <= tolerance * static_cast<double>(s.keys));
}

}  // namespace

TEST_CASE("Taylor weights from a state are those of pairs", "[taylor]") {
    for (const Normaliser rule : kRules) {
        for (const std::int64_t length : {1, 2, 63, 64, 65, 97, 300})
            check(make({2, 3, 1, length, length, 20, 12}, rule));
        check(make({1, 2, 2, 193, 193, 16, 16}, rule));
        check(make({1, 6, 2, 130, 130, 1, 33}, rule));
        check(make({1, 2, 1, 200, 200, 64, 64}, rule));
        check(make({1, 4, 2, 130, 130, 24, 40}, rule, ElementType::bfloat16));
    }
}

TEST_CASE("a state has as many rows as the products that differ", "[taylor]") {
    CHECK(taylor_features(Normaliser::taylor, 64) == 1 + 64 + 64 * 65 / 2);
    CHECK(taylor_features(Normaliser::taylor_diagonal_per_order, 64) == 1 + 64 + 64);
}

TEST_CASE("every SIMD target and the reference read the same state", "[taylor][targets]") {
    for (const std::string& name : available_backends()) {
        const Forced forced(name);
        INFO(name);
        for (const Normaliser rule : kRules) check(make({1, 4, 2, 101, 101, 6, 9}, rule));
        REQUIRE(last_backend() == name);
    }
}

TEST_CASE("a state has the same bits for every thread count", "[taylor][threads]") {
    const AttentionCase c = make({2, 6, 3, 250, 250, 20, 20}, Normaliser::taylor);
    const int before = threads();
    set_threads(1);
    const auto size = static_cast<std::size_t>(state_size(c));
    std::vector<float> one, state(size, 0.0F);
    read_tokens(c, 0, 250, one, state.data());
    for (const int count : {2, 3, 7}) {
        set_threads(count);
        std::vector<float> found, own(size, 0.0F);
        read_tokens(c, 0, 250, found, own.data());
        CHECK(found == one);
        CHECK(own == state);
    }
    set_threads(before);
}

TEST_CASE("long texts prefer a state, short ones pairs", "[taylor]") {
    CHECK_FALSE(taylor_prefers_state(Normaliser::taylor, 512, 8, 8, 64, 64));
    CHECK(taylor_prefers_state(Normaliser::taylor, 16384, 8, 8, 64, 64));
    CHECK(taylor_prefers_state(Normaliser::taylor_diagonal, 1024, 8, 8, 64, 64));
    CHECK_FALSE(taylor_prefers_state(Normaliser::taylor_diagonal, 64, 8, 8, 64, 64));
}

TEST_CASE("a state refuses other weights, and a flag cancels", "[taylor][errors]") {
    const AttentionCase c = make({1, 2, 2, 10, 10, 4, 4}, Normaliser::taylor);
    std::vector<float> output(2 * 10 * 4);
    const MutableView view{output.data(), ElementType::float32, 80, 40, 4};
    TaylorInput input = input_of(c);
    CHECK_THROWS_AS(taylor_forward(input, {}, nullptr), Error);
    input.normaliser = Normaliser::softmax;
    CHECK_THROWS_AS(taylor_forward(input, view, nullptr), Error);
    input.normaliser = Normaliser::taylor;
    const std::atomic<bool> cancel{true};
    input.cancel = &cancel;
    CHECK_THROWS_AS(taylor_forward(input, view, nullptr), Cancelled);
}
