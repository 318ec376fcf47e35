// SPDX-License-Identifier: GPL-3.0-or-later
// Attention with one score per key, and Taylor weights from a state, on the emulator against the float64 reference.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/normaliser.h"
#include "kernels/running.h"
#include "kernels/taylor_state.h"
#include "tests/kernels/attention_case.h"
#include "tests/kernels/emulator_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::AttentionCase;
using headscope::kernels::testing::check_emulator;
using headscope::kernels::testing::Fields;
using headscope::kernels::testing::kSingleEpsilon;
using headscope::kernels::testing::Operands;
using headscope::kernels::testing::Place;
using headscope::kernels::testing::Shape;

namespace {

using Numbers = std::vector<float>;

Numbers room(std::int64_t count, float value = 777.0F) {
    return Numbers(static_cast<std::size_t>(count), value);
}

MutableView place_of(Numbers& values, std::int64_t heads, std::int64_t length, std::int64_t size) {
    return {values.data(), ElementType::float32, heads * length * size, length * size, size};
}

TensorView view_of(const Numbers& values, std::int64_t batch, std::int64_t heads, std::int64_t length,
                   std::int64_t size) {
    return {values.data(), ElementType::float32,  batch,         heads, length,
            size,          heads * length * size, length * size, size};
}

/// Tokens [begin, begin + count) of a view.
TensorView tokens_of(TensorView view, std::int64_t begin, std::int64_t count) {
    const std::int64_t bytes = view.type == ElementType::float32 ? 4 : 2;
    view.data = static_cast<const char*>(view.data) + begin * view.row_stride * bytes;
    view.length = count;
    return view;
}

/// Scores round as their products do, an exponential passes that on, and sums over L keys add roundings in random
/// directions; a gradient adds a row's weights to each key.
double running_tolerance(const Shape& s) {
    const double terms = static_cast<double>(s.keys * s.value_size + s.key_size);
    return (64.0 + 8.0 * std::sqrt(terms)) * kSingleEpsilon * std::sqrt(static_cast<double>(s.keys));
}

Fields running_pass(const AttentionCase& c, Place place) {
    const Shape& s = c.shape();
    Operands operands(place);
    const AttentionInput input = operands.read_all(c.input());
    const RunningInput running{input.query, input.key, input.value, c.rule.scale, c.rule.key_length, nullptr};
    const auto result = [&](Numbers& to, std::int64_t heads, std::int64_t size) {
        return operands.write(place_of(to, heads, s.keys, size), s.batch, heads, s.keys, size);
    };
    const std::int64_t rows = s.batch * s.heads * s.keys, key_rows = s.batch * s.key_heads * s.keys;
    Numbers output = room(rows * s.value_size), score = room(rows), maximum = room(rows), denominator = room(rows);
    const RunningRows constants{operands.write(score), operands.write(maximum), operands.write(denominator)};
    const MutableView out = result(output, s.heads, s.value_size);
    running_forward(running, out, constants);
    Numbers outer = room(rows * s.value_size);
    for (std::size_t n = 0; n < outer.size(); ++n)
        outer[n] = static_cast<float>((static_cast<int>(n) * 37 + 11) % 64 - 32) / 32.0F;
    Numbers query = room(rows * s.key_size), key = room(key_rows * s.key_size), value = room(key_rows * s.value_size);
    AttentionGradients to;
    to.query = result(query, s.heads, s.key_size);
    to.key = result(key, s.key_heads, s.key_size);
    to.value = result(value, s.key_heads, s.value_size);
    running_backward(running, constants, operands.view_of(out, s.batch, s.heads, s.keys, s.value_size),
                     operands.read(view_of(outer, s.batch, s.heads, s.keys, s.value_size)), to);
    operands.fetch();
    return {{"output", output},
            {"score", score},
            {"maximum", maximum},
            {"denominator", denominator},
            {"gradient of queries", query},
            {"gradient of keys", key},
            {"gradient of values", value}};
}

void check_running(const AttentionCase& c) {
    const Shape& s = c.shape();
    UNSCOPED_INFO("length " << s.keys << ", heads " << s.heads << " / " << s.key_heads << ", sizes " << s.key_size
                            << " / " << s.value_size);
    check_emulator([&](Place place) { return running_pass(c, place); }, running_tolerance(s));
}

/// The text in parts of 1, 3, 7, .. tokens.
Fields running_parts(const AttentionCase& c, Place place) {
    const Shape& s = c.shape();
    const AttentionInput input = c.input();
    const std::int64_t heads = s.batch * s.heads;
    Numbers output = room(heads * s.keys * s.value_size);
    Numbers numerator = room(heads * s.value_size, 0.0F), denominator = room(heads, 0.0F);
    Numbers maximum = room(heads, -std::numeric_limits<float>::infinity());
    for (std::int64_t i = 0, n = 1; i < s.keys; i += n, n = 2 * n + 1) {
        const std::int64_t count = std::min(n, s.keys - i);
        const RunningInput part{tokens_of(input.query, i, count),
                                tokens_of(input.key, i, count),
                                tokens_of(input.value, i, count),
                                c.rule.scale,
                                {},
                                nullptr};
        MutableView to = place_of(output, s.heads, s.keys, s.value_size);
        to.data = output.data() + i * s.value_size;
        Operands operands(place);
        running_forward(operands.read_all(part), operands.write(to, s.batch, s.heads, count, s.value_size), {},
                        {operands.change(numerator), operands.change(denominator), operands.change(maximum)});
        operands.fetch();
    }
    return {{"output", output}, {"numerator", numerator}, {"denominator", denominator}, {"maximum", maximum}};
}

AttentionCase taylor_case(const Shape& shape, Normaliser normaliser, ElementType type = ElementType::float32) {
    // Queries and keys are positive, so that no denominator comes near 0 by any rule.
    AttentionCase c(shape, static_cast<std::uint32_t>(shape.keys * 5 + shape.heads), type);
    c.rule.normaliser = normaliser;
    for (const char which : {'q', 'k'})
        for (std::int64_t b = 0; b < shape.batch; ++b)
            for (std::int64_t h = 0; h < (which == 'q' ? shape.heads : shape.key_heads); ++h)
                for (std::int64_t i = 0; i < shape.keys; ++i)
                    for (std::int64_t x = 0; x < shape.key_size; ++x)
                        c.set(which, b, h, i, x, std::abs(c.get(which, b, h, i, x)));
    return c;
}

/// Without a state; then in parts of 2, 5, 11, .. tokens with one.
Fields taylor_pass(const AttentionCase& c, Place place) {
    const Shape& s = c.shape();
    const AttentionInput input = c.input();
    const auto run = [&](const TaylorInput& tokens, const MutableView& to, Numbers& state) {
        Operands operands(place);
        taylor_forward(operands.read_all(tokens),
                       operands.write(to, s.batch, s.heads, tokens.query.length, s.value_size), operands.change(state));
        operands.fetch();
    };
    const std::int64_t rows = s.batch * s.heads * s.keys * s.value_size;
    Numbers whole = room(rows), parts = room(rows);
    Numbers none;
    run({input.query, input.key, input.value, c.rule.scale, c.rule.normaliser, nullptr},
        place_of(whole, s.heads, s.keys, s.value_size), none);
    Numbers state =
        room(s.batch * s.key_heads * taylor_features(c.rule.normaliser, s.key_size) * (s.value_size + 1), 0.0F);
    for (std::int64_t i = 0, n = 2; i < s.keys; i += n, n = 2 * n + 1) {
        const std::int64_t count = std::min(n, s.keys - i);
        MutableView to = place_of(parts, s.heads, s.keys, s.value_size);
        to.data = parts.data() + i * s.value_size;
        run({tokens_of(input.query, i, count), tokens_of(input.key, i, count), tokens_of(input.value, i, count),
             c.rule.scale, c.rule.normaliser, nullptr},
            to, state);
    }
    return {{"output of a whole text", whole}, {"output of parts", parts}, {"state", state}};
}

void check_taylor(const AttentionCase& c, bool products = false) {
    const Shape& s = c.shape();
    UNSCOPED_INFO(normaliser_name(c.rule.normaliser)
                  << ", length " << s.keys << ", heads " << s.heads << " / " << s.key_heads << ", sizes " << s.key_size
                  << " / " << s.value_size);
    // A sum over n keys of products of dk numbers rounds in random directions; a mean of values within one is divided.
    const double terms = static_cast<double>(s.keys) + static_cast<double>(s.key_size * s.key_size);
    check_emulator([&](Place place) { return taylor_pass(c, place); },
                   (64.0 + 16.0 * std::sqrt(terms)) * kSingleEpsilon, products);
}

}  // namespace

