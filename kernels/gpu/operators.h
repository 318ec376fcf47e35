// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The operators on a GPU (kernels/operators.h), by the library that gpu/host/plugin.h opens. Without a library, or
// without a kernel in it, they throw Error.

#include "kernels/attention.h"
#include "kernels/attention_backward.h"
#include "kernels/convolution.h"
#include "kernels/optimizer.h"
#include "kernels/recurrent.h"
#include "kernels/rows.h"
#include "kernels/running.h"
#include "kernels/taylor_state.h"

namespace headscope::kernels {

void attention_gpu(const AttentionInput& input, OutputView output, const StatisticsRequest* request,
                   Statistics* statistics);
void attention_forward_gpu(const AttentionInput& input, const MutableView& output, const SoftmaxRows& rows);
void attention_backward_gpu(const AttentionInput& input, const TensorView& output, const TensorView& output_gradient,
                            const SoftmaxRows& rows, const AttentionGradients& gradients);
void recurrent_forward_gpu(const RecurrentInput& input, const MutableView& output, const RecurrentState& state,
                           float* pieces);
void recurrent_backward_gpu(const RecurrentInput& input, const TensorView& output_gradient, const float* pieces,
                            const RecurrentGradients& gradients);
void implicit_statistics_gpu(const RecurrentInput& input, ImplicitStatistics* statistics, float* dense);
void running_forward_gpu(const RunningInput& input, const MutableView& output, const RunningRows& rows,
                         const RunningState& state);
void running_backward_gpu(const RunningInput& input, const RunningRows& rows, const TensorView& output,
                          const TensorView& output_gradient, const AttentionGradients& gradients);
void taylor_forward_gpu(const TaylorInput& input, const MutableView& output, float* state);

// Row operators, convolution and optimizer (kernels/rows.h, convolution.h, optimizer.h) in memory of `device`; what
// those headers' functions check is the caller's to check.
void rms_norm_gpu(const RmsNorm& norm, void* y, Device device);
void rms_norm_backward_gpu(const RmsNorm& norm, const void* dy, const void* addend, void* dx, float* d_gain,
                           Device device);
void gated_silu_gpu(const void* gate_up, ElementType type, std::int64_t rows, std::int64_t size, void* y,
                    Device device);
void gated_silu_backward_gpu(const void* gate_up, const void* dy, ElementType type, std::int64_t rows,
                             std::int64_t size, void* d_gate_up, Device device);
void rotate_gpu(const Rotation& rotation, Device device);
/// `targets`, `loss` and `normaliser` in memory of the processor.
void cross_entropy_gpu(const CrossEntropy& work, Device device);
void short_convolution_gpu(const ShortConvolution& work, void* y, Device device);
void short_convolution_backward_gpu(const ShortConvolution& work, const void* dy, void* dx, float* d_weight,
                                    float* d_bias, Device device);
void adamw_step_gpu(const FlatParameters& parameters, const AdamWSettings& settings, Device device);
double squared_norm_gpu(const void* values, ElementType type, std::int64_t size, Device device);

}  // namespace headscope::kernels
