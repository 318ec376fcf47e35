// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Attention with one score per key (Non-approximate: "Deconstructing Attention", Eq. 7, 8 and 18):
//
//   s_j = scale q_j . k_j          q and k of the same position
//   A_ij = e^{s_j} / sum over k <= i of e^{s_k},   O_i = sum over j <= i of A_ij v_j
//
// always causal, so O is a running quotient and everything here is linear in the length, in time and memory. The sums
// are kept relative to a running maximum: no score overflows, and a number added to all scores changes nothing.
//
// Shapes: query [B, H, L, dk], key [B, G, L, dk], value [B, G, L, dv]; head h reads key head h / (H / G). Inputs and
// outputs float32 or bfloat16, arithmetic float32 (denominators float64). Threads: as kernels/attention.h; a head has
// one owner, so the bits are the same for every thread count. Errors: Error before any work, Cancelled within it.

#include <atomic>
#include <cstdint>
#include <span>

#include "kernels/attention_backward.h"
#include "kernels/statistics.h"
#include "kernels/tensor_view.h"

namespace headscope::kernels {

struct RunningInput {
    TensorView query, key, value;
    double scale = 1.0;
    std::span<const std::int64_t> lengths;  ///< [batch], or empty: all. Tokens behind are padding: O and gradients 0
    const std::atomic<bool>* cancel = nullptr;  ///< may be null
};

/// [B, H, L] each: a key's score, and what its row's sum is relative to and comes to, so that
/// A_ij = exp(s_j - maximum_i) / denominator_i. Two numbers, because one float32 logarithm near +-1000 would cost four
/// digits. All null: not wanted. Of padding: 0, 0, 1.
struct RunningRows {
    float *score = nullptr, *maximum = nullptr, *denominator = nullptr;
};

/// Running sums over all tokens of a text: numerator [B, H, dv], denominator and maximum [B, H]. All null: a whole text
/// in one call. The empty state is 0, 0, -infinity (clear_running_state).
struct RunningState {
    float *numerator = nullptr, *denominator = nullptr, *maximum = nullptr;
};
void clear_running_state(const RunningState& state, std::int64_t heads, std::int64_t value_size);

/// The tokens follow those of `state`, which then holds them too. Memory: some rows a thread.
void running_forward(const RunningInput& input, const MutableView& output, const RunningRows& rows,
                     const RunningState& state = {});

/// d loss / d q, k, v, those of keys and values summed over the heads that read them; of a text from its beginning.
/// `output` and `rows` are running_forward's, `output_gradient` is d loss / d O, [B, H, L, dv]. With
/// G_j = sum over i >= j of e^{c_j - c_i} dO_i (c the log normalisers) and E_j likewise of dO_i . O_i, which run
/// backwards: dv_j = A_jj G_j and ds_j = A_jj (v_j . G_j - E_j).
void running_backward(const RunningInput& input, const RunningRows& rows, const TensorView& output,
                      const TensorView& output_gradient, const AttentionGradients& gradients);

/// All of Statistics for scores [B, H, L], as kernels::attention measures them with a query of ones and a key of size
/// one; row_constant is the log normaliser. O(L) in time and memory for all but head diversity, which goes tile by tile
/// over pairs, and thumbnails, whose number of cells is added. Of `input`, the query's shape and the lengths are read.
void running_statistics(const RunningInput& input, std::span<const float> scores, const StatisticsRequest& request,
                        Statistics& statistics);

}  // namespace headscope::kernels
