// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/recurrent.h for processors, checked before, and the pieces of work that it shares out: some value columns of
// one head forwards, some rows of one head for its implicit matrix.
//
// Both walk the tokens four at a time with a tile of a few vectors' columns that stays in the first-level cache. With
// a_t = e^(g_t) and A_t = a_1 .. a_t of a block, X the tile [dk, columns] before it:
//
//   forwards  S^T k_t before its write = (A_t k_t)^T X + sum over s < t of (k_t . (A_t / A_s) k_s) u_s
//             X <- A_4 X + sum over s of (A_4 / A_s) k_s u_s^T
//
// so the tile is read twice and written once for four tokens, and everything else is numbers of the block. Walking rows
// back from their queries is the same with the keys in falling order. Decays are multiplied, never divided: one of 0 is
// no exception.

#include <atomic>
#include <cstdint>

#include "kernels/cpu/attention/backward.h"
#include "kernels/cpu/attention/sequence.h"
#include "kernels/recurrent.h"

namespace headscope::kernels::cpu {

void recurrent_forward_cpu(const RecurrentInput& input, const MutableView& output, const RecurrentState& state,
                           float* pieces);
/// Serial.
void implicit_weights_cpu(const RecurrentInput& input, std::int64_t b, std::int64_t h, std::int64_t q_begin,
                          std::int64_t q_end, std::int64_t k_begin, std::int64_t k_end, float* out);
void implicit_statistics_cpu(const RecurrentInput& input, ImplicitStatistics* statistics, float* dense);

inline constexpr std::int64_t kRecurrentBlock = 4;   ///< tokens that a tile meets at once
inline constexpr std::int64_t kRecurrentGroup = 32;  ///< tokens whose numbers are made together
inline constexpr std::int64_t kImplicitRows = 64;    ///< of a task: whole vectors on every target

/// One value head of one sequence.
struct RecurrentHead {
    HeadMatrix query, key, write, log_decay;  ///< of the sequence; data null: w 1, no decay
    std::int64_t head = 0, key_head = 0;
    std::int64_t length = 0, real = 0;  ///< tokens, and those that are no padding
    std::int64_t key_size = 0;
    float scale = 1.0F;
    float direct = 0.0F;                  ///< RecurrentInput::direct of this head
    bool delta = true, channels = false;  ///< channels: a decay of each number of the key
    std::int64_t chunk_size = 0, chunk_begin = 0;
    const float* kept = nullptr;  ///< [chunks] of this head
    bool decays_dropped = true, reads_own_chunk = true;
    const std::atomic<bool>* cancel = nullptr;
};

struct RecurrentTask {
    RecurrentHead head;
    HeadMatrix value;
    HeadTarget output;
    std::int64_t value_size = 0;
    std::int64_t first_column = 0, columns = 0;
    float *now = nullptr, *start = nullptr;  ///< [dk, value_size] of this head; null: none before, none wanted
    const float* decay = nullptr;            ///< [1 or dk] of the open chunk so far; null: 0
    float* decay_after = nullptr;            ///< null: not wanted, or another task's work
    float* pieces = nullptr;                 ///< [pieces, dk, value_size] of this head; null: not wanted
    float* scratch = nullptr;
};
std::int64_t recurrent_scratch(std::int64_t key_size, std::int64_t columns);
void recurrent_forward_task(const RecurrentTask& task);

/// Sums over a row of |A|.
struct ImplicitRow {
    double sum = 0.0, logarithms = 0.0, squares = 0.0;  ///< of |A|, |A| log |A|, A^2
};
struct ImplicitTask {
    RecurrentHead head;
    std::int64_t first = 0, rows = 0;         ///< queries [first, first + rows), kImplicitRows at most, of one chunk
    std::int64_t key_begin = 0, key_end = 0;  ///< of what goes to `out`; keys before key_begin are not walked
    float* out = nullptr;                     ///< [rows, out_stride], key key_begin first; null: not wanted
    std::int64_t out_stride = 0;
    ImplicitRow* statistics = nullptr;  ///< [rows]; null: not wanted
    float* scratch = nullptr;
};
std::int64_t implicit_scratch(std::int64_t key_size);
void implicit_task(const ImplicitTask& task);

}  // namespace headscope::kernels::cpu
