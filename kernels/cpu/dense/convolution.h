// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/convolution.h in blocks of tokens and channels, for the chosen SIMD target.

#include <cstdint>

#include "kernels/convolution.h"

namespace headscope::kernels::cpu {

inline constexpr std::int64_t kConvolutionTokens = 256, kConvolutionChannels = 128;  ///< of a block at most

struct ConvolutionTask {
    const ShortConvolution* work = nullptr;
    const float* weight = nullptr;                   ///< [taps, channels]
    const float* bias = nullptr;                     ///< [channels]
    std::int64_t sequence = 0, first = 0, last = 0;  ///< tokens [first, last)
    std::int64_t first_channel = 0, channels = 0;
    void* y = nullptr;  ///< forwards
    // Backwards; null: not wanted.
    const void* dy = nullptr;
    void* dx = nullptr;
    float* sums = nullptr;  ///< [taps + 1, all channels] d weight and d bias of the block, set
    float* scratch = nullptr;
};
std::int64_t convolution_scratch();
void convolution_block(const ConvolutionTask& task);
void convolution_backward_block(const ConvolutionTask& task);

}  // namespace headscope::kernels::cpu
