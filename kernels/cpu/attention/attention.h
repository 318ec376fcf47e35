// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/attention.h"

namespace headscope::kernels {

/// kernels::attention for processors: float32 or bfloat16 inputs, float32 output, checked before. Runs the SIMD target
/// that cpu::choose_target has set, shared among the team of kernels/parallel.h.
///
/// Memory beyond inputs and outputs: K once more in float32 (one sequence of a batch at a time), [heads, queries]
/// constants, [heads, keys] column sums and about a megabyte a thread; never L x L. Sparsemax: 12 rows of L a thread.
void attention_cpu(const AttentionInput& input, OutputView output, const StatisticsRequest* request,
                   Statistics* statistics);

namespace cpu {

/// Names of the SIMD targets compiled in that this processor runs, best first.
const std::vector<std::string>& target_names();
/// Takes the named target from now on, "" the best. The name must be one of target_names().
void choose_target(const std::string& name);
/// Remembers for last_target() which target runs now.
void note_target();
/// The target that the last operator of this thread ran, as the SIMD code itself states it.
std::string last_target();

}  // namespace cpu
}  // namespace headscope::kernels