TEST_CASE("running attention agrees with the reference on the emulator", "[emulator][running]") {
    for (const std::int64_t length : {1, 63, 64, 65, 200}) check_running({{1, 2, 1, length, length, 20, 12}, 3});
    check_running({{2, 4, 2, 70, 70, 3, 17}, 4});
    check_running({{1, 1, 1, 20, 20, 1, 1}, 5});
    // 128 threads own a value column each.
    check_running({{1, 2, 1, 66, 66, 129, 128}, 6});
    check_running({{1, 2, 2, 33, 33, 64, 129}, 6});
    check_running({{1, 1, 1, 65, 65, 256, 256}, 6});
    check_running({{1, 2, 1, 20, 20, 65, 33}, 6, ElementType::bfloat16});
    check_running({{1, 4, 2, 70, 70, 24, 20}, 7, ElementType::bfloat16});
    AttentionCase padded({3, 2, 1, 70, 70, 8, 5}, 8);
    padded.rule.key_length = {65, 0, 64};
    check_running(padded);
}

TEST_CASE("running attention keeps digits of large scores on the emulator", "[emulator][running]") {
    AttentionCase c({1, 2, 2, 140, 140, 1, 6}, 9);
    c.rule.scale = 1.0;
    for (std::int64_t h = 0; h < 2; ++h)
        for (std::int64_t j = 0; j < 140; ++j) {
            c.set('q', 0, h, j, 0, 1.0F);
            // Scores that climb from -1000 to 1000, fall, and stay.
            c.set('k', 0, h, j, 0, static_cast<float>(j < 100 ? 20 * j - 1000 : h == 0 ? -1000 : 1000));
        }
    check_running(c);
}

