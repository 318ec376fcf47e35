// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Which tokens a model reads together so that requests are answered: numbers alone, no tensor. What is asked twice is
// read once, requests that differ in their last token only have one reading, and readings that begin alike may have
// their beginning read ahead, once. Threads: any.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/evaluation/harness/harness_requests.h"

namespace headscope::evaluation {

struct PassRules {
    std::int64_t batch_tokens = 4096;  ///< of one pass, with what it finds in its cache; at least one reading
    bool equal_lengths = false;        ///< readings of unlike lengths have passes of their own
    bool reads_ahead = true;           ///< the model has a cache that costs no accuracy
};

/// Tokens that are read, and the requests that they answer: the ids of each without the last one. Of an
/// encoder-decoder the start token stands before them.
struct Reading {
    std::vector<std::size_t> requests;  ///< indices; equal but for the last id and how many are scored
    std::int64_t source = 0;            ///< tokens that the encoder reads
    std::int64_t length = 0;            ///< tokens that are read (by the decoder)
    std::int64_t wanted = 0;            ///< trailing rows needed: the most that a request has scored
};

struct Pass {
    std::vector<std::size_t> readings;
    std::vector<std::size_t> contexts;  ///< the one of PassBatch::contexts that each goes on from; empty: none
};

/// Passes in which the first `shared` tokens of `contexts` (each the reading that has it, all with as many tokens of
/// the source) are read ahead; 0: one pass of whole readings.
struct PassBatch {
    std::int64_t shared = 0;
    std::vector<std::size_t> contexts;
    std::vector<Pass> passes;
};

struct PassPlan {
    std::vector<Reading> readings;
    std::vector<PassBatch> batches;  ///< longest readings first
};

PassPlan plan_passes(std::span<const HarnessRequest> requests, const PassRules& rules);

}  // namespace headscope::evaluation
