// SPDX-License-Identifier: GPL-3.0-or-later
// Recurrent attention on the emulator against the float64 reference: forward, backward and the implicit matrix.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "tests/kernels/emulator_case.h"
#include "tests/kernels/recurrent_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::check_emulator;
using headscope::kernels::testing::Fields;
using headscope::kernels::testing::ForcedBackend;
using headscope::kernels::testing::gpu_backends;
using headscope::kernels::testing::kSingleEpsilon;
using headscope::kernels::testing::Operands;
using headscope::kernels::testing::Place;
using headscope::kernels::testing::read_tokens;
using headscope::kernels::testing::RecurrentCall;
using headscope::kernels::testing::RecurrentCase;
using headscope::kernels::testing::RecurrentFound;
using headscope::kernels::testing::RecurrentShape;

namespace {

using Numbers = std::vector<float>;

/// Both updates with every decay; with chunks NAtS-L's four variants of each.
std::vector<RecurrentRule> rules(std::int64_t chunk_size) {
    std::vector<RecurrentRule> made;
    RecurrentRule rule;
    rule.scale = 0.7;
    rule.chunk_size = chunk_size;
    for (const bool delta : {true, false}) {
        for (const Decay decay : {Decay::none, Decay::head, Decay::channel}) {
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

/// Keys of length 1, values and gradients within 1: every number is a sum over tokens and over a row of the state or of
/// values, with an error of that kind each; relative to the largest of its field.
double tolerance_of(const RecurrentShape& s) {
    return (32.0 + 8.0 * std::sqrt(static_cast<double>(s.length + s.key_size + s.value_size))) * kSingleEpsilon;
}

Fields fields_of(const RecurrentFound& found) {
    return {{"output", found.output},
            {"state", found.now},
            {"state at the chunk's start", found.start},
            {"decay", found.decay},
            {"pieces", found.pieces}};
}

MutableView place_of(Numbers& values, std::int64_t heads, std::int64_t length, std::int64_t size) {
    return {values.data(), ElementType::float32, heads * length * size, length * size, size};
}

std::int64_t numbers_of_state(const RecurrentInput& input) {
    return input.key.batch * input.value.heads * input.key.size * input.value.size;
}

/// recurrent_forward() with its operands at a place.
RecurrentCall forward_at(Place place) {
    return [place](const RecurrentInput& input, const MutableView& output, const RecurrentState& state, float* pieces) {
        Operands operands(place);
        const RecurrentInput placed = operands.read_all(input);
        const TensorView& value = input.value;
        const MutableView to = operands.write(output, value.batch, value.heads, value.length, value.size);
        const std::int64_t size = numbers_of_state(input);
        const std::int64_t decays = input.rule->decay == Decay::channel ? input.key.size : 1;
        const RecurrentState held{operands.change(state.now, size), operands.change(state.start, size),
                                  operands.change(state.decay, value.batch * value.heads * decays)};
        recurrent_forward(placed, to, held,
                          operands.change(pieces, size * recurrent_pieces(*input.rule, value.length)));
        operands.fetch();
    };
}

/// All gradients, from the pieces of a forward pass on the same backend.
Fields backward(const RecurrentCase& c, bool dropped_too, Place place) {
    const RecurrentShape& s = c.shape;
    const RecurrentInput all = c.input();
    Operands operands(place);
    const RecurrentInput input = operands.read_all(all);
    const auto room = [](std::int64_t count) { return Numbers(static_cast<std::size_t>(count), 777.0F); };
    const std::int64_t tokens = s.batch * s.heads * s.length;
    Numbers outer = room(tokens * s.value_size), output = outer;
    for (std::size_t n = 0; n < outer.size(); ++n)
        outer[n] = static_cast<float>((static_cast<int>(n) * 37 + 11) % 64 - 32) / 32.0F;
    Numbers pieces = room(numbers_of_state(all) * recurrent_pieces(c.rule, s.length));
    const auto result = [&](Numbers& to, std::int64_t heads, std::int64_t size) {
        return operands.write(place_of(to, heads, s.length, size), s.batch, heads, s.length, size);
    };
    float* const states = operands.change(pieces);
    recurrent_forward(input, result(output, s.heads, s.value_size), {}, states);
    Numbers query = room(s.batch * s.key_heads * s.length * s.key_size), key = query;
    Numbers value = room(tokens * s.value_size), write = room(tokens), decay, kept;
    RecurrentGradients to;
    to.query = result(query, s.key_heads, s.key_size);
    to.key = result(key, s.key_heads, s.key_size);
    to.value = result(value, s.heads, s.value_size);
    to.write = operands.write(write);
    to.dropped_too = dropped_too;
    if (c.rule.decay != Decay::none) {
        decay = room(tokens * (c.rule.decay == Decay::head ? 1 : s.key_size));
        to.log_decay = operands.write(decay);
    }
    if (c.rule.chunk_size > 0) {
        kept = room(s.batch * s.heads * c.rule.chunks);
        to.kept = operands.write(kept);
    }
    const TensorView gradient{outer.data(),
                              ElementType::float32,
                              s.batch,
                              s.heads,
                              s.length,
                              s.value_size,
                              s.heads * s.length * s.value_size,
                              s.length * s.value_size,
                              s.value_size};
    recurrent_backward(input, operands.read(gradient), states, to);
    operands.fetch();
    return {{"gradient of queries", query}, {"gradient of keys", key}, {"gradient of values", value},
            {"gradient of w", write},       {"gradient of g", decay},  {"gradient of m", kept}};
}

void name(const RecurrentCase& c) {
    const RecurrentShape& s = c.shape;
    UNSCOPED_INFO("delta " << c.rule.delta << ", decay " << static_cast<int>(c.rule.decay) << ", chunk "
                           << c.rule.chunk_size << ", decays dropped " << c.rule.decays_dropped << ", own "
                           << c.rule.reads_own_chunk << ", length " << s.length << ", heads " << s.heads << " / "
                           << s.key_heads << ", sizes " << s.key_size << " / " << s.value_size);
}

void check_forward(const RecurrentCase& c) {
    name(c);
    check_emulator(
        [&](Place place) {
            RecurrentFound found(c);
            read_tokens(c, 0, c.shape.length, found, found.pieces.data(), forward_at(place));
            return fields_of(found);
        },
        tolerance_of(c.shape));
}

/// A prompt and single tokens; pieces are those of the whole text, so they are left out.
void check_decoding(const RecurrentCase& c) {
    name(c);
    check_emulator(
        [&](Place place) {
            RecurrentFound found(c);
            const RecurrentCall forward = forward_at(place);
            const std::int64_t prompt = c.shape.length / 2;
            if (prompt > 0) read_tokens(c, 0, prompt, found, nullptr, forward);
            for (std::int64_t i = prompt; i < c.shape.length; ++i) read_tokens(c, i, 1, found, nullptr, forward);
            return fields_of(found);
        },
        tolerance_of(c.shape));
}

void check_backward(const RecurrentCase& c, bool dropped_too = true) {
    name(c);
    check_emulator([&](Place place) { return backward(c, dropped_too, place); }, tolerance_of(c.shape));
}

}  // namespace

TEST_CASE("recurrent attention agrees with the reference on the emulator", "[emulator][recurrent]") {
    for (const RecurrentRule& rule : rules(0)) {
        check_forward({{1, 2, 1, 65, 20, 12}, rule});
        check_decoding({{1, 2, 1, 11, 20, 12}, rule});
    }
    const RecurrentRule rule = rules(0)[2];
    for (const std::int64_t length : {1, 63, 64}) check_forward({{1, 2, 1, length, 20, 12}, rule});
    check_forward({{2, 4, 2, 67, 33, 18}, rule});
    check_forward({{1, 1, 1, 20, 1, 1}, rule});
    // Keys of 65 and of 129 numbers take other kernels than those of 64 and 128.
    check_forward({{1, 2, 1, 20, 64, 65}, rule});
    check_forward({{2, 2, 1, 20, 65, 33}, rule, ElementType::bfloat16});
    check_forward({{1, 2, 2, 20, 128, 17}, rule});
    check_forward({{1, 2, 1, 20, 129, 16}, rule});
    check_forward({{1, 1, 1, 20, 256, 16}, rule, ElementType::bfloat16});
}

TEST_CASE("chunks keep their share on the emulator", "[emulator][recurrent]") {
    for (const RecurrentRule& rule : rules(16)) {
        check_forward({{1, 2, 1, 33, 20, 12}, rule});
        check_decoding({{1, 1, 1, 19, 5, 3}, rule});
    }
    for (const std::int64_t length : {15, 16, 17, 64}) check_forward({{1, 2, 1, length, 20, 12}, rules(16)[10]});
    for (const std::int64_t keys : {65, 129}) check_forward({{1, 2, 1, 18, keys, 12}, rules(16)[11]});
    check_forward({{1, 2, 1, 130, 9, 17}, rules(100)[4]});
}

TEST_CASE("recurrent padding writes nothing and reads 0 on the emulator", "[emulator][recurrent]") {
    for (const std::int64_t chunk : {0, 16}) {
        for (RecurrentRule rule : rules(chunk)) {
            rule.length = {20, 0, 16};
            check_forward({{3, 2, 1, 22, 6, 3}, rule});
            check_backward({{3, 2, 1, 22, 6, 3}, rule});
        }
    }
}

TEST_CASE("recurrent gradients agree with the reference on the emulator", "[emulator][recurrent]") {
    for (const RecurrentRule& rule : rules(0)) check_backward({{1, 2, 1, 65, 20, 12}, rule});
    const RecurrentRule rule = rules(0)[2];
    for (const std::int64_t length : {1, 63, 64}) check_backward({{1, 2, 1, length, 20, 12}, rule});
    check_backward({{2, 4, 2, 70, 33, 18}, rule});
    check_backward({{1, 1, 1, 20, 1, 1}, rule});
    check_backward({{1, 2, 1, 20, 64, 65}, rule});
    check_backward({{2, 2, 1, 20, 65, 33}, rule, ElementType::bfloat16});
    check_backward({{1, 2, 2, 20, 128, 17}, rule});
    check_backward({{1, 2, 1, 20, 129, 16}, rule});
    check_backward({{1, 1, 1, 20, 256, 16}, rule, ElementType::bfloat16});
    // More than one band of pieces.
    check_backward({{1, 1, 1, 530, 4, 3}, rules(0)[1]});
}

TEST_CASE("gradients of chunks agree with the reference on the emulator", "[emulator][recurrent]") {
    for (const RecurrentRule& rule : rules(16)) {
        check_backward({{1, 2, 1, 33, 20, 12}, rule});
        check_backward({{1, 4, 2, 20, 7, 5}, rule}, /*dropped_too=*/false);
    }
    for (const std::int64_t length : {15, 16, 64}) check_backward({{1, 2, 1, length, 20, 12}, rules(16)[10]});
    for (const std::int64_t keys : {65, 129}) check_backward({{1, 2, 1, 18, keys, 12}, rules(16)[11]});
    check_backward({{1, 2, 1, 210, 5, 3}, rules(100)[7]});
    // Bands end within a chunk.
    check_backward({{1, 1, 1, 610, 4, 3}, rules(600)[4]});
}

TEST_CASE("implicit matrices agree with the reference on the emulator", "[emulator][recurrent]") {
    const auto check = [](const RecurrentCase& c, const float* direct) {
        name(c);
        check_emulator(
            [&](Place place) {
                Operands operands(place);
                RecurrentInput input = operands.read_all(c.input());
                input.direct = direct;
                const std::int64_t heads = c.shape.batch * c.shape.heads, length = c.shape.length;
                Numbers dense(static_cast<std::size_t>(heads * length * length), 777.0F);
                ImplicitStatistics found;
                implicit_statistics(input, found, dense.data());
                const auto single = [](const std::vector<double>& x) { return Numbers(x.begin(), x.end()); };
                return Fields{{"matrix", dense},
                              {"entropy", single(found.entropy)},
                              {"mean entropy of rows", single(found.entropy_row_mean)},
                              {"concentration", single(found.concentration)}};
            },
            tolerance_of(c.shape));
    };
    const float direct[] = {0.5F, -2.0F, 0.0F, 1.0F};
    for (const std::int64_t chunk : {0, 16}) {
        for (RecurrentRule rule : rules(chunk)) {
            check({{1, 4, 2, 33, 20, 1}, rule}, chunk == 0 ? direct : nullptr);
            rule.length = {20, 0};
            check({{2, 2, 1, 23, 9, 1}, rule}, nullptr);
        }
        const RecurrentRule rule = rules(chunk).back();
        for (const std::int64_t length : {1, 63, 64, 65}) check({{1, 2, 1, length, 20, 1}, rule}, nullptr);
        for (const std::int64_t keys : {64, 65, 128, 129, 256}) check({{1, 1, 1, 18, keys, 1}, rule}, nullptr);
        check({{1, 2, 1, 18, 33, 1}, rule, ElementType::bfloat16}, nullptr);
    }
}

TEST_CASE("keys that no recurrent kernel has are refused", "[emulator][recurrent]") {
    const ForcedBackend forced(gpu_backends()[0]);
    const RecurrentCase c({1, 1, 1, 3, 257, 2}, rules(0)[0]);
    RecurrentFound found(c);
    CHECK_THROWS_WITH(read_tokens(c, 0, 3, found), Catch::Contains("[recurrent attention forward]") &&
                                                       Catch::Contains("keys of more than 256 numbers"));
}
