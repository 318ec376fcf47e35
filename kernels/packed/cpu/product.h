// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/packed/packed_product.h in pieces, for the chosen SIMD target.

#include <cstdint>

#include "kernels/packed/packed_product.h"

namespace headscope::kernels::cpu {

/// Values that are decoded at once: a block of 256, or several smaller ones. A part of them has one scale.
inline constexpr int kTileValues = 256, kTileParts = 16;

/// Floats that packed_sums() writes; 0 for types without offsets.
std::int64_t packed_sums_size(const PackedProduct& product);
/// Sums of x over the parts of a row: [tokens, parts], parts filled up to whole tiles with zeros.
void packed_sums(const PackedProduct& product, float* sums);

/// Rows [row_begin, row_end) of all tokens.
struct PackedTask {
    const PackedProduct* product = nullptr;
    std::int64_t row_bytes = 0;
    const float* sums = nullptr;
    std::int64_t row_begin = 0, row_end = 0;
};
void packed_rows(const PackedTask& task);

}  // namespace headscope::kernels::cpu
