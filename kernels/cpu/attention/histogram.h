// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Counting scores into the bins of histogram_edges(): a multiplication inside +-8, a table of the float's leading bits
// beyond. Compiled for the baseline processor only.

#include <array>
#include <cstdint>

#include "kernels/statistics.h"

namespace headscope::kernels::cpu {

using HistogramCounts = std::array<std::uint64_t, kHistogramBins>;

inline constexpr int kLinearBins = 64;                                 ///< quarters from -8 to 8
inline constexpr int kOuterBins = (kHistogramBins - kLinearBins) / 2;  ///< on each side, the open one among them

/// Counts the scores t[0, n) (base 2; masked ones are left out, and NaN) into `counts`.
void count_scores(const float* t, std::int64_t n, std::uint32_t* counts);

/// Adds counts that a thread has collected; any thread, any order.
void add_counts(const std::uint32_t* from, HistogramCounts& to);

}  // namespace headscope::kernels::cpu
