// SPDX-License-Identifier: GPL-3.0-or-later
// Attention from a state backwards: the reference against golden gradients (autograd and finite differences, see
// tests/oracle/generate/recurrent_gradients.py), the kernel against the reference.
#include <algorithm>
#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/backend.h"
#include "kernels/flop_counter.h"
#include "kernels/parallel.h"
#include "kernels/recurrent.h"
#include "tests/kernels/forced.h"
#include "tests/kernels/golden_case.h"
#include "tests/kernels/recurrent_case.h"
#include "tests/oracle/golden.h"

using namespace headscope::kernels;
using headscope::kernels::testing::Forced;
using headscope::kernels::testing::Generator;
using headscope::kernels::testing::RecurrentCase;
using headscope::kernels::testing::RecurrentShape;

namespace {

using Numbers = std::vector<float>;

constexpr double kEpsilon = 0x1p-24;
constexpr std::size_t kCanaries = 8;
constexpr float kCanary = 777.0F;

/// Every gradient, [batch, heads, length, size] and so on; canaries behind each.
struct Found {
    Numbers query, key, value, write, log_decay, kept;
};

MutableView target_of(Numbers& values, std::int64_t heads, std::int64_t length, std::int64_t size) {
    return {values.data(), ElementType::float32, heads * length * size, length * size, size};
}

Found pass(const RecurrentInput& input, const Numbers& outer, bool dropped_too) {
    const RecurrentRule& rule = *input.rule;
    const std::int64_t batch = input.key.batch, heads = input.value.heads, length = input.key.length;
    const std::int64_t keys = input.key.size, values = input.value.size, tokens = batch * heads * length;
    const auto room = [](std::int64_t count) { return Numbers(static_cast<std::size_t>(count) + kCanaries, kCanary); };
    Numbers output = room(tokens * values);
    Numbers pieces = room(batch * heads * recurrent_pieces(rule, length) * keys * values);
    recurrent_forward(input, target_of(output, heads, length, values), {}, pieces.data());
    const std::int64_t of_keys = batch * input.key.heads * length * keys;
    Found found{room(of_keys), room(of_keys), room(tokens * values), room(tokens), {}, {}};
    RecurrentGradients gradients;
    gradients.query = target_of(found.query, input.key.heads, length, keys);
    gradients.key = target_of(found.key, input.key.heads, length, keys);
    gradients.value = target_of(found.value, heads, length, values);
    gradients.write = found.write.data();
    if (rule.decay != Decay::none) {
        found.log_decay = room(tokens * (rule.decay == Decay::head ? 1 : keys));
        gradients.log_decay = found.log_decay.data();
    }
    if (rule.chunk_size > 0) {
        found.kept = room(batch * heads * rule.chunks);
        gradients.kept = found.kept.data();
    }
    gradients.dropped_too = dropped_too;
    recurrent_backward(input,
                       {outer.data(), ElementType::float32, batch, heads, length, values, heads * length * values,
                        length * values, values},
                       pieces.data(), gradients);
    for (Numbers* field : {&found.query, &found.key, &found.value, &found.write, &found.log_decay, &found.kept}) {
        if (field->empty()) continue;
        REQUIRE(std::all_of(field->end() - kCanaries, field->end(), [](float x) { return x == kCanary; }));
        field->resize(field->size() - kCanaries);
    }
    return found;
}

Numbers outer_of(const RecurrentCase& c) {
    Numbers outer;
    for (std::int64_t n = 0; n < c.shape.batch * c.shape.heads * c.shape.length * c.shape.value_size; ++n)
        outer.push_back(static_cast<float>((n * 37 + 11) % 64 - 32) / 32.0F);
    return outer;
}

Found pass(const RecurrentCase& c, bool dropped_too = true) {
    return pass(c.input(), outer_of(c), dropped_too);
}

Found reference(const RecurrentCase& c, bool dropped_too = true) {
    const Forced forced("reference");
    return pass(c, dropped_too);
}

void compare(const char* field, const Numbers& found, const Numbers& expected, double tolerance) {
    INFO(field << ", tolerance " << tolerance);
    REQUIRE(found.size() == expected.size());
    double largest = 1.0;
    for (const float x : expected) largest = std::max(largest, std::abs(double{x}));
    for (std::size_t n = 0; n < found.size(); ++n) {
        if (std::abs(double{found[n]} - double{expected[n]}) <= tolerance * largest) continue;
        FAIL("element " << n << ": found " << found[n] << ", expected " << expected[n] << ", largest " << largest);
    }
}

void compare(const Found& found, const Found& expected, double tolerance) {
    compare("gradient of queries", found.query, expected.query, tolerance);
    compare("gradient of keys", found.key, expected.key, tolerance);
    compare("gradient of values", found.value, expected.value, tolerance);
    compare("gradient of w", found.write, expected.write, tolerance);
    compare("gradient of g", found.log_decay, expected.log_decay, tolerance);
    compare("gradient of m", found.kept, expected.kept, tolerance);
}

/// Keys of length 1, values and gradients within 1: every number is a sum over tokens and over a row of the state or of
/// values, each with an error of that kind; relative to the largest of its field.
double tolerance_of(const RecurrentShape& s) {
    return (32.0 + 8.0 * std::sqrt(static_cast<double>(s.length + s.key_size + s.value_size))) * kEpsilon;
}

void check(const RecurrentCase& c, bool dropped_too = true) {
    const RecurrentShape& s = c.shape;
    INFO("delta " << c.rule.delta << ", decay " << static_cast<int>(c.rule.decay) << ", chunk " << c.rule.chunk_size
                  << ", decays dropped " << c.rule.decays_dropped << ", own " << c.rule.reads_own_chunk << ", length "
                  << s.length << ", heads " << s.heads << " / " << s.key_heads << ", sizes " << s.key_size << " / "
                  << s.value_size);
    compare(pass(c, dropped_too), reference(c, dropped_too), tolerance_of(s));
}

std::vector<RecurrentRule> rules(std::int64_t chunk_size) {
    std::vector<RecurrentRule> made;
    RecurrentRule rule;
    rule.scale = 0.7;
    rule.chunk_size = chunk_size;
    for (const bool delta : {true, false}) {
        for (const Decay decay : {Decay::head, Decay::none}) {
            for (const int variant : {0, 1, 2, 3}) {
                if (variant > 0 && chunk_size == 0) continue;
                rule.delta = delta;
                rule.decay = decay;
                rule.decays_dropped = variant % 2 == 0;
                rule.reads_own_chunk = variant < 2;
                made.push_back(rule);
            }
        }
    }
    return made;
}

/// The inputs of a golden case with their memory.
struct GoldenInput {
    explicit GoldenInput(const nlohmann::json& from) {
        const auto count = [&](const char* name) { return from.at(name).get<std::int64_t>(); };
        batch = count("batch");
        length = count("length");
        const std::int64_t heads = count("heads"), key_heads = count("key_heads");
        const std::int64_t keys = count("key_size"), values = count("value_size");
        const nlohmann::json& r = from.at("rule");
        const std::string decay = r.at("decay");
        rule.scale = r.at("scale");
        rule.delta = r.at("delta");
        rule.decay = decay == "none" ? Decay::none : decay == "head" ? Decay::head : Decay::channel;
        rule.chunk_size = r.at("chunk_size");
        rule.decays_dropped = r.at("decays_dropped");
        rule.reads_own_chunk = r.at("reads_own_chunk");
        rule.length = r.at("length").get<std::vector<std::int64_t>>();
        rule.chunks = from.at("chunks");
        rule.kept = from.at("kept").get<std::vector<float>>();
        const auto same = [](float x) { return x; };
        query = draw(key_heads, keys, same);
        key = draw(key_heads, keys, [](float x) { return x / 2.0F; });
        value = draw(heads, values, same);
        write = draw(heads, 1, [](float x) { return (1.0F + x) / 2.0F; });
        const std::int64_t decays = rule.decay == Decay::none ? 0 : rule.decay == Decay::head ? 1 : keys;
        log_decay = draw(heads, decays, [](float x) { return (x - 1.0F) / 4.0F; });
        outer = draw(heads, values, same);
        input = {view(query, key_heads, keys),
                 view(key, key_heads, keys),
                 view(value, heads, values),
                 view(write, heads, 1),
                 {},
                 &rule,
                 nullptr};
        if (decays > 0) input.log_decay = view(log_decay, heads, decays);
    }
    GoldenInput(const GoldenInput&) = delete;  // the input points into it
    GoldenInput& operator=(const GoldenInput&) = delete;

