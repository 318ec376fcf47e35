// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/rows.h for rows [begin, end), for the chosen SIMD target.

#include <cstdint>

#include "kernels/rows.h"

namespace headscope::kernels::cpu {

void rms_norm_rows(const RmsNorm& norm, void* y, std::int64_t begin, std::int64_t end);
/// d_gain: this piece's own [size], set; or null.
void rms_norm_backward_rows(const RmsNorm& norm, const void* dy, const void* addend, void* dx, float* d_gain,
                            std::int64_t begin, std::int64_t end);

/// sums [size] = of rows [begin, end).
void column_sums_rows(const void* x, ElementType type, std::int64_t size, std::int64_t begin, std::int64_t end,
                      float* sums);

struct GatedTask {
    const void* gate_up = nullptr;
    ElementType type = ElementType::float32;
    std::int64_t size = 0, begin = 0, end = 0;
    const void* dy = nullptr;  ///< null: forward
    void* out = nullptr;
};
void gated_silu_rows(const GatedTask& task);

void rotate_rows(const Rotation& rotation, std::int64_t begin, std::int64_t end);

/// to [size] += rows `positions` of `from`, added up in float32 in that order.
struct AddRowsTask {
    const void* from = nullptr;
    ElementType type = ElementType::float32;
    std::int64_t size = 0;
    const std::int64_t* positions = nullptr;
    std::int64_t count = 0;
    void* to = nullptr;
};
void add_rows(const AddRowsTask& task);

/// scratch: [entries] float32.
void cross_entropy_rows(const CrossEntropy& work, std::int64_t begin, std::int64_t end, float* scratch);

}  // namespace headscope::kernels::cpu
