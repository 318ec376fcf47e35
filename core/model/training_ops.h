// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Operators of blocks under autograd: LibTorch's functions with one kernel of ours forward and one backward
// (kernels/rows.h, kernels/gemm.h). Gradients have the same bits for every thread count. Types float32 and bfloat16;
// for others (float64 of the checks), and on devices whose memory kernels do not read, `fused` returns false, and
// callers use LibTorch's operators.
//
// Each knows its first derivative only. Threads: the compute thread. Shapes: [.., d] is rows of d.

#include <cstdint>
#include <utility>

#include <ATen/core/Tensor.h>

#include "kernels/convolution.h"
#include "kernels/tensor_view.h"

namespace headscope::model {

/// True if autograd records operations on x.
bool recorded(const at::Tensor& x);
/// True if it does and the functions below support type and device.
bool fused(const at::Tensor& x);
/// The same of linear maps and embeddings: for tensors of the processor. GPUs take LibTorch's, which need no more
/// sweeps.
bool fused_on_processor(const at::Tensor& x);
/// The same for kernels of attention, whose operands may be on any device (for_kernel).
bool trains_by_kernel(const at::Tensor& x);

/// float32 or bfloat16; for a tensor that `fused` has accepted.
kernels::ElementType element_type(const at::Tensor& x);

/// fused_on_processor(): x weight^T + bias; weight [out, in], perhaps a transposed view; bias [out] or undefined. x or
/// weight is recorded.
at::Tensor trained_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// x / sqrt(mean x^2 + epsilon) * (gain + gain_offset)
at::Tensor trained_rms_norm(const at::Tensor& x, const at::Tensor& gain, double epsilon, double gain_offset);

/// [.., 2 f] gate and up -> [.., f] silu(gate) up
at::Tensor trained_gated_silu(const at::Tensor& gate_up);

/// kernels/convolution.h of x [B, L, channels], weight [channels, taps], bias [channels] or undefined. x, weight or
/// bias is recorded, all are of one type.
at::Tensor trained_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool plain);
/// Its input; the tensors stay the caller's.
kernels::ShortConvolution convolution_of(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                         bool plain);

/// heads [B, L, N, size] turned by cosine and sine [L, turned / 2] of their type, as kernels::Rotation says.
at::Tensor trained_rotation(const at::Tensor& heads, const at::Tensor& cosine, const at::Tensor& sine,
                            std::int64_t turned, bool interleaved);

/// fused_on_processor(): rows of table [V, d] by ids [B, L] -> [B, L, d].
at::Tensor trained_embedding(const at::Tensor& table, const at::Tensor& ids);

/// Views of the first `count` heads of [B, L, N, size] and of the others. Where autograd records, of any type, backward
/// joins them without the zeros that LibTorch's narrow() fills.
std::pair<at::Tensor, at::Tensor> split_heads(const at::Tensor& heads, std::int64_t count);

}  // namespace headscope::model
