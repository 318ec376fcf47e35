// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "kernels/attention.h"

namespace headscope::kernels {

/// Gives every vector of `out` the size that the request asks for: NaN where a number may stay undefined, else 0.
void prepare_statistics(const AttentionInput& input, const StatisticsRequest& request, Statistics& out);

}  // namespace headscope::kernels
