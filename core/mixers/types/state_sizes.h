// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Sizes of a mixer that keeps a state, from its options and the sizes of the model's attention. Threads: any.

#include <cstdint>

#include "core/mixers/types/options.h"
#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// As options say them: whether heads divide and numbers are whole is the mixer's to check (DeltaSizes, Mamba2Mixer).
struct StateSizes {
    std::int64_t query_heads = 0;
    std::int64_t heads = 0;   ///< states: heads of values
    std::int64_t groups = 0;  ///< heads of keys as a file has them: fewer where queries or states share one
    std::int64_t key_size = 0;
    double value_size = 0;
    std::int64_t taps = 0;  ///< of the convolution; 0: none
};

/// `heads` and `head_size` of the model's attention. Of a type without a state: those, once each.
StateSizes state_sizes(const MixerType& type, const MixerOptions& options, std::int64_t heads, std::int64_t head_size);

/// Heads, and numbers of one; then those of all heads together are far from what int64 holds, and a Site's from int32.
inline constexpr std::int64_t kMostOfState = std::int64_t{1} << 26;

/// Throws Error(mismatch) by the option where one of them is greater.
void check_state_sizes(const MixerType& type, const StateSizes& sizes);

}  // namespace headscope::mixers
