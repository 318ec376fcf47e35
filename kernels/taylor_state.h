// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Taylor weights in linear time: causal attention with the weights of the Normaliser::taylor group, from a state
// whose size does not depend on the length (Deconstructing Attention, Eq. 14-17; Arora et al., arXiv 2402.18668).
//
// With x = (1, k_1, .., k_dk) every term of 1 + s + t2 is a number of the query times a product x_a x_b, so a head's
// state is, for each such product, its sum over the tokens times (v, 1): the last column makes the denominators. Equal
// products are merged: 1 + dk + dk (dk + 1) / 2 rows of them, or 1 + 2 dk with a diagonal second order.
//
// A longer text is read in chunks: within a chunk by pairs, what came before from the state. Shapes as in
// kernels/running.h. float32 and bfloat16 in and out, arithmetic float32; the same bits for every thread count (a key
// head has one owner). A product of large queries and keys that nearly cancel to a small score loses digits that the
// quadratic form keeps: errors are relative to 1 + |q| |k| scale + (|q| |k| scale)^2 / 2.

#include <atomic>
#include <cstdint>

#include "kernels/attention_backward.h"
#include "kernels/score_rule.h"
#include "kernels/tensor_view.h"

namespace headscope::kernels {

struct TaylorInput {
    TensorView query, key, value;
    double scale = 1.0;
    Normaliser normaliser = Normaliser::taylor;
    const std::atomic<bool>* cancel = nullptr;  ///< may be null
};

/// Rows of a head's state.
std::int64_t taylor_features(Normaliser normaliser, std::int64_t key_size);

/// `state` [B, G, taylor_features, dv + 1], zeros at a text's beginning; the tokens follow those that it holds, and it
/// then holds them too. null: a text that begins and is not continued. Memory: a head's state and a chunk a thread.
void taylor_forward(const TaylorInput& input, const MutableView& output, float* state);

/// True if `length` tokens from a text's beginning cost fewer multiplications from a state than pair by pair.
bool taylor_prefers_state(Normaliser normaliser, std::int64_t length, std::int64_t heads, std::int64_t key_heads,
                          std::int64_t key_size, std::int64_t value_size);

}  // namespace headscope::kernels
