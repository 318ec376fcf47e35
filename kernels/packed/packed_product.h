// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Products of a few tokens with a matrix that stays in GGUF's blocks: decoding reads each stored byte once and writes
// no expanded weight to memory. A matrix of many tokens is faster expanded, then multiplied (gemm.h).
//
// A weight is s q - m with a small integer q; s and m belong to a part of 16 or 32 columns. With x_i in float32
//
//   y = bias + sum over parts of (s (sum of q_i x_i) - m (sum of x_i))
//
// Each term takes part in at most packed_product_roundings(columns) = k roundings of relative size 2^-24:
//
//   |error of y| <= k 2^-24 (|bias| + sum over columns of (|s q| + |m|) |x|)
//
// as for a float32 dot product of the expanded weights. q, float16 scales and weights in F16 and BF16 are read exactly.
// Numbers below 2^-126 count as 0; |x| must be below 2^100. Infinite or NaN x makes y of its token infinite or NaN.
//
// Bits of y[token, row] depend on the row, the token and the SIMD target alone: neither on the thread count, nor on
// the other rows and tokens of the call.
//
// Threads: any; work is shared through kernels/parallel.h. Errors: kernels::Error before any work is done.

#include <cstdint>

#include "kernels/packed/packed_type.h"

namespace headscope::kernels {

struct PackedProduct {
    PackedType type = PackedType::f16;
    const void* blocks = nullptr;  ///< [rows, columns] in whole blocks, at any address; rows lie together
    std::int64_t rows = 0, columns = 0;
    const float* x = nullptr;  ///< [tokens, columns]; fastest where rows begin at multiples of 32 bytes
    std::int64_t tokens = 0, x_stride = 0;
    const float* bias = nullptr;  ///< [rows] or null
    float* y = nullptr;           ///< [tokens, rows]
    std::int64_t y_stride = 0;
};

/// Writes y. Scales must be finite; a block with another one makes its row NaN or infinite.
void packed_product(const PackedProduct& product);

bool packed_product_supported(PackedType type);

/// Roundings of one term in a sum over `columns` products, at most.
std::int64_t packed_product_roundings(std::int64_t columns);

}  // namespace headscope::kernels
