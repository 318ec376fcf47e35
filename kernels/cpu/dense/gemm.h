// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/gemm.h in pieces, for the chosen SIMD target.

#include <cstdint>

#include "kernels/gemm.h"

namespace headscope::kernels::cpu {

/// Steps of a product that are done while a panel of the right factor stays in the first-level cache.
inline constexpr std::int64_t kProductSteps = 256;

/// Steps [step_begin, step_end) of some panels of the right factor: [panel][k][panel width], the last panel filled up
/// with zeros.
struct PackRightTask {
    MatrixView right;
    std::int64_t panel_begin = 0, panel_end = 0, step_begin = 0, step_end = 0;
    float* packed = nullptr;
};
void pack_right(const PackRightTask& task);

/// Rows [row_begin, row_end) and panels [panel_begin, panel_end) of the result.
struct ProductTask {
    MatrixView left;
    const float* right = nullptr;  ///< packed
    std::int64_t columns = 0;
    ProductTarget target;
    std::int64_t row_begin = 0, row_end = 0, panel_begin = 0, panel_end = 0;
    float* scratch = nullptr;
};
void multiply_tile(const ProductTask& task);
std::int64_t product_scratch(std::int64_t rows);

}  // namespace headscope::kernels::cpu
