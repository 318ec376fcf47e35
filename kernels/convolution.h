// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Depthwise causal convolution over time with a few taps, and SiLU after it, as the mixers with a state have it before
// their heads; one sweep over memory forwards and one backwards, where LibTorch's operators take thirty.
//
//   s_tc = bias_c + sum over j < taps of weight_cj x_{t - taps + 1 + j, c},   y = silu(s), or s where `plain`
//
// Types float32 or bfloat16, the same for all tensors of a call; arithmetic float32, sums over tokens float64 across
// blocks. Threads: any; the same bits for every thread count. `device`: the memory of all tensors of a call, as in
// rows.h. Errors: kernels::Error before any work.

#include <cstdint>

#include "kernels/tensor_view.h"

namespace headscope::kernels {

struct ShortConvolution {
    std::int64_t batch = 0, length = 0, channels = 0, taps = 0;  ///< 1 to kMostTaps taps
    ElementType type = ElementType::float32;
    const void* x = nullptr;       ///< [batch, length, channels]
    std::int64_t row_stride = 0;   ///< of x, in elements; sequences lie together
    const void* weight = nullptr;  ///< [channels, taps], the last tap meets the current token
    const void* bias = nullptr;    ///< [channels] or null
    const void* before = nullptr;  ///< [batch, taps - 1, channels] what came before the tokens; null: zeros
    bool plain = false;
};
inline constexpr std::int64_t kMostTaps = 32;

/// y [batch, length, channels].
void short_convolution(const ShortConvolution& work, void* y, Device device = Device::cpu);

/// From dy [batch, length, channels]: dx likewise, d_weight [channels, taps] and d_bias [channels] float32; null: not
/// wanted. `before` must be null: a text from its beginning.
void short_convolution_backward(const ShortConvolution& work, const void* dy, void* dx, float* d_weight, float* d_bias,
                                Device device = Device::cpu);

}  // namespace headscope::kernels