TEST_CASE("running attention goes on from its state on the emulator", "[emulator][running]") {
    const AttentionCase c({2, 4, 2, 150, 150, 5, 7}, 10);
    check_emulator([&](Place place) { return running_parts(c, place); }, running_tolerance(c.shape()));
}

TEST_CASE("Taylor weights from a state agree with the reference on the emulator", "[emulator][taylor]") {
    for (const Normaliser normaliser : {Normaliser::taylor, Normaliser::taylor_diagonal, Normaliser::taylor_per_order,
                                        Normaliser::taylor_diagonal_per_order}) {
        check_taylor(taylor_case({1, 4, 2, 75, 75, 9, 12}, normaliser));
        check_taylor(taylor_case({2, 2, 1, 1, 1, 3, 2}, normaliser));
    }
    for (const std::int64_t length : {63, 64, 65})
        check_taylor(taylor_case({1, 2, 1, length, length, 5, 7}, Normaliser::taylor));
    // 160 threads own a column each, one of them that of the denominators; 64 rows of a state are a segment.
    check_taylor(taylor_case({1, 2, 1, 6, 6, 64, 159}, Normaliser::taylor_diagonal));
    check_taylor(taylor_case({1, 1, 1, 6, 6, 65, 160}, Normaliser::taylor_per_order));
    check_taylor(taylor_case({1, 2, 1, 6, 6, 129, 33}, Normaliser::taylor_diagonal_per_order));
    check_taylor(taylor_case({1, 1, 1, 3, 3, 256, 256}, Normaliser::taylor_diagonal));
    check_taylor(taylor_case({1, 2, 2, 70, 70, 1, 1}, Normaliser::taylor));
    check_taylor(taylor_case({1, 2, 1, 20, 20, 8, 8}, Normaliser::taylor, ElementType::bfloat16), true);
}
