// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/recurrent.h by its formulas in float64, token by token; states are read and left in float32.

#include "kernels/recurrent.h"

namespace headscope::kernels {

void recurrent_forward_reference(const RecurrentInput& input, const MutableView& output, const RecurrentState& state,
                                 float* pieces);
void implicit_weights_reference(const RecurrentInput& input, std::int64_t b, std::int64_t h, std::int64_t q_begin,
                                std::int64_t q_end, std::int64_t k_begin, std::int64_t k_end, float* out);
void implicit_statistics_reference(const RecurrentInput& input, ImplicitStatistics* statistics, float* dense);

}  // namespace headscope::kernels
