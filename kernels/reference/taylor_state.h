// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// taylor_forward by its formulas in float64, token by token; the state is read and left in float32.

#include "kernels/taylor_state.h"

namespace headscope::kernels {

void taylor_forward_reference(const TaylorInput& input, const MutableView& output, float* state);

}  // namespace headscope::kernels
