// SPDX-License-Identifier: GPL-3.0-or-later
// Attention of bfloat16 on emulated tensor cores, and the emulated instructions by themselves.
#include <bit>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention.h"
#include "kernels/attention_backward.h"
#include "kernels/backend.h"
#include "kernels/gpu/device/tile.h"
#include "kernels/normaliser.h"
#include "kernels/reference/attention.h"
#include "tests/kernels/attention_options.h"
#include "tests/kernels/emulator_case.h"

using namespace headscope::kernels;
using headscope::gpu::Context;
using headscope::gpu::emulated_warp;
using headscope::kernels::testing::attention_at;
using headscope::kernels::testing::attention_options;
using headscope::kernels::testing::AttentionCase;
using headscope::kernels::testing::cases_without_keys;
using headscope::kernels::testing::check_equal;
using headscope::kernels::testing::ForcedBackend;
using headscope::kernels::testing::gpu_backends;
using headscope::kernels::testing::make_case;
using headscope::kernels::testing::make_option_case;
using headscope::kernels::testing::Operands;
using headscope::kernels::testing::Place;
using headscope::kernels::testing::Result;
using headscope::kernels::testing::run;
using headscope::kernels::testing::same_bits;
using headscope::kernels::testing::Shape;

namespace {

constexpr int kRows = 16, kInner = 16, kColumns = 8;

std::uint16_t half_of(float x) {
    return static_cast<std::uint16_t>(headscope::gpu::round_half(x));
}

float single_of(std::uint16_t x) {
    return std::bit_cast<float>(std::uint32_t{x} << 16);
}

enum class Fault : std::uint8_t { none, mixed, unaligned };

/// d += a b of one warp: a [16, 16] and, after it in memory, b, by rows [16, 8], or by columns [8, 16].
struct Multiply {
    static constexpr int kThreads = 32, kWords = (kRows + kInner) * kInner / 2;
    struct Args {
        const std::uint16_t* numbers;
        bool by_rows;
        Fault fault;
        float* d;
    };
    static void run(const Args& args, const Context& c) {
        const auto memory = c.shared<unsigned>(0);
        const int t = c.thread() % 32;
        for (int x = c.thread(); x < kWords; x += kThreads)
            memory[x] = args.numbers[2 * x] | static_cast<unsigned>(args.numbers[2 * x + 1]) << 16;
        c.sync();
        unsigned a[4], b[4];
        c.load_matrices<false>(memory, t % 16 * 8 + t / 16 * 4 + (args.fault == Fault::unaligned ? 1 : 0), a);
        // Rows of b: two matrices of 8 x 8, one above the other; columns: side by side.
        if (args.by_rows)
            c.load_matrices<true>(memory, 128 + t % 16 * 4, b);
        else
            c.load_matrices<false>(memory, 128 + t % 8 * 8 + t / 8 % 2 * 4, b);
        if (args.fault == Fault::mixed && t == 9) (void)c.shuffle_xor(0, 1);
        float d[4];
        for (int x = 0; x < 4; ++x) d[x] = args.d[(t / 4 + x / 2 * 8) * kColumns + t % 4 * 2 + x % 2];
        c.multiply_add(d[0], d[1], d[2], d[3], a, b[0], b[1]);
        for (int x = 0; x < 4; ++x) args.d[(t / 4 + x / 2 * 8) * kColumns + t % 4 * 2 + x % 2] = d[x];
    }
};

std::string multiply(const std::vector<std::uint16_t>& numbers, bool by_rows, Fault fault, std::vector<float>& d) {
    const char* error =
        headscope::gpu::launch<Multiply>(1, 4 * Multiply::kWords, {numbers.data(), by_rows, fault, d.data()}, nullptr);
    return error == nullptr ? "" : error;
}

std::vector<std::uint16_t> some_numbers() {
    std::vector<std::uint16_t> numbers;
    for (int n = 0; n < 2 * Multiply::kWords; ++n)
        numbers.push_back(half_of(static_cast<float>((n * 37 + n * n) % 101 - 50) * 0.043F));
    return numbers;
}

Result run_on(const AttentionCase& c, const std::string& backend, const char* seed, Place place,
              bool statistics = true) {
    const ForcedBackend forced(backend, seed);
    Result result = run(c, attention_at(place), statistics);
    const bool diagonal = traits_of(c.rule.normaliser).diagonal;
    REQUIRE(last_backend() == (diagonal ? backend + " fma" : chosen_kernels("bfloat16")));
    return result;
}

/// All statistics by tensor cores and without, and the plain output; equal bits in another order of threads and for
/// operands in GPU memory.
void check(const AttentionCase& c) {
    INFO(c.name);
    const Result expected = run(c, attention_reference);
    for (const std::string& backend : gpu_backends()) {
        INFO(backend);
        const Result found = run_on(c, backend, "1", Place::processor);
        check_equal(c, found, expected);
        CHECK(same_bits(run_on(c, backend, "2", Place::odd), found));
    }
    const std::string gpu = gpu_backends()[0];
    Result plain = run_on(c, gpu, "3", Place::processor, false);
    CHECK(same_bits(run_on(c, gpu, "4", Place::interleaved, false), plain));
    plain.statistics = expected.statistics;
    check_equal(c, plain, expected);
}

}  // namespace

