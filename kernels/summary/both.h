// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Functions that run on the processor and inside GPU kernels.

#if defined(__CUDACC__) || defined(__HIPCC__)
#define HEADSCOPE_BOTH __host__ __device__ inline
#else
#define HEADSCOPE_BOTH inline
#endif

namespace headscope::kernels {

inline constexpr double kLog2E = 1.4426950408889634;
inline constexpr double kLn2 = 0.6931471805599453;

}  // namespace headscope::kernels
