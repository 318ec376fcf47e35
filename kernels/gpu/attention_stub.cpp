// SPDX-License-Identifier: GPL-3.0-or-later
// Stands in for the GPU backend in builds without one.
#include "kernels/backend.h"
#include "kernels/gpu/attention.h"

namespace headscope::kernels {

void attention_gpu(const AttentionInput&, OutputView, const StatisticsRequest*, Statistics*) {
    throw Error("gpu attention", "a build with a GPU backend", "one without; the cpu and reference backends are there");
}

}  // namespace headscope::kernels
