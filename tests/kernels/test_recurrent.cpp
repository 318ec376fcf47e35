// SPDX-License-Identifier: GPL-3.0-or-later
// Attention from a state: the kernels against their float64 reference.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/parallel.h"
#include "kernels/recurrent.h"
#include "tests/kernels/recurrent_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::read_tokens;
using headscope::kernels::testing::RecurrentCase;
using headscope::kernels::testing::RecurrentFound;
using headscope::kernels::testing::RecurrentShape;

namespace {

constexpr double kEpsilon = 0x1p-24;

struct Forced {
    explicit Forced(const std::string& name) { force_backend(name); }
    ~Forced() { force_backend("auto"); }
};

RecurrentRule rule_of(bool delta, Decay decay, std::int64_t chunk_size = 0) {
    RecurrentRule rule;
    rule.scale = 0.7;
    rule.delta = delta;
    rule.decay = decay;
    rule.chunk_size = chunk_size;
    return rule;
}

const std::vector<RecurrentRule>& rules() {
    static const std::vector<RecurrentRule> all = [] {
        std::vector<RecurrentRule> made;
        for (const bool delta : {true, false})
            for (const Decay decay : {Decay::none, Decay::head, Decay::channel}) made.push_back(rule_of(delta, decay));
        return made;
    }();
    return all;
}

/// NAtS-L's variants, in chunks of `size`.
std::vector<RecurrentRule> chunk_rules(std::int64_t size) {
    std::vector<RecurrentRule> made;
    for (RecurrentRule rule : rules()) {
        rule.chunk_size = size;
        for (const bool decays : {true, false}) {
            for (const bool own : {true, false}) {
                rule.decays_dropped = decays;
                rule.reads_own_chunk = own;
                made.push_back(rule);
            }
        }
    }
    return made;
}

std::string text_of(const RecurrentCase& c) {
    const RecurrentShape& s = c.shape;
    return (c.rule.delta ? "delta" : "added") + (", decay " + std::to_string(static_cast<int>(c.rule.decay))) +
           ", chunk " + std::to_string(c.rule.chunk_size) + (c.rule.decays_dropped ? "" : ", kept whole") +
           (c.rule.reads_own_chunk ? "" : ", earlier chunks only") + ", L " + std::to_string(s.length) + ", H " +
           std::to_string(s.heads) + " / " + std::to_string(s.key_heads) + ", d " + std::to_string(s.key_size) + " / " +
           std::to_string(s.value_size);
}

/// Keys of length 1 and values within 1: a number of the state is a sum of at most L products, each read a sum of dk;
/// their roundings add up in random directions. Relative to the largest number of a field.
double tolerance_of(const RecurrentShape& s) {
    return (32.0 + 8.0 * std::sqrt(static_cast<double>(s.length + s.key_size))) * kEpsilon;
}

void compare(const char* field, const std::vector<float>& found, const std::vector<float>& expected, double tolerance) {
    INFO(field);
    REQUIRE(found.size() == expected.size());
    double largest = 1.0;
    for (const float x : expected) largest = std::max(largest, std::abs(double{x}));
    for (std::size_t n = 0; n < found.size(); ++n) {
        if (std::abs(double{found[n]} - double{expected[n]}) <= tolerance * largest) continue;
        FAIL("element " << n << ": found " << found[n] << ", expected " << expected[n] << ", tolerance "
                        << tolerance * largest);
    }
}

void compare(const RecurrentFound& found, const RecurrentFound& expected, double tolerance, bool with_pieces) {
    compare("output", found.output, expected.output, tolerance);
    compare("state", found.now, expected.now, tolerance);
    compare("state at the chunk's start", found.start, expected.start, tolerance);
    // A sum of g, of up to 200 a token.
    compare("decay", found.decay, expected.decay, tolerance);
    if (with_pieces) compare("pieces", found.pieces, expected.pieces, tolerance);
}

RecurrentFound whole(const RecurrentCase& c) {
    RecurrentFound found(c);
    read_tokens(c, 0, c.shape.length, found, found.pieces.data());
    return found;
}

RecurrentFound reference(const RecurrentCase& c) {
    const Forced forced("reference");
    return whole(c);
}

void check(const RecurrentCase& c) {
    INFO(text_of(c));
    const RecurrentFound expected = reference(c);
    const double tolerance = tolerance_of(c.shape);
    compare(whole(c), expected, tolerance, true);
    // A prompt, then token by token; then in parts of unequal length.
    const std::int64_t length = c.shape.length, prompt = length / 2;
    RecurrentFound decoded(c), parts(c);
    if (prompt > 0) read_tokens(c, 0, prompt, decoded);
    for (std::int64_t i = prompt; i < length; ++i) read_tokens(c, i, 1, decoded);
    compare(decoded, expected, tolerance, false);
    for (std::int64_t i = 0, n = 1; i < length; i += n, n = 2 * n + 1)
        read_tokens(c, i, std::min(n, length - i), parts);
    compare(parts, expected, tolerance, false);
}

}  // namespace

TEST_CASE("a state that walks with the tokens is that of the formula", "[recurrent]") {
    for (const RecurrentRule& rule : rules()) {
        for (const std::int64_t length : {1, 2, 3, 5, 63, 64, 65, 130}) check({{2, 3, 1, length, 20, 12}, rule});
        check({{1, 6, 3, 67, 33, 70}, rule});
        check({{1, 2, 2, 100, 128, 64}, rule});
        check({{1, 2, 2, 40, 1, 1}, rule});
        check({{1, 4, 2, 70, 24, 136}, rule, ElementType::bfloat16});
    }
}