TEST_CASE("the emulated mma multiplies as a loop does, from either layout of b", "[emulator]") {
    const std::vector<std::uint16_t> numbers = some_numbers();
    emulated_warp() = 32;
    for (const bool by_rows : {true, false}) {
        std::vector<float> found(kRows * kColumns), expected(found.size());
        for (std::size_t n = 0; n < found.size(); ++n) found[n] = expected[n] = static_cast<float>(n) * 0.125F;
        for (std::size_t i = 0; i < kRows; ++i) {
            for (std::size_t j = 0; j < kColumns; ++j) {
                for (std::size_t k = 0; k < kInner; ++k) {
                    const std::size_t b = kRows * kInner + (by_rows ? k * kColumns + j : j * kInner + k);
                    expected[i * kColumns + j] += single_of(numbers[i * kInner + k]) * single_of(numbers[b]);
                }
            }
        }
        REQUIRE(multiply(numbers, by_rows, Fault::none, found).empty());
        CHECK(found == expected);
    }
}

TEST_CASE("faults around the emulated mma are named", "[emulator]") {
    const std::vector<std::uint16_t> numbers = some_numbers();
    std::vector<float> d(kRows * kColumns);
    emulated_warp() = 32;
    CHECK_THAT(multiply(numbers, true, Fault::mixed, d), Catch::Contains("run different instructions"));
    CHECK_THAT(multiply(numbers, true, Fault::unaligned, d), Catch::Contains("unaligned access of 16 bytes"));
    emulated_warp() = 16;
    CHECK_THAT(multiply(numbers, true, Fault::none, d), Catch::Contains("a matrix instruction of a warp of 16"));
    emulated_warp() = 32;
}

TEST_CASE("every option of bfloat16 attention agrees with the reference on tensor cores", "[emulator]") {
    for (const auto& option : attention_options())
        check(make_option_case({1, 2, 1, 65, 65, 65, 65}, option, ElementType::bfloat16));
    // 64 columns of O.
    for (const auto& option : attention_options())
        if (option.first == "soft cap" || option.first == "sparsemax with sink logits")
            check(make_case({1, 2, 1, 65, 65, 20, 20}, option, ElementType::bfloat16));
    for (const AttentionCase& c : cases_without_keys(ElementType::bfloat16)) check(c);
}

