// SPDX-License-Identifier: GPL-3.0-or-later
// The reference attention against numpy, and against what is known without computing.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/backend.h"
#include "kernels/reference/attention.h"
#include "kernels/score_pairs.h"
#include "tests/kernels/golden_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::fields_of;
using headscope::kernels::testing::Generator;
using headscope::kernels::testing::GoldenCase;
using headscope::kernels::testing::load_golden;

namespace {

constexpr float kCanary = 12345.0F;
// Both sides compute in float64; scores reach some thousands, and exp turns their absolute error into a relative one.
constexpr double kTolerance64 = 1e-11;
// Fields that are kept in float32: half a unit of rounding on our side, nine printed digits on numpy's.
constexpr double kTolerance32 = 1e-7;

bool is_single(const std::string& name) {
    return name == "output" || name == "column_mass" || name == "row_constant" || name.rfind("thumbnail", 0) == 0 ||
           name.rfind("query", 0) == 0;
}

bool close(double found, double expected, double tolerance) {
    if (std::isnan(expected)) return std::isnan(found);
    if (std::isinf(expected)) return found == expected;
    return std::abs(found - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

/// Runs a case with an output whose rows are followed by canaries; returns every field with "output" beside them.
std::map<std::string, std::vector<double>> run(const GoldenCase& c) {
    const std::int64_t row = c.value_size + 1;
    const std::int64_t head = c.query.length * row, batch = c.query.heads * head;
    std::vector<float> buffer(static_cast<std::size_t>(c.query.batch * batch), kCanary);
    Statistics statistics;
    attention_reference(c.input(), {buffer.data(), batch, head, row}, &c.request, &statistics);
    auto fields = fields_of(statistics);
    for (std::size_t n = 0; n < buffer.size(); ++n) {
        if ((n + 1) % static_cast<std::size_t>(row) == 0)
            REQUIRE(buffer[n] == kCanary);
        else
            fields["output"].push_back(buffer[n]);
    }
    return fields;
}

}  // namespace

TEST_CASE("the reference attention gives what numpy found, pair by pair", "[reference][golden]") {
    const auto golden = load_golden();
    REQUIRE(golden.cases.size() == 29);
    for (const GoldenCase& c : golden.cases) {
        INFO("case: " << c.name);
        const auto found = run(c);
        for (const auto& [name, expected] : c.expected) {
            INFO("field: " << name);
            const std::vector<double>& values = found.at(name);
            REQUIRE(values.size() == expected.size());
            for (std::size_t n = 0; n < expected.size(); ++n) {
                INFO("element " << n << ": found " << values[n] << ", expected " << expected[n]);
                REQUIRE(close(values[n], expected[n], is_single(name) ? kTolerance32 : kTolerance64));
            }
        }
    }
}

TEST_CASE("what was not asked for is an empty vector, and output without statistics is the same", "[reference]") {
    auto golden = load_golden();
    GoldenCase& c = golden.cases.at(1);
    const auto everything = run(c);
    c.request.histogram = c.request.head_diversity = c.request.column_mass = c.request.thumbnails = false;
    c.request.per_query = false;
    c.request.local_distances.clear();
    const auto little = run(c);
    for (const char* name : {"histogram", "head_diversity", "column_mass", "thumbnail_mean", "thumbnail_maximum",
                             "local_focus", "query_entropy", "query_sink"}) {
        INFO(name);
        CHECK(little.at(name).empty());
        CHECK_FALSE(everything.at(name).empty());
    }
    CHECK(little.at("entropy") == everything.at("entropy"));
    std::vector<float> output(everything.at("output").size());
    const std::int64_t head = c.query.length * c.value_size;
    attention_reference(c.input(), {output.data(), c.query.heads * head, head, c.value_size}, nullptr, nullptr);
    CHECK(std::equal(output.begin(), output.end(), everything.at("output").begin()));
}

TEST_CASE("equal scores give the uniform matrix, whose every measure is known", "[reference]") {
    constexpr std::int64_t length = 7;
    const std::vector<float> zeros(length * 2, 0.0F);
    const TensorView view{zeros.data(), ElementType::float32, 1, 1, length, 2, length * 2, length * 2, 2};
    const ScoreRule rule;
    StatisticsRequest request;
    request.tokens.assign(length, 5);
    Statistics s;
    attention_reference({view, view, view, &rule, nullptr}, {}, &request, &s);
    double entropy = 0.0, square = 0.0, harmonic = 0.0, others = 0.0;
    for (int i = 1; i <= length; ++i) {
        entropy += std::log(i);
        square += 1.0 / i;
        harmonic += 1.0 / i / length;
        others += (i - 1.0) / i / length;
    }
    CHECK(s.entropy[0] == Approx(entropy).epsilon(1e-14));
    CHECK(s.concentration[0] == Approx(std::sqrt(square)).epsilon(1e-14));
    CHECK(s.sink[0] == Approx(harmonic).epsilon(1e-14));
    CHECK(s.density[0] == Approx(others).epsilon(1e-14));
    CHECK(std::abs(s.sparsity[0]) < 1e-15);
    CHECK(s.duplicate[0] == Approx(others).epsilon(1e-14));
    CHECK(s.induction[0] == Approx(others).epsilon(1e-14));
    CHECK(s.mean_distance[0] == Approx((length - 1) / 4.0).epsilon(1e-14));
    CHECK(s.head_diversity[0] == 0.0);
    CHECK(s.zero_fraction[0] == 0.0);
    CHECK(std::isnan(s.virtual_sink[0]));
    CHECK(std::accumulate(s.histogram.begin(), s.histogram.end(), std::uint64_t{0}) == length * (length + 1) / 2);
}

TEST_CASE("a sink logit takes its share and the row sums to the rest", "[reference]") {
    const auto golden = load_golden();
    const GoldenCase& c = golden.cases.at(6);
    REQUIRE_FALSE(c.rule.sink_logits.empty());
    Statistics s;
    attention_reference(c.input(), {}, &c.request, &s);
    for (std::size_t h = 0; h < 2; ++h) {
        CHECK(s.virtual_sink[h] > 0.01);
        CHECK(s.sparsity[h] == Approx(s.virtual_sink[h]).epsilon(1e-12));
    }
}

TEST_CASE("A cancelled call of the reference throws Cancelled", "[reference]") {
    const auto golden = load_golden();
    AttentionInput input = golden.cases.at(1).input();
    const std::atomic<bool> cancel{true};
    input.cancel = &cancel;
    CHECK_THROWS_AS(attention_reference(input, {}, nullptr, nullptr), Cancelled);
}