    RecurrentRule rule;
    RecurrentInput input;
    Numbers outer;

private:
    Numbers draw(std::int64_t heads, std::int64_t size, const std::function<float(float)>& change) {
        Numbers values(static_cast<std::size_t>(batch * heads * length * size));
        for (float& x : values) x = change(generator.draw());
        return values;
    }
    TensorView view(const Numbers& of, std::int64_t heads, std::int64_t size) const {
        return {of.data(), ElementType::float32,  batch,         heads, length,
                size,      heads * length * size, length * size, size};
    }

    Generator generator{7, 12};
    std::int64_t batch = 0, length = 0;
    Numbers query, key, value, write, log_decay;
};

}  // namespace

TEST_CASE("gradients of a recurrence are those of autograd and finite differences", "[recurrent][golden]") {
    std::ifstream stream(headscope::test::golden_file("recurrent_gradients.json"));
    const nlohmann::json cases = nlohmann::json::parse(stream);
    REQUIRE(cases.size() == 13);
    for (const nlohmann::json& one : cases) {
        INFO(one.at("name").get<std::string>());
        const GoldenInput golden(one);
        const auto expected = [&](const char* name) { return one.at("gradients").at(name).get<Numbers>(); };
        const Found wanted{expected("query"), expected("key"),       expected("value"),
                           expected("write"), expected("log_decay"), expected("kept")};
        {
            const Forced forced("reference");
            compare(pass(golden.input, golden.outer, true), wanted, 4.0 * kEpsilon);
        }
        if (golden.rule.decay == Decay::channel) {
            CHECK_THROWS_AS(pass(golden.input, golden.outer, true), Error);
            continue;
        }
        const RecurrentShape shape{1, 1, 1, golden.input.key.length, golden.input.key.size, golden.input.value.size};
        compare(pass(golden.input, golden.outer, true), wanted, tolerance_of(shape));
        // A chunk that was dropped has a gradient where that is asked for.
        Found plain = pass(golden.input, golden.outer, false);
        Numbers kept = wanted.kept;
        for (std::size_t n = 0; n < kept.size(); ++n) kept[n] = golden.rule.kept[n] == 0.0F ? 0.0F : kept[n];
        compare("gradient of m", plain.kept, kept, tolerance_of(shape));
    }
}

