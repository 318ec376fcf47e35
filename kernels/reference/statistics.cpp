// SPDX-License-Identifier: GPL-3.0-or-later
// Every field of Statistics from the whole matrix, formula by formula as indicators.md and reference/attention.h say.
#include "kernels/reference/dense.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/where.h>
#include <ATen/ops/xlogy.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace headscope::kernels::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kSmallestNormal = 0x1p-126;

/// Copies a tensor of one sequence to its place in a vector of the whole batch.
template <typename Value>
void store(const at::Tensor& tensor, std::int64_t b, std::vector<Value>& out) {
    const at::Tensor flat = tensor.to(at::kDouble).contiguous();
    const double* from = flat.data_ptr<double>();
    std::transform(from, from + flat.numel(), out.begin() + b * flat.numel(),
                   [](double x) { return static_cast<Value>(x); });
}

/// Rows that count, and their number; shared by the formulas.
struct Rows {
    at::Tensor exists;  ///< [H, Lq] bool: the query sees at least one key
    at::Tensor number;  ///< [H]
    explicit Rows(const DenseAttention& dense)
        : exists(dense.allowed.any(-1)), number(exists.sum(-1).to(at::kDouble)) {}
    /// Mean over rows of a value per query [H, Lq] that is 0 where there is no row; NaN where there is none at all.
    at::Tensor mean(const at::Tensor& per_query) const { return per_query.sum(-1) / number; }
};

at::Tensor key_exists(const DenseAttention& dense, const at::Tensor& position) {
    return (position >= dense.bounds.key_begin) & (position < dense.bounds.key_end);
}

void measure_rows(const DenseAttention& dense, const Rows& rows, bool per_query, std::int64_t b, Statistics& out) {
    const at::Tensor& a = dense.weight;
    const at::Tensor entropy = -at::xlogy(a, a).sum(-1);
    const at::Tensor square = (a * a).sum(-1);
    const at::Tensor is_first = dense.key_position == dense.bounds.key_begin;
    const at::Tensor sink = (a * is_first).sum(-1);
    const at::Tensor others = (a * is_first.logical_not()).sum(-1);
    const at::Tensor distance = (a * (dense.query_position - dense.key_position)).sum(-1);

    store(entropy.sum(-1), b, out.entropy);
    store(rows.mean(entropy), b, out.entropy_row_mean);
    store(square.sum(-1).sqrt(), b, out.concentration);
    store(rows.mean(sink), b, out.sink);
    store(rows.mean(others), b, out.density);
    store(1.0 - rows.mean(others) - rows.mean(sink), b, out.sparsity);
    store(rows.mean(distance), b, out.mean_distance);
    const at::Tensor vanishing = dense.allowed & (a < kSmallestNormal);
    store(vanishing.sum({1, 2}).to(at::kDouble) / dense.allowed.sum({1, 2}), b, out.zero_fraction);
    store(dense.row_constant, b, out.row_constant);
    if (per_query) {
        store(entropy, b, out.query_entropy);
        store(square, b, out.query_square_sum);
        store(sink, b, out.query_sink);
        store(distance, b, out.query_mean_distance);
    }
}

/// [H]: mean of A at (i', i' - distance) over the rows that have such a key.
at::Tensor local_focus(const DenseAttention& dense, const Rows& rows, std::int64_t distance) {
    const at::Tensor target = dense.query_position - distance;
    const at::Tensor counted = rows.exists & key_exists(dense, target).squeeze(1);
    const at::Tensor on_target = dense.weight * (dense.key_position == target);
    return on_target.sum({1, 2}) / counted.sum(-1);
}

/// Standard deviation over heads, averaged over the pairs that the mask's outline holds.
double head_diversity(const ScoreRule& rule, const DenseAttention& dense, const Rows& rows) {
    const std::int64_t heads = dense.weight.size(0);
    if (heads == 1) return 0.0;
    at::Tensor pairs = rows.exists.any(0).unsqueeze(1) & key_exists(dense, dense.key_position);
    if (rule.causal) pairs = pairs & (dense.key_position <= dense.query_position);
    const at::Tensor from_mean = dense.weight - dense.weight.mean(at::IntArrayRef{0}, /*keepdim=*/true);
    const at::Tensor deviation = ((from_mean * from_mean).sum(0) / static_cast<double>(heads - 1)).sqrt();
    return ((deviation * pairs).sum() / pairs.sum()).item<double>();
}

at::Tensor column_mass(const ScoreRule& rule, const DenseAttention& dense, const Rows& rows) {
    at::Tensor counted = rows.exists.unsqueeze(2) & key_exists(dense, dense.key_position);
    if (rule.causal) counted = counted & (dense.key_position <= dense.query_position);
    return dense.weight.sum(1) / counted.sum(1);
}

/// Mass on keys whose token, or whose previous key's token, is the query's.
void measure_tokens(const DenseAttention& dense, const Rows& rows, const StatisticsRequest& request, std::int64_t b,
                    Statistics& out) {
    const std::int64_t keys = dense.key_position.size(1);
    auto* data = const_cast<std::int32_t*>(request.tokens.data()) + b * keys;
    const at::Tensor token = at::from_blob(data, {keys}, at::kInt);
    const at::Tensor &i = dense.query_position, &j = dense.key_position;
    const at::Tensor query_token = token.index_select(0, i.clamp(0, keys - 1).flatten()).unsqueeze(1);
    const at::Tensor previous_token = token.index_select(0, (j - 1).clamp_min(0).flatten()).unsqueeze(0);
    const at::Tensor known = key_exists(dense, i);
    const at::Tensor duplicate = known & (j < i) & (token.unsqueeze(0) == query_token);
    const at::Tensor induction = known & (j <= i) & key_exists(dense, j - 1) & (previous_token == query_token);
    store(rows.mean((dense.weight * duplicate).sum(-1)), b, out.duplicate);
    store(rows.mean((dense.weight * induction).sum(-1)), b, out.induction);
}

