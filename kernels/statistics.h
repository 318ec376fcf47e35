// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Indicators that attention() measures, and the request that selects them. Definitions: docs/operator.md.

#include <array>
#include <cstdint>
#include <vector>

namespace headscope::kernels {

struct AttentionInput;

inline constexpr int kHistogramBins = 166;
/// The 167 edges of spec "logits/edges", in units of the score: -inf, -8 * 10^(k/16) for k = 50..0, -7.75 .. 7.75 by
/// 0.25, 8 * 10^(k/16) for k = 0..50, inf. Bin b holds edge[b] <= s < edge[b + 1].
const std::array<double, kHistogramBins + 1>& histogram_edges();

struct StatisticsRequest {
    std::vector<std::int64_t> local_distances{0, 1, 2, 3};
    /// 0: every row up to 1024 queries, else rows i with i mod 8 = 7; otherwise rows with i mod step = step - 1.
    std::int64_t histogram_row_step = 0;
    std::int64_t thumbnail_size = 128;
    bool histogram = true;
    bool head_diversity = true;  ///< causal: divisor L(L+1)/2; else Lq * Lk
    bool column_mass = true;
    bool thumbnails = true;
    bool per_query = false;  ///< fills the [B, H, Lq] vectors of Statistics
    /// Queries and keys are of different sequences (the rule is not causal): there are no local distances, so local
    /// focus is NaN, and no tokens.
    bool cross = false;
    /// Token ids [B, Lk] for duplicate and induction scores; empty: those are NaN. Self-attention only.
    std::vector<std::int32_t> tokens;
};

/// Everything measured. Definitions: docs/operator.md; raw values, nothing normalised for display. "L" of those
/// formulas is the number of queries that see at least one key. What was not asked for is an empty vector.
/// Index order of the flat vectors is as written, row-major.
struct Statistics {
    std::int64_t batch = 0, heads = 0, queries = 0, keys = 0;
    std::vector<double> entropy;           ///< [B, H] nats, summed over rows; NaN where a weight is negative
    std::vector<double> entropy_row_mean;  ///< [B, H] nats per query
    std::vector<double> concentration;     ///< [B, H] Frobenius norm
    std::vector<double> sink;              ///< [B, H]
    std::vector<double> local_focus;  ///< [B, H, distances]; NaN where no query has such a key, and for cross-attention
    std::vector<double> head_diversity;    ///< [B]; divisor H - 1; 0 when H = 1
    std::vector<double> density;           ///< [B, H] mean mass on keys other than the first
    std::vector<double> sparsity;          ///< [B, H] 1 - density - sink
    std::vector<double> zero_fraction;     ///< [B, H] share of allowed pairs with A < 2^-126
    std::vector<double> mean_distance;     ///< [B, H] in tokens
    std::vector<double> duplicate;         ///< [B, H]
    std::vector<double> induction;         ///< [B, H]
    std::vector<double> virtual_sink;      ///< [B, H] mean share of the sink logit; NaN without one
    std::vector<float> column_mass;        ///< [B, H, Lk]
    std::vector<std::uint64_t> histogram;  ///< [B, H, kHistogramBins]
    std::int64_t histogram_row_step = 0;   ///< what was used
    /// [B, H], exact over all allowed pairs
    std::vector<double> score_minimum, score_maximum, score_mean, score_variance;
    std::vector<std::uint64_t> score_above;                  ///< [B, H, 3]: |s| > 10, 100, 1000
    std::int64_t thumbnail_rows = 0, thumbnail_columns = 0;  ///< min(size, Lq), min(size, Lk)
    /// [B, H, rows, columns]: mean and maximum over the cells of a block, masked cells counting as 0. Cell (i, j)
    /// belongs to block (i * rows / Lq, j * columns / Lk), integer division. Padding shares the sequence's own length.
    std::vector<float> thumbnail_mean, thumbnail_maximum;
    /// [B, H, Lq], always filled: what turns a score into a weight. softmax: the natural-log normaliser
    /// (A = exp(s - c)); elastic: the same (A = max(exp(s - c) + offset, 0), the offset by the rule); sparsemax: the
    /// threshold (A = max(s - c, 0)); entmax: A = max((s - c) / 2, 0)^2; Taylor: the denominator (A = (1 + s + t2) /
    /// c), per order that of the second (c = sum t2); sigmoid: 0. +inf for a row that sees no key.
    std::vector<float> row_constant;
    std::vector<float> query_entropy, query_square_sum, query_sink, query_mean_distance;  ///< [B, H, Lq], per_query
};

/// Gives every vector of `out` the size that the request asks for: NaN where a number may stay undefined, else 0.
void prepare_statistics(const AttentionInput& input, const StatisticsRequest& request, Statistics& out);

}  // namespace headscope::kernels