TEST_CASE("pieces backwards agree with a walk in float64", "[recurrent]") {
    for (const RecurrentRule& rule : rules(0)) {
        for (const std::int64_t length : {1, 2, 15, 16, 17, 63, 64, 65, 150}) {
            check({{2, 3, 1, length, 20, 12}, rule});
            check({{1, 6, 3, length, 33, 70}, rule});
        }
        check({{1, 1, 1, 130, 17, 200}, rule});  // columns in slices
        check({{1, 2, 2, 100, 128, 64}, rule});
        check({{1, 2, 1, 40, 1, 1}, rule});
        check({{1, 4, 2, 70, 24, 136}, rule, ElementType::bfloat16});
    }
}

TEST_CASE("gradients cross chunks as their factors say", "[recurrent][chunks]") {
    for (const std::int64_t chunk : {1, 16, 64, 100}) {
        for (const RecurrentRule& rule : rules(chunk)) {
            for (const std::int64_t length : {1, 63, 64, 65, 230}) {
                check({{1, 2, 1, length, 20, 12}, rule});
                check({{1, 2, 2, length, 5, 130}, rule}, false);
            }
        }
    }
}

TEST_CASE("padding has no gradient and is not read", "[recurrent][padding]") {
    std::vector<RecurrentRule> all = rules(0);
    for (const RecurrentRule& rule : rules(16)) all.push_back(rule);
    for (RecurrentRule rule : all) {
        rule.length = {70, 0, 48};
        const RecurrentCase c({3, 4, 2, 73, 12, 20}, rule);
        check(c);
        Numbers outer = outer_of(c);
        const Found clean = pass(c.input(), outer, true);
        for (std::int64_t h = 0; h < 4; ++h) {
            for (std::int64_t t = 70; t < 73; ++t) {
                CHECK(clean.write[static_cast<std::size_t>(h * 73 + t)] == 0.0F);
                outer[static_cast<std::size_t>((h * 73 + t) * 20)] = std::nanf("");
            }
        }
        const Found found = pass(c.input(), outer, true);
        CHECK(found.query == clean.query);
        CHECK(found.key == clean.key);
        CHECK(found.value == clean.value);
        CHECK(found.kept == clean.kept);
    }
}

TEST_CASE("every SIMD target goes the same way back", "[recurrent][targets]") {
    for (const std::string& name : available_backends()) {
        INFO(name);
        std::vector<RecurrentRule> all = rules(0);
        for (const RecurrentRule& rule : rules(40)) all.push_back(rule);
        for (const RecurrentRule& rule : all) {
            const RecurrentCase c({1, 4, 2, 90, 19, 37}, rule);
            const Found expected = reference(c);
            const Forced forced(name);
            const Found found = pass(c);
            REQUIRE(last_backend() == name);
            compare(found, expected, tolerance_of(c.shape));
        }
    }
}