TEST_CASE("chunks keep what their factor says", "[recurrent][chunks]") {
    for (const RecurrentRule& rule : chunk_rules(16)) {
        for (const std::int64_t length : {15, 16, 17, 83}) check({{2, 3, 1, length, 20, 12}, rule});
    }
    for (const RecurrentRule& rule : chunk_rules(100)) check({{1, 2, 2, 250, 17, 64}, rule});
    for (const RecurrentRule& rule : chunk_rules(1)) check({{1, 2, 1, 9, 8, 8}, rule});
}

TEST_CASE("padding writes nothing and reads 0", "[recurrent][padding]") {
    std::vector<RecurrentRule> all = rules();
    for (const RecurrentRule& rule : chunk_rules(16)) all.push_back(rule);
    for (RecurrentRule rule : all) {
        rule.length = {50, 0, 48};
        const RecurrentCase c({3, 4, 2, 53, 12, 20}, rule);
        check(c);
        const RecurrentFound found = whole(c);
        const auto row = [&](std::int64_t b, std::int64_t t) {
            return found.output[static_cast<std::size_t>((b * 4 * 53 + t) * 20)];
        };
        CHECK(row(0, 50) == 0.0F);
        CHECK(row(1, 0) == 0.0F);
        CHECK(std::all_of(found.now.begin() + 4 * 12 * 20, found.now.begin() + 8 * 12 * 20,
                          [](float x) { return x == 0.0F; }));
    }
}

TEST_CASE("pieces begin anew with each chunk", "[recurrent][pieces]") {
    RecurrentRule rule;
    CHECK(recurrent_pieces(rule, 1) == 1);
    CHECK(recurrent_pieces(rule, 64) == 1);
    CHECK(recurrent_pieces(rule, 65) == 2);
    rule.chunk_size = 100;
    CHECK(recurrent_pieces(rule, 100) == 2);
    CHECK(recurrent_pieces(rule, 101) == 3);
    CHECK(recurrent_pieces(rule, 300) == 6);
    rule.chunk_begin = 90;
    CHECK(recurrent_pieces(rule, 11) == 2);
}

TEST_CASE("every SIMD target walks the same state", "[recurrent][targets]") {
    for (const std::string& name : available_backends()) {
        const Forced forced(name);
        INFO(name);
        for (const RecurrentRule& rule : rules()) {
            const RecurrentCase c({1, 4, 2, 71, 18, 73}, rule);
            compare(whole(c), reference(c), tolerance_of(c.shape), true);
        }
        for (const RecurrentRule& rule : chunk_rules(16)) {
            const RecurrentCase c({1, 2, 1, 40, 18, 73}, rule);
            compare(whole(c), reference(c), tolerance_of(c.shape), true);
        }
        const Forced again(name);
        (void)whole(RecurrentCase({1, 1, 1, 3, 4, 4}, rules()[0]));
        REQUIRE(last_backend() == name);
    }
}

TEST_CASE("a walk has the same bits for every thread count", "[recurrent][threads]") {
    const RecurrentCase c({2, 3, 1, 150, 32, 200}, chunk_rules(64)[6]);
    const int before = threads();
    set_threads(1);
    const RecurrentFound one = whole(c);
    for (const int count : {2, 3, 7}) {
        set_threads(count);
        const RecurrentFound found = whole(c);
        CHECK(found.output == one.output);
        CHECK(found.now == one.now);
        CHECK(found.start == one.start);
        CHECK(found.decay == one.decay);
        CHECK(found.pieces == one.pieces);
    }
    set_threads(before);
}

TEST_CASE("a decay of 0 is no exception", "[recurrent]") {
    for (const bool delta : {true, false}) {
        RecurrentCase c({1, 1, 1, 70, 8, 8}, rule_of(delta, Decay::head));
        RecurrentInput input = c.input();
        std::vector<float> g(70, -0.1F);
        g[33] = -std::numeric_limits<float>::infinity();
        input.log_decay.data = g.data();
        std::vector<float> output(70 * 8), expected(70 * 8);
        const auto run = [&](std::vector<float>& to) {
            recurrent_forward(input, {to.data(), ElementType::float32, 70 * 8, 70 * 8, 8}, {}, nullptr);
        };
        run(output);
        {
            const Forced forced("reference");
            run(expected);
        }
        compare("output", output, expected, tolerance_of(c.shape));
    }
}

TEST_CASE("output may be bfloat16", "[recurrent]") {
    const RecurrentCase c({1, 2, 1, 20, 8, 70}, rules()[1], ElementType::bfloat16);
    std::vector<std::uint16_t> output(2 * 20 * 70);
    recurrent_forward(c.input(), {output.data(), ElementType::bfloat16, 0, 20 * 70, 70}, {}, nullptr);
    const RecurrentFound expected = reference(c);
    for (std::size_t n = 0; n < output.size(); ++n) {
        const float found = std::bit_cast<float>(std::uint32_t{output[n]} << 16U), wanted = expected.output[n];
        REQUIRE(std::abs(found - wanted) <= 0x1p-8F * std::abs(wanted) + 1e-5F);
    }
}
