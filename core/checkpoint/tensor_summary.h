// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// Statistics of one tensor's numbers. Extremes, mean, deviation, norm and histogram cover finite values, NaN without
/// any; booleans are 0 and 1. Computed in float64: integers beyond 2^53 are rounded.
struct TensorSummary {
    std::int64_t elements = 0, finite = 0, zeros = 0, nans = 0, positive_infinities = 0, negative_infinities = 0;
    double minimum = std::numeric_limits<double>::quiet_NaN(), maximum = minimum, mean = minimum;
    double deviation = minimum;  ///< divisor n
    double norm = minimum;       ///< square root of the sum of squares
    /// Bins of equal width from minimum to maximum, the last one closed; one bin where all values are equal.
    std::vector<double> edges;         ///< counts.size() + 1, or empty
    std::vector<std::int64_t> counts;  ///< finite values only
};

/// Bins of the histograms in window and figures.
inline constexpr std::size_t kUsualBins = 100;

/// Reads the tensor twice, in pieces of a few megabytes, views with strides too: memory does not grow with its size.
/// `progress` gets the share that is done, 0 to 1. Needs no thread but the caller's.
/// Errors: as Checkpoint::load; unsupported for complex numbers and types that LibTorch lacks; Stopped.
TensorSummary summarise_tensor(const Checkpoint& checkpoint, const std::string& tensor, std::size_t bins,
                               const std::function<void(double)>& progress, const Cancellation& cancellation);

}  // namespace headscope::checkpoint
