// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Perplexity by position: how well a model predicts the tokens at each distance from the begin of a long text.
// Threads: the compute thread. Errors: Error (what score() throws; usage for too short a text), Stopped.

#include <cstdint>
#include <vector>

#include "core/evaluation/documents.h"
#include "core/evaluation/score.h"

namespace headscope::evaluation {

struct PositionOptions {
    std::int64_t length = 0;       ///< L, tokens of a block; 2 or more
    std::int64_t bucket = 0;       ///< positions that are put together, 1 to L
    std::int64_t most_tokens = 0;  ///< stop after this number; 0: all
    ScoreOptions score;
};

/// Tokens (last - bucket, last] of every block, counted from 1; the first token of a block is not predicted.
struct PositionBucket {
    std::int64_t last = 0;
    std::int64_t tokens = 0;  ///< of all blocks
    double loss = 0;          ///< nats a token: the mean over all of them
    double error = 0;         ///< standard error over blocks of their means; NaN for one block
};

/// All documents' tokens, joined as they come, in blocks of L; a last partial block is left out. A block is read alone
/// from its first token. A bucket of the first position alone, which nothing predicts, is not there.
std::vector<PositionBucket> score_positions(model::Model& model, const Documents& documents,
                                            const PositionOptions& options, const Share& progress = {});

}  // namespace headscope::evaluation
