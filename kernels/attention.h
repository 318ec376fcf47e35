// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The operator at the heart: attention that measures itself. One call computes O = A V and every statistic of the
// attention matrix A and of the scores s before the normaliser, in two tiled passes, without an L x L matrix.
//
// Shapes: B sequences, H query heads, G key-value heads (H a multiple of G; head h reads key head h / (H / G)),
// Lq queries, Lk keys, dk key size, dv value size. Row i = query, column j = key, both counted from 0 here.
// Types: inputs float32 or bfloat16; arithmetic float32 inside a tile, float64 across tiles.
// Threads: any; work is shared through kernels/parallel.h. The result has the same bits for every thread count.
// Errors: kernels::Error before any work is done; kernels::Cancelled between tiles.

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace headscope::kernels {

enum class ElementType : std::uint8_t { float32, bfloat16 };
/// Whose memory a view points into; all views of a call are of one.
enum class Device : std::uint8_t { cpu, gpu };

/// A strided view of [batch, heads, length, size]; the stride of the last dimension is 1, the others are in elements.
struct TensorView {
    const void* data = nullptr;
    ElementType type = ElementType::float32;
    std::int64_t batch = 0, heads = 0, length = 0, size = 0;
    std::int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
    Device device = Device::cpu;
};

/// Where O goes: float32, [B, H, Lq, dv] with unit stride in dv. May not overlap an input. data may be null: no output.
struct OutputView {
    float* data = nullptr;
    std::int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
};

/// From scores to weights. The Taylor ones (Deconstructing Attention, Eq. 6 and 14-17) put 1 + s + t2 instead of
/// the exponential, t2 the second order; kernels/normaliser.h has their names and what they cannot be joined with.
enum class Normaliser : std::uint8_t {
    softmax,
    sparsemax,
    taylor,                     ///< t2 = s^2 / 2, one denominator: every weight is positive
    taylor_diagonal,            ///< t2 = scale^2 / 2 * sum over c of (q_c k_c)^2: weights may be negative
    taylor_per_order,           ///< A = 1 / n + s / sum s + t2 / sum t2: rows sum to 3, and sum s may cross 0
    taylor_diagonal_per_order,  ///< both: Eq. 14-17 to the letter
    elastic,                    ///< A = max(p + offset, 0) of a softmax p (Lazy Attention, Eq. 5): rows sum to anything
    entmax,                     ///< alpha = 1.5 (Peters et al. 2019): A = max((s - threshold) / 2, 0)^2, rows sum to 1
    sigmoid,                    ///< A = 1 / (1 + e^-s), each weight for itself: rows sum to anything
};

/// What a score gets for a relative position beyond the table of distance biases.
enum class BeyondTable : std::uint8_t { zero, clamp };

/// What the elastic normaliser adds to the weights of a query that sees n keys: offset / n, or the offset as it is.
enum class OffsetForm : std::uint8_t { per_length, constant };

/// Visibility by key block, as NAtS-L needs it: keys of another block are seen when `visible` says so; keys of the
/// query's own block when `own` does (subject to the causal mask). One row per query head.
struct BlockVisibility {
    std::int64_t block_size = 0;        ///< 0: no such rule
    std::int64_t blocks = 0;            ///< per head
    std::vector<std::uint8_t> visible;  ///< [batch, heads, blocks]
    bool own = true;
};

/// Everything that says how s_ij comes about from q_i and k_j and which pairs are allowed. Values only, so that it can
/// be stored beside q, k and the row constants and any tile recomputed later.
///
///   s = scale q.k;  s -= slope_h (i' - j);  s += bias_h[j - i'];  s = cap tanh(s / cap)
///   far_distance >= 0 and i' - j > far_distance: q.k is over the first near_begin numbers, plus q's last one
///
/// with i' = i + query_offset, the query's absolute position (keys start at 0). Pair (i, j) is allowed when
///
///   causal: j <= i'
///   window_left >= 0: i' - i' mod window_segment - j <= window_left, or j < first_keys
///   window_right >= 0: j - i' <= window_right
///   block visibility as above
///   key_begin[b] <= j < key_length[b];  i < query_length[b]
///
/// A causal sliding window W of the model zoo (keys with i - j < W) is window_left = W - 1.
struct ScoreRule {
    double scale = 1.0;
    double soft_cap = 0.0;  ///< 0: none
    bool causal = true;
    std::int64_t query_offset = 0;
    std::int64_t window_left = -1;   ///< -1: no limit
    std::int64_t window_right = -1;  ///< -1: no limit
    std::int64_t first_keys = 0;     ///< always visible beside the window (StreamingLLM)
    /// Windows reach back from the first position of the query's segment of so many: a memory of window_left tokens
    /// before each segment (Transformer-XL). 1: from the query itself.
    std::int64_t window_segment = 1;
    /// Relative positions as numbers of queries and keys that stand still beyond a distance (Transformer-XL's clamp):
    /// numbers [near_begin, dk - 1) count for nearer pairs alone, a query's last one for farther ones, and a key's last
    /// one is 0. -1: none.
    std::int64_t far_distance = -1, near_begin = 0;
    std::vector<float> slopes;         ///< [heads] or empty (ALiBi)
    std::vector<float> distance_bias;  ///< [heads, bias_length] or empty, by relative position j - i'
    std::int64_t bias_length = 0;
    std::int64_t bias_origin = 0;  ///< column of relative position 0: bias_h[j - i' + bias_origin]
    BeyondTable beyond_table = BeyondTable::clamp;
    std::vector<float> sink_logits;  ///< [heads] or empty: a logit without a value in each row's denominator
    BlockVisibility blocks;
    Normaliser normaliser = Normaliser::softmax;
    std::vector<float> offsets;  ///< [heads], of the elastic normaliser alone
    OffsetForm offset_form = OffsetForm::per_length;
    std::vector<std::int64_t> query_length;  ///< [batch] or empty: all
    std::vector<std::int64_t> key_begin;     ///< [batch] or empty: 0 (left padding)
    std::vector<std::int64_t> key_length;    ///< [batch] or empty: all (end of the real keys)
};

/// T5's bucket of each column of the table that set_bucketed_bias makes: which row of `table` it is filled from.
std::vector<std::int64_t> bucket_columns(std::int64_t buckets, std::int64_t max_distance, bool bidirectional);

/// T5's bucketed bias as a table by relative position for ScoreRule. `table` is [buckets, heads] as T5 stores it.
void set_bucketed_bias(ScoreRule& rule, std::span<const float> table, std::int64_t buckets, std::int64_t heads,
                       std::int64_t max_distance, bool bidirectional, std::int64_t queries, std::int64_t keys);

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

struct AttentionInput {
    TensorView query;  ///< [B, H, Lq, dk], rotary already applied
    TensorView key;    ///< [B, G, Lk, dk]
    TensorView value;  ///< [B, G, Lk, dv]
    const ScoreRule* rule = nullptr;
    const std::atomic<bool>* cancel = nullptr;  ///< may be null
};

/// Computes O into `output` and, where `request` is given, everything of Statistics. Dispatches by the views'
/// device and kernels/backend.h. `statistics` must be given exactly when `request` is.
void attention(const AttentionInput& input, OutputView output, const StatisticsRequest* request = nullptr,
               Statistics* statistics = nullptr);

/// Dense weights of queries [q_begin, q_end) and keys [k_begin, k_end) of one head, from q, k and the row constants
/// [B, H, Lq] of an earlier call; 0 where a pair is not allowed. out: [q_end - q_begin, k_end - k_begin], float32.
/// Serial, no LibTorch, no locks: made for many tile workers at once. input.value is not read.
void attention_weights(const AttentionInput& input, std::span<const float> row_constant, std::int64_t b, std::int64_t h,
                       std::int64_t q_begin, std::int64_t q_end, std::int64_t k_begin, std::int64_t k_end, float* out);

/// The scores (before the normaliser) of the same rectangle; -inf where a pair is not allowed.
void attention_scores(const AttentionInput& input, std::int64_t b, std::int64_t h, std::int64_t q_begin,
                      std::int64_t q_end, std::int64_t k_begin, std::int64_t k_end, float* out);

}  // namespace headscope::kernels
