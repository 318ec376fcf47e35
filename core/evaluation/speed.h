// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Milliseconds a sample (thesis, Table 2.3), of random tokens: ratios of models on one machine are what counts.
// Threads: the compute thread. Errors: Error, Stopped.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/evaluation/score.h"
#include "core/model/trainable.h"

namespace headscope::evaluation {

struct SpeedOptions {
    std::int64_t batch = 8;  ///< samples of a pass
    std::uint64_t seed = 1;
    double seconds = 10;  ///< of each of the two, at most; but three runs are made
    /// The model to train; empty: no training steps. Called when its turn has come, and dropped after.
    std::function<std::unique_ptr<model::Trainable>()> open;
};

struct SpeedValue {
    std::string metric;       ///< "forward_ms"; "step_ms": both passes and AdamW's update, for the head's own objective
    double milliseconds = 0;  ///< of a sample: the median of runs over the batch
    double error = 0;         ///< half the interquartile range
    std::int64_t runs = 0;
};

/// Sequences of `length` tokens, an encoder-decoder's target as long. A model that cannot be trained here
/// has no step_ms.
std::vector<SpeedValue> measure_speed(model::Model& model, const SpeedOptions& options, std::int64_t length,
                                      const ScoreOptions& score);

}  // namespace headscope::evaluation
