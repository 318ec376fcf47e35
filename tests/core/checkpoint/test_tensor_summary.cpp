// SPDX-License-Identifier: GPL-3.0-or-later
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/tensor_summary.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/hostile.h"
#include "tests/core/checkpoint/pytorch_builder.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;

namespace {

constexpr std::size_t kBins = 16;
constexpr double kInf = std::numeric_limits<double>::infinity();

/// numpy's min, max, mean, std, linalg.norm, histogram and count functions, written plainly.
TensorSummary expected(const std::vector<double>& values) {
    TensorSummary all;
    all.elements = std::ssize(values);
    std::vector<double> finite;
    for (const double value : values) {
        all.nans += std::isnan(value);
        all.positive_infinities += value == kInf;
        all.negative_infinities += value == -kInf;
        all.zeros += value == 0;
        if (std::isfinite(value)) finite.push_back(value);
    }
    all.finite = std::ssize(finite);
    if (finite.empty()) return all;
    all.minimum = *std::min_element(finite.begin(), finite.end());
    all.maximum = *std::max_element(finite.begin(), finite.end());
    const auto n = static_cast<double>(finite.size());
    all.mean = std::accumulate(finite.begin(), finite.end(), 0.0) / n;
    double squares = 0, spread = 0;
    for (const double value : finite) {
        squares += value * value;
        spread += (value - all.mean) * (value - all.mean);
    }
    all.norm = std::sqrt(squares);
    all.deviation = std::sqrt(spread / n);
    return all;
}

/// Sums of n terms in another order differ by less than n roundings of the largest.
void check_same(const TensorSummary& found, const TensorSummary& wanted) {
    CHECK(found.elements == wanted.elements);
    CHECK(found.finite == wanted.finite);
    CHECK(found.zeros == wanted.zeros);
    CHECK(found.nans == wanted.nans);
    CHECK(found.positive_infinities == wanted.positive_infinities);
    CHECK(found.negative_infinities == wanted.negative_infinities);
    if (wanted.finite == 0) {
        CHECK(std::isnan(found.mean));
        CHECK(found.counts.empty());
        return;
    }
    CHECK(found.minimum == wanted.minimum);
    CHECK(found.maximum == wanted.maximum);
    const double size = std::max(std::abs(wanted.minimum), std::abs(wanted.maximum));
    const double rounding = static_cast<double>(wanted.finite) * std::numeric_limits<double>::epsilon();
    CHECK(found.mean == Approx(wanted.mean).margin(rounding * size));
    CHECK(found.deviation == Approx(wanted.deviation).epsilon(4 * rounding).margin(rounding * size));
    CHECK(found.norm == Approx(wanted.norm).epsilon(4 * rounding));
    REQUIRE(found.edges.size() == found.counts.size() + 1);
    CHECK(found.edges.front() == wanted.minimum);
    CHECK(found.edges.back() == wanted.maximum);
    CHECK(std::accumulate(found.counts.begin(), found.counts.end(), std::int64_t{0}) == wanted.finite);
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
    std::string bytes;
    for (const T& value : values) bytes += little_endian(value);
    return bytes;
}

TensorSummary summary_of(const std::string& type, std::size_t count, const std::string& data) {
    const TemporaryFolder folder;
    const std::string offsets = "[0," + std::to_string(data.size()) + "]";
    write_file(folder / "a.safetensors",
               safetensors_bytes("{" + entry("t", type, "[" + std::to_string(count) + "]", offsets) + "}", data));
    return summarise_tensor(*Checkpoint::open(folder / "a.safetensors"), "t", kBins, {}, {});
}

std::vector<double> normal_numbers(std::size_t count) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal(0.25, 2.0);
    std::vector<double> values(count);
    for (double& value : values) value = normal(random);
    values[count / 2] = 0;
    values[count / 3] = -0.0;
    return values;
}

template <class T>
void check_type(const std::string& type, const std::vector<double>& values) {
    std::vector<T> stored;
    std::vector<double> rounded;
    for (const double value : values) {
        stored.push_back(
            static_cast<T>(static_cast<std::conditional_t<std::is_arithmetic_v<T>, double, float>>(value)));
        if constexpr (std::is_arithmetic_v<T>)
            rounded.push_back(static_cast<double>(stored.back()));
        else
            rounded.push_back(static_cast<double>(static_cast<float>(stored.back())));
    }
    INFO(type);
    check_same(summary_of(type, values.size(), bytes_of(stored)), expected(rounded));
}

}  // namespace

TEST_CASE("A tensor's numbers are summed up in every type of weights", "[checkpoint][summary]") {
    auto values = normal_numbers(4099);
    for (const double odd : {kInf, -kInf, kInf, std::nan("")}) values.push_back(odd);
    check_type<double>("F64", values);
    check_type<float>("F32", values);
    check_type<c10::BFloat16>("BF16", values);
    check_type<c10::Half>("F16", values);
}

TEST_CASE("Integers and booleans are summed up as numbers", "[checkpoint][summary]") {
    std::vector<double> values;
    for (int i = 0; i < 5001; ++i) values.push_back((i * 37) % 200 - 100);
    check_type<std::int8_t>("I8", values);
    check_type<std::int16_t>("I16", values);
    check_type<std::int32_t>("I32", values);
    check_type<std::int64_t>("I64", values);
    for (double& value : values) value += 100;
    check_type<std::uint8_t>("U8", values);
    check_type<std::uint16_t>("U16", values);
    const auto truth = summary_of("BOOL", 5, std::string("\1\0\1\1\0", 5));
    CHECK(truth.zeros == 2);
    CHECK(truth.mean == Approx(0.6));
}