TEST_CASE("the way back has the same bits for every thread count", "[recurrent][threads]") {
    for (const RecurrentShape& shape : {RecurrentShape{2, 3, 1, 150, 32, 200}, RecurrentShape{1, 1, 1, 150, 32, 270}}) {
        const RecurrentCase c(shape, rules(64)[0]);
        const int before = threads();
        set_threads(1);
        const Found one = pass(c);
        for (const int count : {2, 3, 7}) {
            set_threads(count);
            const Found found = pass(c);
            CHECK(found.query == one.query);
            CHECK(found.key == one.key);
            CHECK(found.value == one.value);
            CHECK(found.write == one.write);
            CHECK(found.log_decay == one.log_decay);
            CHECK(found.kept == one.kept);
        }
        set_threads(before);
    }
}

TEST_CASE("what is not wanted is not written, and gradients may be bfloat16", "[recurrent]") {
    const RecurrentCase c({1, 2, 1, 70, 8, 12}, rules(0)[0], ElementType::bfloat16);
    const Found expected = reference(c);
    Numbers outer = outer_of(c), pieces(2 * 2 * 8 * 12), output(2 * 70 * 12);
    recurrent_forward(c.input(), target_of(output, 2, 70, 12), {}, pieces.data());
    std::vector<std::uint16_t> key(70 * 8);
    RecurrentGradients gradients;
    gradients.key = {key.data(), ElementType::bfloat16, 0, 0, 8};
    recurrent_backward(c.input(), {outer.data(), ElementType::float32, 1, 2, 70, 12, 0, 70 * 12, 12}, pieces.data(),
                       gradients);
    for (std::size_t n = 0; n < key.size(); ++n) {
        const float found = std::bit_cast<float>(std::uint32_t{key[n]} << 16U), wanted = expected.key[n];
        REQUIRE(std::abs(found - wanted) <= 0x1p-8F * std::abs(wanted) + 1e-4F);
    }
}

TEST_CASE("a decay of 0 parts the gradients, too", "[recurrent]") {
    for (const RecurrentRule& rule : rules(0)) {
        if (rule.decay == Decay::none) continue;
        const RecurrentCase c({1, 1, 1, 70, 8, 8}, rule);
        RecurrentInput input = c.input();
        Numbers g(70, -0.1F);
        g[33] = -HUGE_VALF;
        input.log_decay.data = g.data();
        const Found found = pass(input, outer_of(c), false);
        const Forced forced("reference");
        compare(found, pass(input, outer_of(c), false), tolerance_of(c.shape));
    }
}

TEST_CASE("the way back refuses what does not fit, and a flag cancels it", "[recurrent][errors]") {
    const RecurrentCase c({1, 2, 1, 10, 4, 6}, rules(0)[0]);
    RecurrentInput input = c.input();
    const Numbers outer = outer_of(c);
    const TensorView view{outer.data(), ElementType::float32, 1, 2, 10, 6, 120, 60, 6};
    Numbers pieces(2 * 4 * 6), kept(2);
    RecurrentGradients none;
    CHECK_NOTHROW(recurrent_backward(input, view, pieces.data(), none));
    CHECK_THROWS_AS(recurrent_backward(input, view, nullptr, none), Error);
    TensorView other = view;
    other.size = 5;
    CHECK_THROWS_AS(recurrent_backward(input, other, pieces.data(), none), Error);
    RecurrentGradients wrong;
    wrong.kept = kept.data();
    CHECK_THROWS_AS(recurrent_backward(input, view, pieces.data(), wrong), Error);
    RecurrentRule rule = c.rule;
    rule.chunk_size = 16;
    rule.chunk_begin = 3;
    rule.chunks = 1;
    rule.kept = {1.0F, 1.0F};
    input.rule = &rule;
    CHECK_THROWS_AS(recurrent_backward(input, view, pieces.data(), none), Error);
    input = c.input();
    const std::atomic<bool> cancel{true};
    input.cancel = &cancel;
    CHECK_THROWS_AS(recurrent_backward(input, view, pieces.data(), none), Cancelled);
}

TEST_CASE("the operations of the way back are counted", "[recurrent][flops]") {
    const auto count = [](std::int64_t length) {
        const RecurrentCase c({1, 2, 1, length, 32, 48}, rules(0)[0]);
        const RecurrentInput input = c.input();
        const Numbers outer = outer_of(c);
        Numbers pieces(static_cast<std::size_t>(2 * recurrent_pieces(c.rule, length) * 32 * 48));
        const FlopCounter counter;
        recurrent_backward(input, {outer.data(), ElementType::float32, 1, 2, length, 48, 0, length * 48, 48},
                           pieces.data(), {});
        return counter.value();
    };
    const std::int64_t two = count(128), four = count(256), eight = count(512);
    CHECK(two > 0);
    // The first and the last piece have less to do; every other one costs the same.
    CHECK(eight - four == 2 * (four - two));
}
