// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The cases of tests/oracle/generate/data/attention_numpy.json (made by attention_numpy.py): a score rule, a
// request, inputs drawn from the generator that both sides share, and what numpy found.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/attention.h"

namespace headscope::kernels::testing {

struct GoldenCase {
    GoldenCase() = default;
    GoldenCase(GoldenCase&&) = default;  // not copied: the views point into storage
    GoldenCase& operator=(GoldenCase&&) = default;
    std::string name;
    std::int64_t value_size = 0;
    ScoreRule rule;
    StatisticsRequest request;
    TensorView query, key, value;  ///< into `storage`
    std::vector<std::vector<std::uint8_t>> storage;
    std::map<std::string, std::vector<double>> expected;  ///< by name of the field of Statistics, and "output"

    AttentionInput input() const { return {query, key, value, &rule, nullptr}; }
};

struct GoldenBuckets {
    bool bidirectional = false;
    std::int64_t buckets = 0, max_distance = 0, reach = 0;
    std::vector<std::int64_t> bucket;  ///< of relative positions -reach .. reach
};

struct GoldenFile {
    std::vector<double> edges;  ///< 167; NaN stands for the infinite ones
    std::vector<GoldenBuckets> buckets;
    std::vector<GoldenCase> cases;
};

/// Reads the file; throws what the JSON reader throws.
GoldenFile load_golden();

/// Every field of Statistics by name, as float64; the histogram densely.
std::map<std::string, std::vector<double>> fields_of(const Statistics& statistics);

/// The generator of attention_numpy.py: numbers in [-1, 1) with `bits` significant bits.
class Generator {
public:
    Generator(std::uint32_t seed, int bits) : state_(seed), bits_(bits) {}
    float draw();

private:
    std::uint32_t state_;
    int bits_;
};

}  // namespace headscope::kernels::testing
