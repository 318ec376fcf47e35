// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Row and element operators of a training step, each with its backward pass, in one sweep over memory where LibTorch
// takes several. Rows lie together in memory unless a stride is given. Types float32 or bfloat16, the same for all
// tensors of a call; arithmetic float32. Threads: any; work is shared through kernels/parallel.h and the result has the
// same bits for every thread count. Sizes and pointers are the caller's to check. `device`: the memory of all tensors
// of a call; a GPU's is the forced backend's (backend.h), whose library throws Error without a kernel. Column sums and
// rows by id are the processor's alone: LibTorch's operators on GPUs take one sweep, too.

#include <cstdint>

#include "kernels/tensor_view.h"

namespace headscope::kernels {

/// RMS norm (Zhang and Sennrich, arXiv 1910.07467): y = x r (gain + gain_offset), r = 1 / sqrt(mean x^2 + epsilon).
struct RmsNorm {
    std::int64_t rows = 0, size = 0;
    ElementType type = ElementType::float32;
    const void *x = nullptr, *gain = nullptr;  ///< [rows, size], [size]
    double epsilon = 1e-6, gain_offset = 0.0;
    float* inverse = nullptr;  ///< [rows] r: written by the forward pass, read by the backward one
};
void rms_norm(const RmsNorm& norm, void* y, Device device = Device::cpu);
/// dx_i = r (g_i - x_i r^2 mean(g x)), g = dy (gain + gain_offset); d_gain float32 [size] = sum over rows of dy x r.
/// `addend`, if given, is added to dx (the gradient that passes a residual block by). d_gain may be null.
void rms_norm_backward(const RmsNorm& norm, const void* dy, const void* addend, void* dx, float* d_gain,
                       Device device = Device::cpu);

/// SwiGLU (Shazeer, arXiv 2002.05202): y = silu(gate) up, gate_up [rows, 2 size]: gate, then up.
void gated_silu(const void* gate_up, ElementType type, std::int64_t rows, std::int64_t size, void* y,
                Device device = Device::cpu);
void gated_silu_backward(const void* gate_up, const void* dy, ElementType type, std::int64_t rows, std::int64_t size,
                         void* d_gate_up, Device device = Device::cpu);

/// sums [size] float32 of the columns of x [rows, size].
void column_sums(const void* x, ElementType type, std::int64_t rows, std::int64_t size, float* sums);

/// Rotary positions (Su et al., arXiv 2104.09864) of [rows, heads, size]; row n turns by line n % positions of the
/// tables. The first `turned` numbers of a head are turned in pairs, the others copied. backward: the other way round.
struct Rotation {
    std::int64_t rows = 0, heads = 0, size = 0, turned = 0, positions = 0;
    ElementType type = ElementType::float32;
    bool interleaved = false;                       ///< neighbours are pairs; else a number and that half further on
    const void *cosine = nullptr, *sine = nullptr;  ///< [positions, turned / 2]
    const void* x = nullptr;
    std::int64_t row_stride = 0;  ///< of x, in elements; heads lie together
    void* y = nullptr;            ///< rows lie together, or are y_stride apart
    std::int64_t y_stride = 0;
    bool backward = false;
};
void rotate(const Rotation& rotation, Device device = Device::cpu);

/// table gradient [.., size] += rows of dy [count, size] by id; those of one entry are added up in float32, in the
/// order in which they stand.
void add_rows_by_id(const std::int64_t* ids, std::int64_t count, const void* dy, ElementType type, std::int64_t size,
                    void* table_gradient);

/// Softmax cross-entropy of logits [rows, entries] with targets in [0, entries) or -1: ignored. For each row
/// loss = log Z - logit of the target and normaliser = log Z, both 0 where ignored. With `gradients` the logits are
/// overwritten by d (loss + z_loss normaliser^2) / d logits. Targets and results are in memory of the processor.
struct CrossEntropy {
    std::int64_t rows = 0, entries = 0;
    ElementType type = ElementType::float32;
    void* logits = nullptr;
    const std::int64_t* targets = nullptr;
    double z_loss = 0.0;
    bool gradients = true;
    double *loss = nullptr, *normaliser = nullptr;  ///< [rows]
};
void cross_entropy(const CrossEntropy& work, Device device = Device::cpu);

}  // namespace headscope::kernels
