// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Beam search: an encoder-decoder's answer to a source text, or the continuation of a decoder's prompt. The prompt is
// read once; beams are a batch whose caches are reordered after each token. A step keeps the `width` best open
// continuations; an end token (or the last of `tokens`) makes a hypothesis of a continuation that is among the `width`
// best of all, as in transformers. One beam is a greedy answer. Ties: the earlier beam, the smaller id.
//
// The penalty is that of Wu et al. (2016), as Vaswani et al. (2017) have it; transformers and
// fairseq divide by length^alpha instead (`plain_power`), whose alphas are other numbers. A length counts the new
// tokens, the end token among them and the start token not. Threads: the compute thread. Errors:
// headscope::Error (usage for another model), Stopped when cancelled.

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "core/base/progress.h"
#include "core/model/load/generation_settings.h"

namespace headscope::model {

class Editor;
class Model;

struct BeamOptions {
    std::int64_t width = 4;       ///< 1: greedy
    double length_penalty = 0.6;  ///< alpha of ((5 + length) / 6)^alpha (Wu et al. 2016), by which sums are divided
    bool plain_power = false;     ///< length^alpha in its place
    EarlyStopping early_stopping = EarlyStopping::never;
    std::int64_t tokens = 100;  ///< limit of new tokens
    std::vector<std::int64_t> end_tokens{};
    GenerationSettings settings{};  ///< of the checkpoint's files: what they do to log-probabilities applies
    bool beyond_positions = false;
    std::set<int> skip_layers{};  ///< whole blocks left out
    Editor* editor = nullptr;     ///< of each forward pass; null: none
    const Cancellation* cancellation = nullptr;
};

/// How files that describe a beam search, or transformers where they do not, compare hypotheses.
void use_beams_of_files(const GenerationSettings& settings, BeamOptions& options);

struct BeamResult {
    std::vector<std::int64_t> tokens;  ///< without the start token, with the end token where there is one
    double score = 0;                  ///< sum of log-probabilities over the penalty
};

/// The best hypothesis of `source` (not empty).
BeamResult beam_search(Model& model, std::span<const std::int64_t> source, const BeamOptions& options);

}  // namespace headscope::model
