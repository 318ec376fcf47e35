// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Matrix products of bfloat16 at float32's speed, on processors that have none of their own. Threads: any.

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace headscope::model {

/// True where LibTorch's products of bfloat16 run in hardware: AVX512-BF16, AMX, a processor that is no x86, or a GPU.
bool multiplies_bfloat16(const at::Device& device);

/// at::linear(x, weight, bias). Without multiplies_bfloat16(), widened_linear() where x and weight are bfloat16 and
/// autograd does not record.
at::Tensor linear_map(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

/// Numbers of a piece of a weight in widened_linear(), at most.
inline constexpr std::int64_t kWidenedNumbers = 1 << 24;

/// The same for bfloat16: the weight becomes float32 piece by piece, sums are float32, results are rounded once.
at::Tensor widened_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace headscope::model
