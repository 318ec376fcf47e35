// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Attention from a state of constant size S [dk, dv]. Every token decays the state, writes its value under its key, and
// reads the state with its query:
//
//   S <- diag(e^g) S
//   u  = w (v - S^T k)  by the delta rule, else  u = w v
//   S <- S + k u^T
//   o  = scale S^T q
//
// With g and w of each token and head this is Gated DeltaNet (Yang et al., arXiv 2412.06464); without g DeltaNet; with
// a g of each number of the key Kimi delta attention; without the delta rule Mamba2 (w = dt, g = -dt e^A), RetNet and
// lightning attention (a constant g), and gated linear attention (g of each number of the key).
//
// NAtS-L (spec mixers B 4): tokens lie in chunks, and at a chunk's end what it wrote is multiplied by a factor, 1 where
// the chunk is linear and 0 where it is softmax's: S <- S' + m (S - S'), S' being the state at the chunk's start,
// decayed by all of the chunk's tokens or not at all. Inside a chunk everything is as above.
//
// Shapes: B sequences, H value heads, Hk query and key heads (H a multiple of Hk; head h reads key head h / (H / Hk)),
// L tokens, dk key size, dv value size. Types: query, key, value float32 or bfloat16; g and w float32; states float32;
// arithmetic float32 (statistics float64 across tiles). Threads: any; the same bits for every thread count (a head, or
// a slice of a head's value columns, has one owner). Time linear in L; memory a state a head. Errors: kernels::Error
// before any work; kernels::Cancelled between chunks.

#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/attention_backward.h"
#include "kernels/tensor_view.h"

namespace headscope::kernels {

enum class Decay : std::uint8_t {
    none,
    head,     ///< one number a token and head
    channel,  ///< one a token, head and number of the key
};

struct RecurrentRule {
    double scale = 1.0;  ///< of what is read
    bool delta = true;
    Decay decay = Decay::head;
    // NAtS-L's chunks.
    std::int64_t chunk_size = 0;       ///< 0: none, and nothing below is read
    std::int64_t chunk_begin = 0;      ///< tokens of the first chunk that came in earlier calls, less than chunk_size
    std::int64_t chunks = 0;           ///< that these tokens touch: ceil((chunk_begin + L) / chunk_size)
    std::vector<float> kept;           ///< [B, H, chunks] the factor m; of a chunk that is still open it is not read
    bool decays_dropped = true;        ///< S' is decayed
    bool reads_own_chunk = true;       ///< false: o = scale (S at the chunk's start, decayed up to the token)^T q
    std::vector<std::int64_t> length;  ///< [B] or empty: all. Tokens beyond it write nothing and read 0
};

struct RecurrentInput {
    TensorView query, key;  ///< [B, Hk, L, dk]
    TensorView value;       ///< [B, H, L, dv]
    TensorView write;       ///< [B, H, L, 1], w, float32; data null: 1
    TensorView log_decay;   ///< [B, H, L, 1 or dk], g <= 0, float32; data null with Decay::none
    const RecurrentRule* rule = nullptr;
    const std::atomic<bool>* cancel = nullptr;  ///< may be null
    /// [H] or null: what the caller adds to each head's output times its value (Mamba2's D), which the implicit matrix
    /// then has on its diagonal, scale or not. Nothing else reads it. Not with chunks.
    const float* direct = nullptr;
};

/// State before and after the tokens of a call; contiguous float32, zeros at a text's beginning. All null: a whole text
/// in one call.
struct RecurrentState {
    float* now = nullptr;    ///< [B, H, dk, dv]
    float* start = nullptr;  ///< [B, H, dk, dv] at the start of the open chunk; null without chunks
    float* decay = nullptr;  ///< [B, H, 1 or dk] sum of g over the open chunk's tokens; null without chunks or decay
};

/// Tokens between two states that the backward pass reads. With chunks, each chunk starts a new piece.
inline constexpr std::int64_t kRecurrentPiece = 64;
/// Pieces of `length` tokens by `rule`: what the states of recurrent_forward are counted by.
std::int64_t recurrent_pieces(const RecurrentRule& rule, std::int64_t length);

/// Walks the tokens with the state in cache. `pieces` [B, H, recurrent_pieces, dk, dv] float32: the state at each
/// piece's start, for recurrent_backward; null: not wanted. Those of pieces that are all padding are not written.
void recurrent_forward(const RecurrentInput& input, const MutableView& output, const RecurrentState& state,
                       float* pieces);

/// d loss / d each input; null data: not wanted. Those of queries and keys are summed over the heads that read them.
struct RecurrentGradients {
    MutableView query, key, value;
    float* write = nullptr;      ///< [B, H, L]
    float* log_decay = nullptr;  ///< [B, H, L] or [B, H, L, dk]
    /// [B, H, chunks] d loss / d m (Eq. 16): the inner product of what the chunk wrote and the gradient of the state at
    /// its end. Of chunks with m = 0 only where `dropped_too` asks, else 0.
    float* kept = nullptr;
    bool dropped_too = false;
};

/// In pieces of kRecurrentPiece tokens, last piece first: memory is the gradient of one state and a piece's products a
/// thread; and where several value heads read a key head, what each adds to queries and keys, 2 B H L dk numbers. The
/// text begins in this call (no earlier state, chunk_begin 0). output_gradient [B, H, L, dv].
void recurrent_backward(const RecurrentInput& input, const TensorView& output_gradient, const float* pieces,
                        const RecurrentGradients& gradients);

/// The implicit matrix: the signed A with which o_i = sum over j <= i of A_ij v_j, for a text that begins in this call.
/// A_ij = scale w_j q_i^T M_i .. M_{j+1} k_j with M_t = diag(e^g_t), less w_t k_t k_t^T times that by the delta rule.
/// Rows are walked back from the query, many at a time: time L^2 dk a head, memory of a tile. input.value is not read,
/// its heads say H.
///
/// Queries [q_begin, q_end) and keys [k_begin, k_end) of one head into out [q_end - q_begin, k_end - k_begin]. Serial,
/// no LibTorch, no locks.
void implicit_weights(const RecurrentInput& input, std::int64_t b, std::int64_t h, std::int64_t q_begin,
                      std::int64_t q_end, std::int64_t k_begin, std::int64_t k_end, float* out);

/// Statistics of the rows of |A| divided by their sums. A row that sums to 0 (less than 2^-126) is left out, of means
/// too.
struct ImplicitStatistics {
    std::vector<double> entropy;           ///< [B, H] nats, summed over rows
    std::vector<double> entropy_row_mean;  ///< [B, H]
    std::vector<double> concentration;     ///< [B, H] Frobenius norm of the rows over their sums
};

/// Never L x L in memory; `dense` [B, H, L, L] float32 is filled too where it is not null.
void implicit_statistics(const RecurrentInput& input, ImplicitStatistics& statistics, float* dense);

}  // namespace headscope::kernels
