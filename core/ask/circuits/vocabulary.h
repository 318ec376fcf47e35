// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Heads' products between tokens: W_E M W_U and W_E QK W_E^T. Memory: some rows of a V x V matrix at a time. Threads:
// the compute thread, under inference mode.

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/ask/circuits/head_factors.h"
#include "core/base/progress.h"

namespace headscope::ask::circuits {

/// Tables of tokens as maps to and from the residual stream; positions, norms and scales of the embedding are left out.
struct TokenMaps {
    at::Tensor embedding;    ///< W_E [V, d] float32; undefined: the model has no table in memory
    at::Tensor source{};     ///< W_E of an encoder whose output a decoder reads; undefined: as above, or one stack
    at::Tensor unembedding;  ///< W_U [V, d] (a row per token) float32; undefined: no linear head in memory
};
/// `fold`: the final norm's gain scales W_U, and a layer norm centers it.
TokenMaps token_maps(const model::Model& model, bool fold);

/// W_U W_E [d, d] float64, with W_U [d, V] here; undefined where one of the tables is.
at::Tensor unembedded_embedding(const TokenMaps& maps, const Cancellation& cancellation);

/// Eigenvalue scores of W_E OV W_U, [H], from the dv x dv matrices O (W_U W_E) V.
at::Tensor copying_score(const HeadFactors& factors, const at::Tensor& unembedded_embedding);

struct TokenPair {
    std::int64_t row = 0, column = 0;
    double value = 0;
};
/// The `count` largest entries of left right^T, [V, k] and [W, k], in descending order; equal ones by row, then column.
std::vector<TokenPair> largest_entries(const at::Tensor& left, const at::Tensor& right, std::int64_t count,
                                       const Cancellation& cancellation);

}  // namespace headscope::ask::circuits
