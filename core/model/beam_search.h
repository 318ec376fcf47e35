// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What an encoder-decoder says to a source text: the best of several beams. Threads: the compute thread. Errors:
// headscope::Error (usage for another model), Stopped when cancelled.

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/progress.h"

namespace headscope::model {

class Model;

struct BeamOptions {
    std::int64_t width = 4;       ///< 1: greedy
    double length_penalty = 0.6;  ///< alpha of ((5 + length) / 6)^alpha (Wu et al. 2016), by which sums are divided
    std::int64_t tokens = 100;    ///< at most so many new ones
    std::vector<std::int64_t> end_tokens;
    const Cancellation* cancellation = nullptr;
};

struct BeamResult {
    std::vector<std::int64_t> tokens;  ///< without the start token, with the end token where there is one
    double score = 0;                  ///< sum of log-probabilities over the penalty
};

/// The best hypothesis of `source` (not empty).
BeamResult beam_search(Model& model, std::span<const std::int64_t> source, const BeamOptions& options);

}  // namespace headscope::model
