// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Random attention problems and the comparison of a backend with the float64 reference. Tolerances are derived here,
// once, from the inputs' sizes and float32's rounding.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/attention.h"

namespace headscope::kernels::testing {

struct Shape {
    std::int64_t batch = 1, heads = 1, key_heads = 1, queries = 1, keys = 1, key_size = 8, value_size = 8;
};

/// Inputs with their storage, [batch, length, heads, size] in memory as models have them, uniform in [-1, 1).
class AttentionCase {
public:
    AttentionCase(const Shape& shape, std::uint32_t seed, ElementType type = ElementType::float32);

    const Shape& shape() const { return shape_; }
    AttentionInput input() const;
    /// Sets or reads q, k or v; writing rounds to the type.
    void set(char which, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c, float value);
    float get(char which, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const;

    ScoreRule rule;
    StatisticsRequest request;
    std::string name;

private:
    struct Matrix {
        std::int64_t heads, length, size;
        std::vector<float> single;
        std::vector<std::uint16_t> half;
    };
    TensorView view(const Matrix& m) const;
    const Matrix& matrix(char which) const { return which == 'q' ? query_ : which == 'k' ? key_ : value_; }

    Shape shape_;
    ElementType type_;
    Matrix query_, key_, value_;
};

struct Result {
    std::vector<float> output;  ///< [batch, heads, queries, value_size]
    Statistics statistics;
    bool mma = false;  ///< by tensor cores, or their emulation
};

using Operator = std::function<void(const AttentionInput&, OutputView, const StatisticsRequest*, Statistics*)>;

/// Runs with canaries behind each row of the output and fails if one is touched. `with_statistics` false: none.
Result run(const AttentionCase& c, const Operator& op, bool with_statistics = true);

/// Compares every field with the reference; reports with Catch.
void check_equal(const AttentionCase& c, const Result& found, const Result& expected);

/// True if two results agree in every bit.
bool same_bits(const Result& a, const Result& b);

}  // namespace headscope::kernels::testing