void measure_scores(const DenseAttention& dense, std::int64_t b, Statistics& out) {
    const at::Tensor number = dense.allowed.sum({1, 2});
    const at::Tensor any = number > 0;
    const at::Tensor score = at::where(dense.allowed, dense.score, 0.0);
    const at::Tensor mean = score.sum({1, 2}) / number;
    const at::Tensor from_mean = at::where(dense.allowed, score - mean.view({-1, 1, 1}), 0.0);
    store(at::where(any, at::where(dense.allowed, score, kInfinity).amin({1, 2}), kNaN), b, out.score_minimum);
    store(at::where(any, dense.score.amax({1, 2}), kNaN), b, out.score_maximum);
    store(mean, b, out.score_mean);
    store((from_mean * from_mean).sum({1, 2}) / number, b, out.score_variance);
    const at::Tensor above = at::zeros({score.size(0), 3}, at::kDouble);
    for (int k = 0; k < 3; ++k) above.select(1, k).copy_((score.abs() > std::pow(10.0, k + 1)).sum({1, 2}));
    store(above, b, out.score_above);
}

void count_scores(const DenseAttention& dense, std::int64_t b, Statistics& out) {
    const auto score = dense.score.accessor<double, 3>();
    const at::Tensor mask = dense.allowed.contiguous();
    const auto allowed = mask.accessor<bool, 3>();
    const std::int64_t step = out.histogram_row_step;
    for (std::int64_t h = 0; h < out.heads; ++h) {
        std::uint64_t* counts = out.histogram.data() + (b * out.heads + h) * kHistogramBins;
        for (std::int64_t i = step - 1; i < out.queries; i += step) {
            for (std::int64_t j = 0; j < out.keys; ++j) {
                if (!allowed[h][i][j]) continue;
                const int bin = histogram_bin(score[h][i][j]);
                if (bin >= 0) ++counts[bin];
            }
        }
    }
}

void draw_thumbnails(const DenseAttention& dense, std::int64_t b, Statistics& out) {
    const auto weight = dense.weight.accessor<double, 3>();
    const SequenceBounds& bounds = dense.bounds;
    const std::int64_t rows = out.thumbnail_rows, columns = out.thumbnail_columns;
    std::vector<double> sum(static_cast<std::size_t>(rows * columns)), cells(sum.size());
    for (std::int64_t h = 0; h < out.heads; ++h) {
        std::fill(sum.begin(), sum.end(), 0.0);
        std::fill(cells.begin(), cells.end(), 0.0);
        const std::int64_t base = (b * out.heads + h) * rows * columns;
        for (std::int64_t i = 0; i < bounds.queries; ++i) {
            for (std::int64_t j = bounds.key_begin; j < bounds.key_end; ++j) {
                const std::int64_t column = (j - bounds.key_begin) * columns / bounds.keys();
                const std::int64_t block = i * rows / bounds.queries * columns + column;
                float& maximum = out.thumbnail_maximum[static_cast<std::size_t>(base + block)];
                sum[static_cast<std::size_t>(block)] += weight[h][i][j];
                cells[static_cast<std::size_t>(block)] += 1.0;
                maximum = std::max(maximum, static_cast<float>(weight[h][i][j]));
            }
        }
        for (std::size_t block = 0; block < sum.size(); ++block) {
            const double mean = cells[block] > 0.0 ? sum[block] / cells[block] : 0.0;
            out.thumbnail_mean[static_cast<std::size_t>(base) + block] = static_cast<float>(mean);
        }
    }
}

}  // namespace

void measure_sequence(const AttentionInput& input, const StatisticsRequest& request, const DenseAttention& dense,
                      std::int64_t b, Statistics& out) {
    const ScoreRule& rule = *input.rule;
    const Rows rows(dense);
    measure_rows(dense, rows, request.per_query, b, out);
    measure_scores(dense, b, out);
    const auto distances = static_cast<std::int64_t>(request.local_distances.size());
    if (distances > 0 && !request.cross) {
        const at::Tensor focus = at::zeros({out.heads, distances}, at::kDouble);
        for (std::int64_t n = 0; n < distances; ++n) {
            focus.select(1, n).copy_(local_focus(dense, rows, request.local_distances[static_cast<std::size_t>(n)]));
        }
        store(focus, b, out.local_focus);
    }
    if (!rule.sink_logits.empty()) store(rows.mean(at::where(rows.exists, dense.sink_share, 0.0)), b, out.virtual_sink);
    if (!request.tokens.empty()) measure_tokens(dense, rows, request, b, out);
    if (request.head_diversity) out.head_diversity[static_cast<std::size_t>(b)] = head_diversity(rule, dense, rows);
    if (request.column_mass) store(column_mass(rule, dense, rows), b, out.column_mass);
    if (request.histogram) count_scores(dense, b, out);
    if (request.thumbnails) draw_thumbnails(dense, b, out);
}

}  // namespace headscope::kernels::reference
