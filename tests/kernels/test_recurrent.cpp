// SPDX-License-Identifier: GPL-3.0-or-later
// Attention from a state: the kernels against their float64 reference.
#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/parallel.h"
#include "kernels/recurrent.h"
#include "tests/kernels/forced.h"
#include "tests/kernels/recurrent_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::Forced;
using headscope::kernels::testing::read_tokens;
using headscope::kernels::testing::RecurrentCase;
using headscope::kernels::testing::RecurrentFound;
using headscope::kernels::testing::RecurrentShape;

namespace {

constexpr double kEpsilon = 0x1p-24;

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

TEST_CASE("Each chunk starts a new piece", "[recurrent][pieces]") {
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
    std::vector<RecurrentCase> cases;
    for (const RecurrentRule& rule : rules()) cases.push_back({{1, 4, 2, 71, 18, 73}, rule});
    for (const RecurrentRule& rule : chunk_rules(16)) cases.push_back({{1, 2, 1, 40, 18, 73}, rule});
    for (const RecurrentCase& c : cases) {
        INFO(text_of(c));
        const RecurrentFound expected = reference(c);
        for (const std::string& name : available_backends()) {
            const Forced forced(name);
            INFO(name);
            compare(whole(c), expected, tolerance_of(c.shape), true);
            REQUIRE(last_backend() == name);
        }
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

namespace {

struct Implicit {
    std::vector<float> dense;
    ImplicitStatistics statistics;
    explicit Implicit(const RecurrentCase& c, const float* direct = nullptr)
        : dense(static_cast<std::size_t>(c.shape.batch * c.shape.heads * c.shape.length * c.shape.length), 777.0F) {
        RecurrentInput input = c.input();
        input.direct = direct;
        implicit_statistics(input, statistics, dense.data());
    }
};

void compare(const char* field, const std::vector<double>& found, const std::vector<double>& expected,
             double tolerance) {
    INFO(field);
    REQUIRE(found.size() == expected.size());
    for (std::size_t n = 0; n < found.size(); ++n) {
        INFO("head " << n << ": " << found[n] << " " << expected[n]);
        REQUIRE(std::abs(found[n] - expected[n]) <= tolerance * std::max(1.0, std::abs(expected[n])));
    }
}

/// A number of W has passed L decays and writes; a read sums dk of them.
double implicit_tolerance(const RecurrentShape& s) {
    return tolerance_of(s);
}

void check_implicit(const RecurrentCase& c) {
    INFO(text_of(c));
    const Implicit found(c);
    const double tolerance = implicit_tolerance(c.shape);
    {
        const Forced forced("reference");
        const Implicit expected(c);
        compare("matrix", found.dense, expected.dense, tolerance);
        // |A| log |A| has no slope that is bounded at 0, so small weights count for their logarithm, below 90.
        const double length = static_cast<double>(c.shape.length);
        compare("entropy", found.statistics.entropy, expected.statistics.entropy, 90.0 * tolerance * length);
        compare("row mean", found.statistics.entropy_row_mean, expected.statistics.entropy_row_mean,
                90.0 * tolerance * std::sqrt(length));
        compare("concentration", found.statistics.concentration, expected.statistics.concentration,
                8.0 * tolerance * std::sqrt(length));
    }
    // A v is the output.
    const RecurrentShape& s = c.shape;
    const RecurrentFound output = reference(c);
    std::vector<float> product;
    for (std::int64_t n = 0; n < s.batch * s.heads; ++n) {
        for (std::int64_t i = 0; i < s.length; ++i) {
            for (std::int64_t x = 0; x < s.value_size; ++x) {
                double sum = 0.0;
                for (std::int64_t j = 0; j <= i; ++j)
                    sum += double{found.dense[static_cast<std::size_t>((n * s.length + i) * s.length + j)]} *
                           double{c.value(n / s.heads, n % s.heads, j, x)};
                product.push_back(static_cast<float>(sum));
            }
        }
    }
    compare("A v", product, output.output, tolerance * std::sqrt(static_cast<double>(s.length)));
    // Tiles, one of them across the diagonal, are parts of the whole.
    const std::int64_t l = s.length;
    for (const auto& [q, q_end, k, k_end] : {std::array<std::int64_t, 4>{l / 3, l, l / 4, l / 2},
                                             {0, l, 0, l},
                                             {l / 2, l / 2 + 1, 0, 1},
                                             {l - 1, l, l - 1, l},
                                             {0, l / 2, l / 2, l}}) {
        std::vector<float> tile(static_cast<std::size_t>((q_end - q) * (k_end - k)) + 1, 777.0F), expected = tile;
        implicit_weights(c.input(), s.batch - 1, s.heads - 1, q, q_end, k, k_end, tile.data());
        std::size_t at = 0;
        for (std::int64_t i = q; i < q_end; ++i)
            for (std::int64_t j = k; j < k_end; ++j)
                expected[at++] =
                    found.dense[static_cast<std::size_t>(((s.batch * s.heads - 1) * s.length + i) * s.length + j)];
        compare("tile", tile, expected, tolerance);
        REQUIRE(tile.back() == 777.0F);
    }
}

}  // namespace

TEST_CASE("the implicit matrix times the values is the output", "[recurrent][implicit]") {
    for (const RecurrentRule& rule : rules()) {
        for (const std::int64_t length : {1, 2, 31, 33, 65, 130}) check_implicit({{2, 3, 1, length, 20, 5}, rule});
        check_implicit({{1, 4, 2, 70, 24, 8}, rule, ElementType::bfloat16});
    }
    for (const RecurrentRule& rule : chunk_rules(16)) check_implicit({{1, 2, 1, 83, 20, 5}, rule});
    for (const RecurrentRule& rule : chunk_rules(64)) check_implicit({{1, 2, 2, 150, 12, 5}, rule});
}

TEST_CASE("rows of padding have no weights", "[recurrent][implicit]") {
    RecurrentRule rule = rules()[1];
    rule.length = {40, 0};
    const RecurrentCase c({2, 2, 1, 50, 8, 5}, rule);
    check_implicit(c);
    const Implicit found(c);
    CHECK(std::all_of(found.dense.begin() + 40 * 50, found.dense.begin() + 50 * 50, [](float x) { return x == 0.0F; }));
    CHECK(found.statistics.entropy_row_mean[2] == 0.0);
}

TEST_CASE("what goes beside the state is on the diagonal", "[recurrent][implicit]") {
    const std::vector<float> direct{1.5F, -0.25F, 0.0F};
    for (RecurrentRule rule : rules()) {
        rule.length = {70, 33};
        const RecurrentCase c({2, 3, 1, 70, 20, 5}, rule);
        INFO(text_of(c));
        const double tolerance = implicit_tolerance(c.shape);
        const Implicit found(c, direct.data());
        Implicit expected(c);
        for (std::size_t n = 0; n < 6; ++n)
            for (std::size_t i = 0; i < static_cast<std::size_t>(rule.length[n / 3]); ++i)
                expected.dense[(n * 70 + i) * 70 + i] += direct[n % 3];
        compare("matrix", found.dense, expected.dense, tolerance);
        const Forced forced("reference");
        const Implicit formula(c, direct.data());
        compare("matrix of the formula", found.dense, formula.dense, tolerance);
        compare("entropy", found.statistics.entropy, formula.statistics.entropy, 90.0 * tolerance * 70.0);
        compare("concentration", found.statistics.concentration, formula.statistics.concentration,
                8.0 * tolerance * std::sqrt(70.0));
    }
}

TEST_CASE("every SIMD target walks the same rows, in any number of threads", "[recurrent][implicit][targets]") {
    const RecurrentCase c({1, 2, 1, 83, 18, 5}, chunk_rules(16)[4]);
    for (const std::string& name : available_backends()) {
        const Forced forced(name);
        INFO(name);
        const Implicit found(c);
        REQUIRE(last_backend() == name);
        check_implicit(c);
    }
    const int before = threads();
    set_threads(1);
    const Implicit one(c);
    for (const int count : {2, 5}) {
        set_threads(count);
        const Implicit found(c);
        CHECK(found.dense == one.dense);
        CHECK(found.statistics.entropy == one.statistics.entropy);
        CHECK(found.statistics.concentration == one.statistics.concentration);
    }
    set_threads(before);
}

TEST_CASE("recurrent attention refuses what does not fit, and a flag cancels", "[recurrent][errors]") {
    const RecurrentCase c({1, 2, 1, 20, 8, 6}, chunk_rules(16)[4]);
    std::vector<float> output(2 * 20 * 6), state(2 * 8 * 6), start = state, decay(2), dense(2 * 20 * 20);
    const MutableView view{output.data(), ElementType::float32, 240, 120, 6};
    const auto refused = [&](const char* where, const auto& change) {
        RecurrentInput input = c.input();
        RecurrentRule rule = c.rule;
        input.rule = &rule;
        change(input, rule);
        try {
            recurrent_forward(input, view, {}, nullptr);
        } catch (const Error& error) {
            CHECK(error.where() == where);
            return;
        }
        FAIL("not refused: " << where);
    };
    refused("rule", [](RecurrentInput& input, RecurrentRule&) { input.rule = nullptr; });
    refused("scale", [](RecurrentInput&, RecurrentRule& rule) { rule.scale = std::nan(""); });
    refused("query", [](RecurrentInput& input, RecurrentRule&) { input.query.length = 19; });
    refused("key", [](RecurrentInput& input, RecurrentRule&) { input.key.size = 7; });
    refused("value", [](RecurrentInput& input, RecurrentRule&) { input.value.data = nullptr; });
    refused("write", [](RecurrentInput& input, RecurrentRule&) { input.write.heads = 1; });
    refused("write", [](RecurrentInput& input, RecurrentRule&) { input.write.type = ElementType::bfloat16; });
    refused("log decay", [](RecurrentInput& input, RecurrentRule&) { input.log_decay.data = nullptr; });
    refused("log decay", [](RecurrentInput&, RecurrentRule& rule) { rule.decay = Decay::channel; });
    refused("log decay", [](RecurrentInput&, RecurrentRule& rule) { rule.decay = Decay::none; });
    refused("chunk size", [](RecurrentInput&, RecurrentRule& rule) { rule.chunk_size = -1; });
    refused("chunk begin", [](RecurrentInput&, RecurrentRule& rule) { rule.chunk_begin = 16; });
    refused("chunks", [](RecurrentInput&, RecurrentRule& rule) { rule.chunks = 1; });
    refused("kept", [](RecurrentInput&, RecurrentRule& rule) { rule.kept.pop_back(); });
    refused("length", [](RecurrentInput&, RecurrentRule& rule) { rule.length = {21}; });
    refused("length", [](RecurrentInput&, RecurrentRule& rule) { rule.length = {1, 1}; });
    refused("state", [](RecurrentInput&, RecurrentRule& rule) { rule.chunk_begin = 3; });
    CHECK_THROWS_AS(recurrent_forward(c.input(), {}, {}, nullptr), Error);
    CHECK_THROWS_AS(recurrent_forward(c.input(), view, {state.data(), nullptr, decay.data()}, nullptr), Error);
    CHECK_THROWS_AS(recurrent_forward(c.input(), view, {state.data(), start.data(), nullptr}, nullptr), Error);
    CHECK_NOTHROW(recurrent_forward(c.input(), view, {state.data(), start.data(), decay.data()}, nullptr));
    CHECK_THROWS_AS(implicit_weights(c.input(), 0, 2, 0, 1, 0, 1, dense.data()), Error);
    CHECK_THROWS_AS(implicit_weights(c.input(), 0, 0, 0, 21, 0, 1, dense.data()), Error);
    CHECK_THROWS_AS(implicit_weights(c.input(), 0, 0, 0, 1, 0, 1, nullptr), Error);
    RecurrentInput input = c.input();
    ImplicitStatistics statistics;
    input.direct = output.data();
    CHECK_THROWS_AS(implicit_statistics(input, statistics, nullptr), Error);  // there are chunks
    const std::atomic<bool> cancel{true};
    input.cancel = &cancel;
    input.direct = nullptr;
    CHECK_THROWS_AS(recurrent_forward(input, view, {}, nullptr), Cancelled);
    CHECK_THROWS_AS(implicit_statistics(input, statistics, nullptr), Cancelled);
    CHECK_THROWS_AS(implicit_weights(input, 0, 0, 0, 1, 0, 1, dense.data()), Cancelled);
}
