// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "kernels/attention.h"

namespace headscope::kernels {

/// kernels::attention on a GPU. In a build without a GPU compiler a stub that throws Error.
void attention_gpu(const AttentionInput& input, OutputView output, const StatisticsRequest* request,
                   Statistics* statistics);

}  // namespace headscope::kernels
