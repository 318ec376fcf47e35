// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Attention maps without the map: rectangles of A or s recomputed from q, k and the row constants. The dense ones,
// attention_weights and attention_scores, are in kernels/attention.h.

#include <cstdint>
#include <span>

#include "kernels/attention.h"

namespace headscope::kernels {

/// Queries [q_begin, q_end) by keys [k_begin, k_end) of head h of sequence b.
struct MapRectangle {
    std::int64_t b = 0, h = 0;
    std::int64_t q_begin = 0, q_end = 0, k_begin = 0, k_end = 0;
};

/// Mean and maximum of the weights under each pixel of a rectangle drawn with rows x columns pixels, so that a diagonal
/// or a sink column one cell wide is still seen. Cell (i, j) belongs to pixel ((i - q_begin) * rows / queries,
/// (j - k_begin) * columns / keys), integer division; hidden pairs count as 0. mean and maximum are [rows, columns],
/// float32, either may be null. 1 <= rows <= queries, 1 <= columns <= keys.
///
/// row_constant: [B, H, Lq] as attention() gave it. Shared out over the team of kernels/parallel.h, in bands of pixel
/// rows; memory: a few MB a thread. The result has the same bits for every thread count. input.value is not read.
/// Errors: Error before any work; Cancelled (input.cancel) between tiles.
void attention_map(const AttentionInput& input, std::span<const float> row_constant, const MapRectangle& rectangle,
                   std::int64_t rows, std::int64_t columns, float* mean, float* maximum);

}  // namespace headscope::kernels
