// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Attention for training: a forward pass that keeps O and two numbers a row, and a backward pass that makes the weights
// again from them, tile by tile (Dao et al., arXiv 2205.14135; Rabe and Staats, arXiv 2112.05682). No L x L matrix.
//
// Shapes, rule and threads as in kernels/attention.h; inputs, O and gradients are float32 or bfloat16, arithmetic is
// float32. The result has the same bits for every thread count: a tile of gradients has one owner, who adds in a fixed
// order. Normalisers: those whose traits say so (kernels/normaliser.h), with all that a rule may hold beside them;
// gradients are of q, k, v, sink logits, distance biases and offsets. Both passes obey ScoreRule::dropout. Errors:
// kernels::Error before any work; kernels::Cancelled between tiles.

#include <cstdint>

#include "kernels/attention.h"

namespace headscope::kernels {

/// Row constants of the forward pass, [B, H, Lq] each; with t = s log2(e)
///   softmax: A = 2^(t - shift) * factor; elastic: the same and its offset, or 0;
///   sparsemax: A = ln 2 * max(t - shift - factor, 0); entmax: A = (ln 2 / 2 * max(t - shift - factor, 0))^2;
///   Taylor:  A = (1 + s + s^2 / 2) * factor; sigmoid: A = 1 / (1 + 2^-t), whatever the two.
/// Two numbers, because one float32 log normaliser near +-1000 would cost four digits. Weights of a row that sees no
/// key are 0.
struct SoftmaxRows {
    float* shift = nullptr;
    float* factor = nullptr;
};

/// O = A V and the constants of its rows.
void attention_forward(const AttentionInput& input, const MutableView& output, const SoftmaxRows& rows);

/// d loss / d q, k, v; those of keys and values summed over the heads that read them. Queries, keys and values that
/// padding hides have gradients of 0.
struct AttentionGradients {
    MutableView query, key, value;
    // Gradients of optional parts of the rule; null skips one.
    float* sinks = nullptr;          ///< [H] d loss / d sink logit
    float* distance_bias = nullptr;  ///< [H, bias_length] d loss / d distance bias
    /// [B, H, blocks] of a softmax without a soft cap: d loss / d factor, a factor before e^s of all keys of the block
    /// for queries of other blocks, 1 where it is visible and 0 where it is not (NAtS-L, Deng et al., Eq. 14 and 15):
    /// the sum of A_ij (dO_i . v_j - dO_i . O_i). Of hidden blocks 0 unless `hidden_blocks` asks for it; there A_ij is
    /// e^s by the constants of the row as it is (0 in rows that see no key), and all pairs of scores are computed.
    float* blocks = nullptr;
    bool hidden_blocks = false;
    float* offsets = nullptr;  ///< [H] d loss / d offset of the elastic normaliser
};

/// output: O of attention_forward; output_gradient: d loss / d O, both [B, H, Lq, dv].
///
/// Normalisers with weights of exactly 0 (sparsemax, entmax, elastic) take the products S and dA twice: what is
/// subtracted is a sum over the weights that are not. Memory: float32 copies of one head's q, dO, k and v and their
/// gradients a thread; where there are few heads, also partial gradients of the queries.
void attention_backward(const AttentionInput& input, const TensorView& output, const TensorView& output_gradient,
                        const SoftmaxRows& rows, const AttentionGradients& gradients);

}  // namespace headscope::kernels
