// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// AdamW (Loshchilov and Hutter, arXiv 1711.05101) over one flat vector of all parameters, in one sweep over memory, and
// the norm of all gradients. Threads: any; work is shared through kernels/parallel.h in pieces of a fixed size, so the
// result has the same bits for every thread count. Errors: kernels::Error before any work is done.

#include <cstdint>

#include "kernels/tensor_view.h"

namespace headscope::kernels {

/// Everything a step reads and writes, [size] each. Pointers may not overlap.
struct FlatParameters {
    std::int64_t size = 0;
    std::int64_t decayed = 0;  ///< elements [0, decayed) take weight decay
    ElementType type = ElementType::float32;
    void* weights = nullptr;
    float* master = nullptr;  ///< float32 weights of which bfloat16 `weights` are the rounded copy; null with float32
    ElementType gradient_type = ElementType::float32;
    void* gradients = nullptr;
    float *first = nullptr, *second = nullptr;  ///< running means of the gradient and of its square; 0 at the start
};

struct AdamWSettings {
    double rate = 0.0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0.0;
    std::int64_t step = 1;         ///< of this update, counted from 1: the means are corrected by 1 - beta^step
    double gradient_scale = 1.0;   ///< what gradients are multiplied by first (1 / accumulated batches, clipping)
    bool clear_gradients = false;  ///< sets them to 0 on the way
};

/// w -= rate (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + decay w), decay only where it is due: the
/// formula and order of torch.optim.AdamW. Arithmetic in float32, constants in float64. `device`: of all pointers.
void adamw_step(const FlatParameters& parameters, const AdamWSettings& settings, Device device = Device::cpu);

/// Sum of squares in float64, added up in a fixed order. NaN and infinity show in the result.
double squared_norm(const void* values, ElementType type, std::int64_t size, Device device = Device::cpu);

}  // namespace headscope::kernels
