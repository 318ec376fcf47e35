// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/attention_backward.h in plain float64 ATen, with whole matrices. With s' = scale q k + biases and
// s = cap tanh(s' / cap), per head and row i:
//
//   dV_j = sum_i A_ij dO_i      dA_ij = dO_i . V_j      dS_ij = A_ij (dA_ij - sum_j A_ij dA_ij)
//   dS'_ij = dS_ij (1 - (s_ij / cap)^2)      dQ_i = scale sum_j dS'_ij K_j      dK_j = scale sum_i dS'_ij Q_i

#include "kernels/attention_backward.h"

namespace headscope::kernels {

void attention_forward_reference(const AttentionInput& input, const MutableView& output, const SoftmaxRows& rows);
/// `output` and `rows` are not read.
void attention_backward_reference(const AttentionInput& input, const TensorView& output,
                                  const TensorView& output_gradient, const SoftmaxRows& rows,
                                  const AttentionGradients& gradients);

}  // namespace headscope::kernels
