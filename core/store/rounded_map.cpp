// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/rounded_map.h"

#include <cmath>

#include "core/base/error.h"
#include "core/store/half.h"

namespace headscope::store {
namespace {

std::vector<float> round_all(std::span<const float> values, std::vector<std::uint16_t>& halves) {
    std::vector<float> rounded;
    rounded.reserve(values.size());
    halves.reserve(values.size());
    for (const float value : values) {
        halves.push_back(half_from_float(value));
        rounded.push_back(float_from_half(halves.back()));
        if (std::isinf(rounded.back()) && std::isfinite(value)) {
            throw Error(ErrorCode::limit, "maps", "expected queries and keys within float16's 65504",
                        "found " + std::to_string(value) + "; record the maps as float32");
        }
    }
    return rounded;
}

kernels::TensorView view(const std::vector<float>& values, std::int64_t heads, std::int64_t length, std::int64_t size) {
    return {values.data(), kernels::ElementType::float32, 1, heads, length, size, heads * length * size, length * size,
            size};
}

}  // namespace

RoundedMap round_map(std::span<const float> query, std::span<const float> key, const kernels::ScoreRule& rule,
                     std::int64_t heads, std::int64_t key_value_heads, std::int64_t queries, std::int64_t keys,
                     std::int64_t key_size) {
    RoundedMap map;
    const std::vector<float> q = round_all(query, map.query);
    const std::vector<float> k = round_all(key, map.key);
    kernels::AttentionInput input;
    input.query = view(q, heads, queries, key_size);
    input.key = view(k, key_value_heads, keys, key_size);
    input.value = input.key;  // no output is asked for
    input.rule = &rule;
    kernels::StatisticsRequest request;
    request.local_distances.clear();
    request.histogram = request.head_diversity = request.column_mass = request.thumbnails = false;
    kernels::Statistics statistics;
    kernels::attention(input, {}, &request, &statistics);
    map.row_constant = std::move(statistics.row_constant);
    return map;
}

}  // namespace headscope::store
