// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/running.h by its formulas in float64, pair by pair: quadratic in time, and a row of weights in memory.

#include "kernels/running.h"

namespace headscope::kernels {

void running_forward_reference(const RunningInput& input, const MutableView& output, const RunningRows& rows,
                               const RunningState& state);
/// `rows` and `output` are not read.
void running_backward_reference(const RunningInput& input, const RunningRows& rows, const TensorView& output,
                                const TensorView& output_gradient, const AttentionGradients& gradients);

}  // namespace headscope::kernels
