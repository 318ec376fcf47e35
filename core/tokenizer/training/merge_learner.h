// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/progress.h"

namespace headscope::tokenizer {

/// Words as ids of their bytes, one behind the other.
struct CountedWords {
    std::vector<std::int32_t> symbols;
    std::vector<std::size_t> begins;   ///< word w: symbols [begins[w], begins[w + 1])
    std::vector<std::int64_t> counts;  ///< how often each occurs
};

struct LearnedMerges {
    std::vector<std::string> pieces;                            ///< those given, and what merges added
    std::vector<std::pair<std::int32_t, std::int32_t>> merges;  ///< in order
};

/// Merges the most frequent pair until there are `vocabulary` pieces or no pair that occurs `least_frequency` times.
LearnedMerges learn_merges(CountedWords words, std::vector<std::string> pieces, std::int64_t vocabulary,
                           std::int64_t least_frequency, Progress& progress, const Cancellation& cancellation);

}  // namespace headscope::tokenizer
