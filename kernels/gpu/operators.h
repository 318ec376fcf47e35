// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The operators on a GPU (kernels/operators.h), by the library that gpu/host/plugin.h opens. Without a library, or
// without a kernel in it, they throw Error.

#include "kernels/attention.h"
#include "kernels/attention_backward.h"
#include "kernels/recurrent.h"
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

}  // namespace headscope::kernels