TEST_CASE("Histogram bins hold what lies between their edges", "[checkpoint][summary]") {
    std::vector<float> values;
    for (int i = 0; i <= 160; ++i) values.push_back(static_cast<float>(i) / 10 - 8);
    const auto summary = summary_of("F32", values.size(), bytes_of(values));
    REQUIRE(summary.counts.size() == kBins);
    for (std::size_t b = 0; b + 1 < kBins; ++b) {
        // Ten tenths a bin; one on an edge may fall to either side, for 0.1 is no binary fraction.
        CHECK(summary.counts[b] >= 9);
        CHECK(summary.counts[b] <= 11);
        CHECK(summary.edges[b + 1] - summary.edges[b] == Approx(1));
    }
    const auto equal = summary_of("F32", 3, bytes_of<float>({2.5F, 2.5F, 2.5F}));
    CHECK(equal.counts == std::vector<std::int64_t>{3});
    CHECK(equal.edges == std::vector<double>{2.5, 2.5});
    CHECK(equal.deviation == 0);
    const auto widest = summary_of("F64", 2, bytes_of<double>({-1.7e308, 1.7e308}));
    CHECK(widest.counts.front() == 1);
    CHECK(widest.counts.back() == 1);
}

TEST_CASE("A tensor without numbers, or with nothing but NaN, has no mean", "[checkpoint][summary]") {
    check_same(summary_of("F32", 0, {}), expected({}));
    check_same(summary_of("F32", 2, bytes_of<float>({NAN, NAN})), expected({NAN, NAN}));
}

TEST_CASE("A tensor larger than a piece is read in several, with progress, and can be stopped",
          "[checkpoint][summary]") {
    const TemporaryFolder folder;
    const auto values = normal_numbers((9U << 20U) / 4 + 3);
    std::vector<float> stored(values.begin(), values.end());
    const std::string offsets = "[0," + std::to_string(stored.size() * 4) + "]";
    write_file(folder / "a.safetensors",
               safetensors_bytes("{" + entry("t", "F32", "[" + std::to_string(stored.size()) + "]", offsets) + "}",
                                 bytes_of(stored)));
    const auto file = Checkpoint::open(folder / "a.safetensors");
    std::vector<double> told;
    const auto summary = summarise_tensor(*file, "t", kBins, [&](double share) { told.push_back(share); }, {});
    check_same(summary, expected({stored.begin(), stored.end()}));
    REQUIRE(told.size() > 100);
    CHECK(std::is_sorted(told.begin(), told.end()));
    CHECK(told.back() > 0.99);
    CHECK(told.back() <= 1);
    Cancellation stop;
    const auto in_the_middle = [&](double share) {
        if (share > 0.3) stop.request();
    };
    CHECK_THROWS_AS(summarise_tensor(*file, "t", kBins, in_the_middle, stop), Stopped);
}

TEST_CASE("Views of PyTorch files are summed up by their own elements", "[checkpoint][summary]") {
    const TemporaryFolder folder;
    // A storage of 1501 x 1009 numbers (6 MB), and in it: its transpose, every second column, a row that repeats.
    constexpr std::int64_t rows = 1501, columns = 1009;
    std::vector<float> storage;
    for (const double value : normal_numbers(rows * columns)) storage.push_back(static_cast<float>(value));
    PickleText pickle;
    pickle.raw("}(");
    const auto add = [&](const char* name, std::int64_t offset, const std::vector<std::int64_t>& sizes,
                         const std::vector<std::int64_t>& strides) {
        pickle.text(name).tensor("FloatStorage", "0", rows * columns, offset, sizes, strides);
    };
    add("transposed", 0, {columns, rows}, {1, columns});
    add("halved", 1, {rows, columns / 2}, {columns, 2});
    add("repeated", 5, {3, columns}, {0, 1});
    pickle.raw("u");
    write_file(folder / "a.pt", zip_parts(pytorch_entries(pickle.end(), bytes_of(storage))).bytes());
    const auto file = Checkpoint::open(folder / "a.pt");
    const auto at = [&](std::int64_t i) { return static_cast<double>(storage[static_cast<std::size_t>(i)]); };
    std::vector<double> halved, repeated;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns / 2; ++c) halved.push_back(at(1 + r * columns + 2 * c));
    for (int r = 0; r < 3; ++r)
        for (std::int64_t c = 0; c < columns; ++c) repeated.push_back(at(5 + c));
    const auto summary = [&](const char* name) { return summarise_tensor(*file, name, kBins, {}, {}); };
    check_same(summary("transposed"), expected({storage.begin(), storage.end()}));
    check_same(summary("halved"), expected(halved));
    check_same(summary("repeated"), expected(repeated));
}

TEST_CASE("What has no order, or is not there, is refused", "[checkpoint][summary]") {
    CHECK_THROWS_MATCHES(summary_of("C64", 1, std::string(8, '\0')), Error, IsError(ErrorCode::unsupported));
    const TemporaryFolder folder;
    write_file(folder / "a.safetensors", tiny_safetensors("t"));
    CHECK_THROWS_MATCHES(summarise_tensor(*Checkpoint::open(folder / "a.safetensors"), "u", kBins, {}, {}), Error,
                         IsError(ErrorCode::mismatch));
}
