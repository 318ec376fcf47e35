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

#include <atomic>
#include <cstdint>
#include <span>

#include "kernels/score_rule.h"
#include "kernels/statistics.h"
#include "kernels/tensor_view.h"

namespace headscope::kernels {

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
