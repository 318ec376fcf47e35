// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/hdf5/rounded_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/error.h"
#include "kernels/attention.h"
#include "kernels/statistics.h"
#include "kernels/tensor_view.h"

namespace headscope::store {
namespace {

Rounded round_all(std::span<const float> numbers) {
    float largest = 0;
    for (const float number : numbers) {
        if (!std::isfinite(number)) {
            throw Error(ErrorCode::limit, "maps", "expected finite queries and keys",
                        "found " + std::to_string(number) + "; record the maps as float32");
        }
        largest = std::max(largest, std::abs(number));
    }
    Rounded rounded;
    if (largest > 0) rounded.scale = std::max(largest / Rounded::kMost, std::numeric_limits<float>::min());
    rounded.values.reserve(numbers.size());
    for (const float number : numbers) {
        const float steps = std::clamp(std::round(number / rounded.scale), -Rounded::kMost, Rounded::kMost);
        rounded.values.push_back(static_cast<std::int16_t>(steps));
    }
    return rounded;
}

kernels::TensorView view(const std::vector<float>& values, std::int64_t heads, std::int64_t length, std::int64_t size) {
    return {values.data(), kernels::ElementType::float32, 1, heads, length, size, heads * length * size, length * size,
            size};
}

}  // namespace

std::vector<float> Rounded::back() const {
    std::vector<float> numbers;
    numbers.reserve(values.size());
    for (const std::int16_t value : values) numbers.push_back(static_cast<float>(value) * scale);
    return numbers;
}

RoundedMap round_map(std::span<const float> query, std::span<const float> key, const kernels::ScoreRule& rule,
                     std::int64_t heads, std::int64_t key_value_heads, std::int64_t queries, std::int64_t keys,
                     std::int64_t key_size) {
    RoundedMap map;
    map.query = round_all(query);
    map.key = round_all(key);
    const std::vector<float> q = map.query.back(), k = map.key.back();
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
