// SPDX-License-Identifier: GPL-3.0-or-later
// GPU kernels on the emulator against the float64 reference, with warps of 32 and 64 threads.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention.h"
#include "kernels/attention_backward.h"
#include "kernels/backend.h"
#include "kernels/reference/attention.h"
#include "tests/kernels/attention_options.h"
#include "tests/kernels/emulator_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::attention_at;
using headscope::kernels::testing::attention_options;
using headscope::kernels::testing::AttentionCase;
using headscope::kernels::testing::cases_without_keys;
using headscope::kernels::testing::check_equal;
using headscope::kernels::testing::ForcedBackend;
using headscope::kernels::testing::gpu_backends;
using headscope::kernels::testing::make_case;
using headscope::kernels::testing::make_option_case;
using headscope::kernels::testing::Place;
using headscope::kernels::testing::Result;
using headscope::kernels::testing::run;
using headscope::kernels::testing::same_bits;
using headscope::kernels::testing::Shape;

namespace {

Result run_on(const AttentionCase& c, const std::string& backend, const char* seed, Place place,
              bool statistics = true) {
    const ForcedBackend forced(backend, seed);
    Result result = run(c, attention_at(place), statistics);
    REQUIRE(last_backend() == backend);
    return result;
}

/// The output without statistics.
void check_plain(const AttentionCase& c, const Result& expected) {
    const auto [gpu, again] = gpu_backends();
    Result plain = run_on(c, gpu, "3", Place::processor, false);
    CHECK(same_bits(run_on(c, again, "4", Place::interleaved, false), plain));
    plain.statistics = expected.statistics;
    check_equal(c, plain, expected);
}

/// All statistics, and the plain output, each on both warps with equal bits for another order of threads and for
/// operands in GPU memory.
void check(const AttentionCase& c) {
    INFO(c.name);
    const auto [gpu, again] = gpu_backends();
    const Result expected = run(c, attention_reference), found = run_on(c, gpu, "1", Place::processor);
    check_equal(c, found, expected);
    CHECK(same_bits(run_on(c, again, "2", Place::odd), found));
    check_plain(c, expected);
}

}  // namespace

TEST_CASE("every option of attention agrees with the reference on the emulator", "[emulator]") {
    // Several slices of a key; more than 64 columns of O, which are a launch of their own with statistics of weights.
    for (const auto& option : attention_options()) check(make_option_case({1, 2, 1, 65, 65, 65, 65}, option));
}

TEST_CASE("odd lengths, heads and sizes agree with the reference on the emulator", "[emulator]") {
    const auto plain = attention_options().front();
    for (const std::int64_t length : {1, 2, 63, 64}) check(make_case({1, 3, 1, length, length, 32, 32}, plain));
    check(make_case({1, 2, 1, 129, 129, 1, 1}, plain));
    check(make_case({1, 2, 2, 65, 65, 3, 17}, plain));
    for (const auto& [keys, values] : {std::pair{33, 64}, {64, 65}, {128, 129}, {129, 33}, {256, 256}})
        check(make_case({1, 1, 1, 66, 66, keys, values}, plain));
    check(make_case({1, 2, 1, 40, 130, 20, 130}, attention_options()[1]));
}

TEST_CASE("rows that see no key agree with the reference on the emulator", "[emulator]") {
    for (const AttentionCase& c : cases_without_keys()) check(c);
}

TEST_CASE("rows that are searched in several launches agree with the reference on the emulator", "[emulator]") {
    constexpr std::int64_t kKeys = 50'000;  // 64 rows of scores take more than half of the 24 MB of a launch
    AttentionCase c = make_case({1, 2, 2, 1, kKeys, 1, 1}, attention_options().front());
    c.rule.normaliser = Normaliser::sparsemax;
    c.rule.query_offset = kKeys - 1;
    check_equal(c, run_on(c, gpu_backends()[0], "1", Place::interleaved, false), run(c, attention_reference, false));
}

TEST_CASE("the emulator's attention ends when it is cancelled", "[emulator]") {
    const ForcedBackend forced(gpu_backends()[0]);
    AttentionCase c = make_case({1, 1, 1, 8, 8, 8, 8}, attention_options().front());
    const std::atomic<bool> cancel{true};
    AttentionInput input = c.input();
    input.cancel = &cancel;
    std::vector<float> output(8 * 8);
    CHECK_THROWS_AS(attention(input, {output.data(), 64, 64, 8}), Cancelled);
}
