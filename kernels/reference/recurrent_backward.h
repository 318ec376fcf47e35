// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/recurrent.h backwards by the formula in float64, token by token, from the last to the first: with dS the
// gradient of the state after a token, and S that before its write (decayed),
//
//   dS += scale q dO^T             dq = scale S_after dO
//   du  = dS^T k                   dk = dS u,  dv = w du,  dw = du . (v - S^T k)
//   by the delta rule also         dk -= S (w du),  dS -= k (w du)^T
//   dg  = the sum of dS * S over what g decays,  dS <- diag(e^g) dS
//
// The states of all tokens of a head are in memory. `pieces` is not read.

#include "kernels/recurrent.h"

namespace headscope::kernels {

void recurrent_backward_reference(const RecurrentInput& input, const TensorView& output_gradient, const float* pieces,
                                  const RecurrentGradients& gradients);

}  // namespace headscope::kernels