TEST_CASE("padding that holds NaN stays out of bfloat16 attention on tensor cores", "[emulator]") {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    AttentionCase c = make_case({1, 2, 1, 65, 65, 20, 20}, attention_options().front(), ElementType::bfloat16);
    c.rule.query_length = {50};
    c.rule.key_begin = {5};
    c.rule.key_length = {60};
    AttentionCase broken = c;
    for (const std::int64_t j : {0, 4, 60, 64}) {
        broken.set('k', 0, 0, j, 3, nan);
        broken.set('v', 0, 0, j, 3, nan);
    }
    for (const std::int64_t i : {50, 64}) broken.set('q', 0, 1, i, 3, nan);
    for (const std::string& backend : gpu_backends())
        for (const bool statistics : {true, false})
            CHECK(same_bits(run_on(c, backend, "1", Place::processor, statistics),
                            run_on(broken, backend, "2", Place::odd, statistics)));
}

TEST_CASE("odd shapes of bfloat16 attention agree with the reference on tensor cores", "[emulator]") {
    const auto plain = attention_options().front();
    const auto half = [&](const Shape& shape) { check(make_case(shape, plain, ElementType::bfloat16)); };
    for (const std::int64_t length : {1, 2, 63, 64, 65}) half({1, 4, 2, length, length, 32, 32});
    half({1, 2, 1, 129, 129, 1, 1});
    half({1, 2, 2, 65, 65, 3, 17});
    for (const auto& [keys, values] : {std::pair{33, 64}, {64, 65}, {128, 129}, {129, 33}, {136, 128}, {256, 256}})
        half({1, 1, 1, 66, 66, keys, values});
    AttentionCase last = make_case({1, 4, 2, 1, 200, 40, 24}, plain, ElementType::bfloat16);
    last.rule.query_offset = 199;
    check(last);
    check(make_case({1, 2, 1, 40, 130, 20, 130}, attention_options()[1], ElementType::bfloat16));
    // The second block of queries of the second text is padding; 24 numbers are copied.
    for (const auto& option : attention_options())
        if (option.first == "padding") check(make_case({2, 2, 1, 65, 65, 24, 24}, option, ElementType::bfloat16));
}

TEST_CASE("bfloat16 outputs of tensor cores are the float32 ones rounded", "[emulator]") {
    const AttentionCase c = make_case({1, 4, 2, 65, 65, 40, 24}, attention_options().front(), ElementType::bfloat16);
    const ForcedBackend forced(gpu_backends()[0]);
    Operands operands(Place::odd);
    const std::int64_t heads = c.shape().heads, queries = c.shape().queries, size = c.shape().value_size;
    const auto count = static_cast<std::size_t>(heads * queries * size);
    std::vector<float> wide(count), shift(static_cast<std::size_t>(heads * queries)), factor(shift.size());
    std::vector<std::uint16_t> narrow(count);
    const auto view = [&](void* data, ElementType type) {
        return MutableView{data, type, heads * queries * size, queries * size, size};
    };
    attention_forward(c.input(), view(wide.data(), ElementType::float32), {shift.data(), factor.data()});
    attention_forward(operands.read_all(c.input()),
                      operands.write(view(narrow.data(), ElementType::bfloat16), 1, heads, queries, size),
                      {operands.write(shift), operands.write(factor)});
    operands.fetch();
    for (std::size_t n = 0; n < count; ++n) REQUIRE(narrow[n] == half_of(wide[n]));
}

TEST_CASE("float32 attention uses no tensor cores, and the names of kernels say which ran", "[emulator]") {
    const AttentionCase single = make_case({1, 1, 1, 8, 8, 8, 8}, attention_options().front());
    for (const std::string& backend : gpu_backends()) {
        const ForcedBackend forced(backend);
        const std::string half = chosen_kernels("bfloat16");
        CHECK((half == backend + " mma" || half == backend + " fma"));
        if (backend.starts_with("emulator")) CHECK(half.ends_with(backend == "emulator" ? " mma" : " fma"));
        run(make_case({1, 1, 1, 8, 8, 8, 8}, attention_options().front(), ElementType::bfloat16), attention);
        CHECK(last_backend() == half);
        run(single, attention);
        CHECK(last_backend() == backend);
        CHECK(chosen_kernels("float32") == backend);
    }
    const ForcedBackend forced("reference");
    CHECK(chosen_kernels("bfloat16") == "reference");
}
