// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/recurrent.h backwards for processors, checked before, and the pieces of work that it shares out: one value
// head of one sequence, or, where there are few, some of its value columns.
//
// Piece by piece of at most kRecurrentPiece tokens, last piece first, as products of small matrices. With G the running
// sum of g in the piece, D_ij = e^(G_i - G_j), M = tril(D K K^T, -1), W = diag(w), S the state at the piece's start and
// dS the gradient of that at its end:
//
//   (I + M W) E = V - e^G K S            what the piece writes is U = W E; without the delta rule E = V
//   dU = scale tril(D Q K^T)^T dO + e^(G_C - G) K dS
//   (I + W M^T) Z = W dU                 dV = Z, without the delta rule W dU
//   dP = scale D tril(dO E^T W)          dM = -D tril(Z E^T W, -1)
//   dQ = dP K + scale e^G dO S^T
//   dK = dP^T Q + e^(G_C - G) U dS^T + dM K + dM^T K - e^G Z S^T
//   dS <- e^(G_C) dS + scale (e^G Q)^T dO - (e^G K)^T Z
//
// and dG_i = q_i . dq_i + k_i . (the terms of dk_i as row i) - k_i . (those as column i).

#include <atomic>
#include <cstdint>

#include "kernels/cpu/attention/backward.h"
#include "kernels/cpu/attention/sequence.h"
#include "kernels/recurrent.h"

namespace headscope::kernels::cpu {

void recurrent_backward_cpu(const RecurrentInput& input, const TensorView& output_gradient, const float* pieces,
                            const RecurrentGradients& gradients);

struct RecurrentBackwardTask {
    HeadMatrix query, key, write, log_decay;  ///< of the sequence; data null: w 1, no decay
    HeadMatrix value, output_gradient;        ///< at the task's first column
    std::int64_t head = 0, key_head = 0;
    std::int64_t length = 0, real = 0;  ///< tokens, and those that are no padding
    std::int64_t key_size = 0;
    std::int64_t columns = 0, value_size = 0;  ///< of the task, and of the head
    float scale = 1.0F;
    bool delta = true;
    std::int64_t chunk_size = 0;
    const float* kept = nullptr;  ///< [chunks] of this head
    bool decays_dropped = true, reads_own_chunk = true, dropped_too = false;
    const float* pieces = nullptr;  ///< [pieces, dk, value_size] of this head, at the first column
    const std::atomic<bool>* cancel = nullptr;
    // Gradients, data null: not wanted. Those of queries, keys, w, g and m have the share of these columns.
    HeadTarget query_gradient, key_gradient;                     ///< of this head alone
    HeadTarget value_gradient;                                   ///< of the sequence, at the first column
    float *write_gradient = nullptr, *decay_gradient = nullptr;  ///< [length]
    float* kept_gradient = nullptr;                              ///< [chunks]
    float* scratch = nullptr;
};
std::int64_t recurrent_backward_scratch(std::int64_t key_size, std::int64_t columns, bool chunks);
void recurrent_backward_task(const RecurrentBackwardTask& task);

}  // namespace headscope::kernels::cpu
