// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/dense_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/analysis/tensor_values.h"
#include "kernels/attention.h"
#include "kernels/parallel.h"

namespace headscope::analysis {
namespace {

constexpr std::int64_t block_bytes = std::int64_t{32} << 20U;
constexpr std::int64_t rows_per_task = 16;

/// Sums side by side: one alone waits for itself.
double sum_of(const float* numbers, std::int64_t count) {
    constexpr std::int64_t lanes = 8;
    double sums[lanes] = {};
    const std::int64_t whole = count / lanes * lanes;
    for (std::int64_t j = 0; j < whole; j += lanes)
        for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += numbers[j + lane];
    return std::accumulate(numbers + whole, numbers + count, std::accumulate(sums, sums + lanes, 0.0));
}

/// Softmax rows that add up to 1. Weights are exp(score - constant): at scores of 10^4 the constant, a float32 number,
/// is off by 10^-3, and so is the whole row.
void make_rows_whole(float* rows, std::int64_t count, std::int64_t keys) {
    for (float* row = rows; row != rows + count * keys; row += keys) {
        const double sum = sum_of(row, keys);
        if (sum <= 0.0 || !std::isfinite(sum)) continue;  // a query without keys
        const auto factor = static_cast<float>(1.0 / sum);
        for (std::int64_t j = 0; j < keys; ++j) row[j] *= factor;
    }
}

}  // namespace

void for_dense_rows(const model::AttentionRecord& record, std::int64_t b, const Cancellation& cancellation,
                    const RowBlock& take) {
    const at::Tensor query = kernel_tensor(record.query), key = kernel_tensor(record.key);
    kernels::AttentionInput input;
    input.query = kernel_view(query);
    input.key = kernel_view(key);
    input.value = input.key;  // attention_weights reads none
    input.rule = &record.rule;
    const std::int64_t queries = query.size(2), keys = key.size(2);
    const std::int64_t step = std::clamp<std::int64_t>(block_bytes / (keys * 4), 1, queries);
    const bool whole = record.rule.normaliser == kernels::Normaliser::softmax && record.rule.sink_logits.empty();
    std::vector<float> rows;
    for (std::int64_t head = 0; head < query.size(1); ++head) {
        for (std::int64_t first = 0; first < queries; first += step) {
            const std::int64_t count = std::min(step, queries - first);
            rows.resize(static_cast<std::size_t>(count * keys));
            kernels::parallel_for((count + rows_per_task - 1) / rows_per_task, [&](std::int64_t task, int) {
                cancellation.check();
                const std::int64_t begin = task * rows_per_task, end = std::min(begin + rows_per_task, count);
                kernels::attention_weights(input, record.statistics.row_constant, b, head, first + begin, first + end,
                                           0, keys, rows.data() + begin * keys);
                if (whole) make_rows_whole(rows.data() + begin * keys, end - begin, keys);
            });
            take(head, first, rows);
        }
    }
}

std::vector<double> region_means(const model::AttentionRecord& record, std::int64_t b,
                                 std::span<const std::int32_t> regions, const Cancellation& cancellation) {
    constexpr std::size_t kinds = 3;
    const auto heads = static_cast<std::size_t>(record.query.size(1)), tokens = regions.size();
    std::vector<double> sums(heads * kinds * kinds, 0.0), queries(heads * kinds, 0.0);
    const float* constants = record.statistics.row_constant.data() + static_cast<std::size_t>(b) * heads * tokens;
    for_dense_rows(record, b, cancellation, [&](std::int64_t head, std::int64_t first, std::span<const float> rows) {
        const auto h = static_cast<std::size_t>(head), from = static_cast<std::size_t>(first);
        for (std::size_t i = from; i < from + rows.size() / tokens; ++i) {
            if (std::isinf(constants[h * tokens + i])) continue;  // it sees no key
            const std::size_t place = h * kinds + static_cast<std::size_t>(regions[i]);
            const float* row = rows.data() + (i - from) * tokens;
            for (std::size_t j = 0; j < tokens; ++j)
                sums[place * kinds + static_cast<std::size_t>(regions[j])] += row[j];
            ++queries[place];
        }
    });
    for (std::size_t k = 0; k < sums.size(); ++k) {
        const double count = queries[k / kinds];
        sums[k] = count > 0 ? sums[k] / count : std::numeric_limits<double>::quiet_NaN();
    }
    return sums;
}

}  // namespace headscope::analysis
