// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernels/attention_case.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/backend.h"
#include "kernels/normaliser.h"
#include "kernels/score_pairs.h"

namespace headscope::kernels::testing {
namespace {

constexpr float kCanary = 4321.0F;
constexpr double kEpsilon = 0x1p-24;  // half a unit in the last place of a float32

std::uint16_t to_bfloat16(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float from_bfloat16(std::uint16_t x) {
    return std::bit_cast<float>(std::uint32_t{x} << 16);
}

/// Bounds of rounding for one case.
struct Tolerance {
    double score = 0.0;    ///< of a score
    double weight = 0.0;   ///< of a weight or of a sum of weights, relative to 1
    double largest = 0.0;  ///< the largest |score| bound
};

/// How much larger than a score's relative error that of a Taylor weight can be: what a denominator loses where its
/// terms cancel, once in the weight's own term and once in the denominator.
double taylor_amplification(const AttentionCase& c) {
    const Shape& s = c.shape();
    if (!traits_of(c.rule.normaliser).is_signed()) return 2.0;
    double worst = 1.0;
    for (std::int64_t b = 0; b < s.batch; ++b) {
        const SequenceBounds bounds = sequence_bounds(c.rule, b, s.queries, s.keys);
        for (std::int64_t h = 0; h < s.heads; ++h) {
            for (std::int64_t i = 0; i < s.queries; ++i) {
                double sum = 0.0, size = 0.0, number = 0.0;
                for (std::int64_t j = 0; j < s.keys; ++j) {
                    if (!allowed(c.rule, bounds, b, h, s.heads, i, j)) continue;
                    double first = 0.0, second = 0.0;
                    for (std::int64_t x = 0; x < s.key_size; ++x) {
                        const double product = c.rule.scale * double{c.get('q', b, h, i, x)} *
                                               c.get('k', b, h / (s.heads / s.key_heads), j, x);
                        first += product;
                        second += 0.5 * product * product;
                    }
                    if (!traits_of(c.rule.normaliser).diagonal) second = 0.5 * first * first;
                    const bool apart = traits_of(c.rule.normaliser).per_order;
                    sum += apart ? first : 1.0 + first + second;
                    size += std::abs(first) + (apart ? 0.0 : 1.0 + second);
                    number += 1.0;
                }
                if (number > 0.0) worst = std::max(worst, (size + number) / std::abs(sum));
            }
        }
    }
    REQUIRE(worst < 1e3);  // a harder case would check nothing
    return worst * (1.0 + worst);
}

/// Tensor cores take a weight as two bfloat16 numbers: 2^-9 of it remains, and 2^-9 of that. Values are below 1.
double split_error(const AttentionCase& c) {
    const NormaliserTraits& traits = traits_of(c.rule.normaliser);
    if (traits.is_signed()) return 0x1p-18 * taylor_amplification(c);
    return 0x1p-18 * (traits.takes_sinks_and_blocks() ? 1.0 : static_cast<double>(c.shape().keys));
}

Tolerance tolerance_of(const AttentionCase& c) {
    const Shape& s = c.shape();
    double largest_q = 0.0, largest_k = 0.0;
    for (std::int64_t b = 0; b < s.batch; ++b) {
        for (std::int64_t h = 0; h < s.heads; ++h) {
            for (std::int64_t i = 0; i < s.queries; ++i) {
                double norm = 0.0;
                for (std::int64_t x = 0; x < s.key_size; ++x) norm += std::pow(double{c.get('q', b, h, i, x)}, 2);
                largest_q = std::max(largest_q, std::sqrt(norm));
            }
        }
        for (std::int64_t h = 0; h < s.key_heads; ++h) {
            for (std::int64_t j = 0; j < s.keys; ++j) {
                double norm = 0.0;
                for (std::int64_t x = 0; x < s.key_size; ++x) norm += std::pow(double{c.get('k', b, h, j, x)}, 2);
                largest_k = std::max(largest_k, std::sqrt(norm));
            }
        }
    }
    Tolerance t;
    t.largest = std::abs(c.rule.scale) * largest_q * largest_k;  // Cauchy and Schwarz: also of the sum of magnitudes
    for (const float bias : c.rule.distance_bias) t.largest = std::max(t.largest, 0.0) + std::abs(bias) / 4.0;
    for (const float slope : c.rule.slopes) t.largest += std::abs(slope) * static_cast<double>(s.keys + s.queries);
    // A dot product of n terms rounds n times, in random directions; a handful of roundings come on top.
    t.score = (4.0 * std::sqrt(static_cast<double>(s.key_size)) + 8.0) * kEpsilon * (t.largest + 1.0);
    // exp turns a score's error into a relative one, numerator and denominator; then sums of up to `keys` terms.
    t.weight = 2.0 * t.score + (16.0 + std::sqrt(static_cast<double>(s.keys))) * kEpsilon;
    if (is_taylor(c.rule.normaliser)) t.weight *= taylor_amplification(c);
    return t;
}

template <typename Value>
void compare(const std::string& field, const std::vector<Value>& found, const std::vector<Value>& expected,
             double tolerance) {
    INFO(field << ", tolerance " << tolerance);
    REQUIRE(found.size() == expected.size());
    for (std::size_t n = 0; n < found.size(); ++n) {
        const double a = static_cast<double>(found[n]), e = static_cast<double>(expected[n]);
        const bool agree = std::isnan(e)   ? std::isnan(a)
                           : std::isinf(e) ? a == e
                                           : std::abs(a - e) <= tolerance * std::max(1.0, std::abs(e));
        if (agree) continue;
        INFO("element " << n << ": found " << a << ", expected " << e);
        REQUIRE(agree);
    }
}

/// Counts may differ by scores that rounding takes over an edge, and by no others.
void compare_counts(const AttentionCase& c, const Result& found, const Result& expected, double score_tolerance) {
    const Statistics &a = found.statistics, &e = expected.statistics;
    REQUIRE(a.histogram.size() == e.histogram.size());
    const Shape& s = c.shape();
    std::vector<float> row(static_cast<std::size_t>(s.keys));
    for (std::int64_t site = 0; site < s.batch * s.heads; ++site) {
        std::vector<double> sampled, all;
        for (std::int64_t i = 0; i < s.queries; ++i) {
            attention_scores(c.input(), site / s.heads, site % s.heads, i, i + 1, 0, s.keys, row.data());
            const std::int64_t step = std::max<std::int64_t>(e.histogram_row_step, 1);
            for (const float score : row) {
                if (!std::isfinite(score)) continue;
                all.push_back(std::abs(double{score}));
                if (i % step == step - 1) sampled.push_back(double{score});
            }
        }
        const auto near = [&](const std::vector<double>& scores, double edge) {
            const double reach = score_tolerance * std::max(1.0, std::abs(edge));
            return std::count_if(scores.begin(), scores.end(), [&](double x) { return std::abs(x - edge) <= reach; });
        };
        std::int64_t difference = 0;
        for (std::size_t bin = 0; bin < kHistogramBins && !e.histogram.empty(); ++bin) {
            const auto at = static_cast<std::size_t>(site) * kHistogramBins + bin;
            difference += static_cast<std::int64_t>(a.histogram[at]) - static_cast<std::int64_t>(e.histogram[at]);
            if (difference == 0) continue;
            INFO("head " << site << ", histogram up to bin " << bin << " differs by " << difference);
            REQUIRE(bin + 1 < kHistogramBins);
            REQUIRE(std::abs(difference) <= near(sampled, histogram_edges()[bin + 1]));
        }
        for (std::size_t k = 0; k < 3; ++k) {
            const auto at = static_cast<std::size_t>(site) * 3 + k;
            const auto off =
                static_cast<std::int64_t>(a.score_above[at]) - static_cast<std::int64_t>(e.score_above[at]);
            INFO("head " << site << ", scores above 10^" << k + 1);
            REQUIRE(std::abs(off) <= near(all, std::pow(10.0, static_cast<double>(k) + 1.0)));
        }
    }
}

}  // namespace

AttentionCase::AttentionCase(const Shape& shape, std::uint32_t seed, ElementType type)
    : shape_(shape),
      type_(type),
      query_{shape.heads, shape.queries, shape.key_size, {}, {}},
      key_{shape.key_heads, shape.keys, shape.key_size, {}, {}},
      value_{shape.key_heads, shape.keys, shape.value_size, {}, {}} {
    std::mt19937 random(seed);
    for (Matrix* m : {&query_, &key_, &value_}) {
        const auto size = static_cast<std::size_t>(shape.batch * m->heads * m->length * m->size);
        for (std::size_t n = 0; n < size; ++n) {
            const float x = static_cast<float>(random() >> 8) * 0x1p-23F - 1.0F;
            if (type == ElementType::float32)
                m->single.push_back(x);
            else
                m->half.push_back(to_bfloat16(x));
        }
    }
    rule.scale = 1.0 / std::sqrt(static_cast<double>(shape.key_size));
}

TensorView AttentionCase::view(const Matrix& m) const {
    const void* data = type_ == ElementType::float32 ? static_cast<const void*>(m.single.data()) : m.half.data();
    return {data,   type_,           shape_.batch, m.heads, m.length, m.size, m.length * m.heads * m.size,
            m.size, m.heads * m.size};
}

AttentionInput AttentionCase::input() const {
    return {view(query_), view(key_), view(value_), &rule, nullptr};
}

void AttentionCase::set(char which, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c, float value) {
    auto& m = const_cast<Matrix&>(matrix(which));
    const auto at = static_cast<std::size_t>(((b * m.length + i) * m.heads + h) * m.size + c);
    if (type_ == ElementType::float32)
        m.single[at] = value;
    else
        m.half[at] = to_bfloat16(value);
}

float AttentionCase::get(char which, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const {
    const Matrix& m = matrix(which);
    const auto at = static_cast<std::size_t>(((b * m.length + i) * m.heads + h) * m.size + c);
    return type_ == ElementType::float32 ? m.single[at] : from_bfloat16(m.half[at]);
}

Result run(const AttentionCase& c, const Operator& op, bool with_statistics) {
    const Shape& s = c.shape();
    constexpr std::int64_t gap = 3;
    const std::int64_t row = s.value_size + gap, head = s.queries * row, batch = s.heads * head;
    std::vector<float> buffer(static_cast<std::size_t>(gap + s.batch * batch), kCanary);
    Result result;
    op(c.input(), {buffer.data() + gap, batch, head, row}, with_statistics ? &c.request : nullptr,
       with_statistics ? &result.statistics : nullptr);
    result.mma = last_backend().ends_with(" mma");
    for (std::int64_t n = 0; n < static_cast<std::int64_t>(buffer.size()); ++n) {
        const bool canary = n < gap || (n - gap) % row >= s.value_size;
        const float x = buffer[static_cast<std::size_t>(n)];
        if (!canary)
            result.output.push_back(x);
        else if (x != kCanary)
            FAIL("a canary at " << n << " was overwritten");
    }
    return result;
}

void check_equal(const AttentionCase& c, const Result& found, const Result& expected) {
    const Tolerance t = tolerance_of(c);
    const Statistics &a = found.statistics, &e = expected.statistics;
    const double keys = static_cast<double>(c.shape().keys), bits = 1.0 + std::log(keys);
    INFO("case " << c.name);
    compare("output", found.output, expected.output, t.weight + (found.mma ? split_error(c) : 0.0));
    if (e.heads == 0) return;
    REQUIRE(a.batch == e.batch);
    REQUIRE(a.heads == e.heads);
    REQUIRE(a.queries == e.queries);
    REQUIRE(a.keys == e.keys);
    REQUIRE(a.histogram_row_step == e.histogram_row_step);
    REQUIRE(a.thumbnail_rows == e.thumbnail_rows);
    REQUIRE(a.thumbnail_columns == e.thumbnail_columns);
    compare("entropy", a.entropy, e.entropy, t.weight * bits * static_cast<double>(c.shape().queries));
    compare("entropy_row_mean", a.entropy_row_mean, e.entropy_row_mean, t.weight * bits);
    compare("concentration", a.concentration, e.concentration, t.weight);
    compare("sink", a.sink, e.sink, t.weight);
    compare("local_focus", a.local_focus, e.local_focus, t.weight);
    compare("head_diversity", a.head_diversity, e.head_diversity, t.weight);
    compare("density", a.density, e.density, t.weight);
    compare("sparsity", a.sparsity, e.sparsity, t.weight);
    compare("zero_fraction", a.zero_fraction, e.zero_fraction, kEpsilon);
    compare("mean_distance", a.mean_distance, e.mean_distance, t.weight * keys);
    compare("duplicate", a.duplicate, e.duplicate, t.weight);
    compare("induction", a.induction, e.induction, t.weight);
    compare("virtual_sink", a.virtual_sink, e.virtual_sink, t.weight);
    compare("column_mass", a.column_mass, e.column_mass, t.weight);
    compare("score_minimum", a.score_minimum, e.score_minimum, t.score);
    compare("score_maximum", a.score_maximum, e.score_maximum, t.score);
    compare("score_mean", a.score_mean, e.score_mean, t.score);
    compare("score_variance", a.score_variance, e.score_variance, 4.0 * t.score);
    compare("thumbnail_mean", a.thumbnail_mean, e.thumbnail_mean, t.weight);
    compare("thumbnail_maximum", a.thumbnail_maximum, e.thumbnail_maximum, t.weight);
    compare("row_constant", a.row_constant, e.row_constant, t.weight);
    compare("query_entropy", a.query_entropy, e.query_entropy, t.weight * bits);
    compare("query_square_sum", a.query_square_sum, e.query_square_sum, 2.0 * t.weight);
    compare("query_sink", a.query_sink, e.query_sink, t.weight);
    compare("query_mean_distance", a.query_mean_distance, e.query_mean_distance, t.weight * keys);
    compare_counts(c, found, expected, t.score);
}

namespace {

template <typename Value>
bool same(const std::vector<Value>& a, const std::vector<Value>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0);
}

}  // namespace

bool same_bits(const Result& x, const Result& y) {
    const Statistics &a = x.statistics, &b = y.statistics;
    return same(x.output, y.output) && same(a.entropy, b.entropy) && same(a.entropy_row_mean, b.entropy_row_mean) &&
           same(a.concentration, b.concentration) && same(a.sink, b.sink) && same(a.local_focus, b.local_focus) &&
           same(a.head_diversity, b.head_diversity) && same(a.density, b.density) && same(a.sparsity, b.sparsity) &&
           same(a.zero_fraction, b.zero_fraction) && same(a.mean_distance, b.mean_distance) &&
           same(a.duplicate, b.duplicate) && same(a.induction, b.induction) && same(a.virtual_sink, b.virtual_sink) &&
           same(a.column_mass, b.column_mass) && same(a.histogram, b.histogram) &&
           same(a.score_minimum, b.score_minimum) && same(a.score_maximum, b.score_maximum) &&
           same(a.score_mean, b.score_mean) && same(a.score_variance, b.score_variance) &&
           same(a.score_above, b.score_above) && same(a.thumbnail_mean, b.thumbnail_mean) &&
           same(a.thumbnail_maximum, b.thumbnail_maximum) && same(a.row_constant, b.row_constant) &&
           same(a.query_entropy, b.query_entropy) && same(a.query_square_sum, b.query_square_sum) &&
           same(a.query_sink, b.query_sink) && same(a.query_mean_distance, b.query_mean_distance);
}

}  // namespace headscope::kernels::testing
