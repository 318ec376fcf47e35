// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The pieces of work that are shared among threads, and the entry points of the SIMD code for them. A piece owns all
// that it writes (rows of constants and of the output, its block's sums); totals by column are kept so that the order
// of adding makes no difference (accumulators.h). That is why thread counts do not change a bit.

#include <cstdint>

#include "kernels/cpu/attention/accumulators.h"
#include "kernels/cpu/attention/histogram.h"
#include "kernels/cpu/attention/row_results.h"
#include "kernels/cpu/attention/sequence.h"
#include "kernels/cpu/attention/token_runs.h"

namespace headscope::kernels::cpu {

struct PackTask {
    const Sequence* sequence = nullptr;
    std::int64_t key_head = 0;
    std::int64_t key_begin = 0, key_end = 0;  ///< multiples of the panel width but for the end
    float* packed = nullptr;                  ///< Sequence::packed_keys
};

/// Row constants (and statistics of scores) of one head's query block.
struct PassOneTask {
    const Sequence* sequence = nullptr;
    Normaliser normaliser = Normaliser::softmax;
    std::int64_t head = 0, first_row = 0;
    int rows = 0;
    // At row 0 of this head:
    RowConstants constants;
    float* row_constant = nullptr;                             ///< null: not wanted
    float *query_entropy = nullptr, *query_squares = nullptr;  ///< null: not wanted
    BlockScores* scores = nullptr;                             ///< null: no statistics
    HistogramCounts* histogram = nullptr;                      ///< of this head; null: none
    std::int64_t histogram_step = 1;
    float* scratch = nullptr;
};

/// O of one head's query block, without statistics. Normalizers that are one_pass().
struct PlainTask {
    const Sequence* sequence = nullptr;
    Normaliser normaliser = Normaliser::softmax;
    std::int64_t head = 0, first_row = 0;
    int rows = 0;
    float* output = nullptr;  ///< row 0 of this head
    std::int64_t output_stride = 0;
    float* scratch = nullptr;
    // For training:
    std::uint16_t* rounded = nullptr;           ///< bfloat16 output, instead of `output`
    float *shift = nullptr, *factor = nullptr;  ///< the rows' constants, row 0 of this head; null: not wanted
};

/// Weights, their statistics and O of a query block, heads [head_begin, head_end) together.
struct PassTwoTask {
    const Sequence* sequence = nullptr;
    Normaliser normaliser = Normaliser::softmax;
    std::int64_t head_begin = 0, head_end = 0, first_row = 0;
    int rows = 0;
    RowConstants constants;  ///< [heads, queries]
    OutputView output;       ///< of this sequence, batch_stride unused; data null: not wanted
    // Statistics, all null without a request:
    BlockWeights* weights = nullptr;  ///< one per head of the task
    double* local = nullptr;          ///< [heads of the task, distances]
    const std::int64_t* distances = nullptr;
    std::int64_t distance_count = 0;
    double* diversity = nullptr;  ///< sum over pairs of the standard deviation across heads; null: not wanted
    ColumnTotals* totals = nullptr;
    const TokenRuns* tokens = nullptr;
    float *query_entropy = nullptr, *query_squares = nullptr, *query_sink = nullptr, *query_distance = nullptr;
    // The worker's own:
    SegmentLists* segments = nullptr;
    RowSums* row_sums = nullptr;  ///< [heads of the task, rows], 0 at the start
    float* scratch = nullptr;
};

/// Properties of the chosen SIMD target, in floats.
struct TargetInfo {
    const char* name = nullptr;
    std::int64_t rows = 0, lanes = 0;
};
TargetInfo target_info();

/// Floats of aligned scratch that a task needs on any target.
std::int64_t plain_scratch(const Sequence& s, std::int64_t rows);
std::int64_t pass_one_scratch(const Sequence& s, std::int64_t rows, bool panel);
/// Included in the next two for normalisers whose second order has scores of its own: a tile of them, and for making
/// it.
std::int64_t second_order_scratch(const Sequence& s);
std::int64_t pass_two_scratch(const Sequence& s, std::int64_t rows, std::int64_t heads);

// Run the chosen SIMD target (the files of their names). They return early once the cancel flag is set.
void pack_keys(const PackTask& task);
void plain_attention(const PlainTask& task);
void pass_one(const PassOneTask& task);
void pass_two(const PassTwoTask& task);

}  // namespace headscope::kernels::cpu
