// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Changes that a file's generation settings make to the scores of the next token, in the order of transformers'
// GenerationMixin._get_logits_processor: greedy and sampled answers pass logits through it, beam search each beam's
// log-probabilities. Errors: headscope::Error (mismatch for a token beyond the vocabulary). Threads: const members are
// safe from several threads.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/model/load/generation_settings.h"

namespace headscope::model {

/// The answer that is about to be made.
struct AnswerFrame {
    std::span<const std::int64_t> source;  ///< the prompt: of an encoder-decoder, the encoder's
    std::span<const std::int64_t> ends;    ///< tokens that end it
    std::int64_t begun = 1;                ///< tokens that stand before its first: the prompt's, or the start token
    std::int64_t longest = 0;              ///< of `begun` and all new ones together
    std::int64_t vocabulary = 0;
};

class LogitsProcessors {
public:
    LogitsProcessors() = default;
    LogitsProcessors(const GenerationSettings& settings, const AnswerFrame& frame);

    bool empty() const { return steps_.empty(); }
    /// `text`: the prompt (of an encoder-decoder the start token) and the tokens made so far. `scores`: one for each
    /// token of the vocabulary.
    void apply(std::span<const std::int64_t> text, std::span<double> scores) const;

private:
    using Ids = std::span<const std::int64_t>;
    using Scores = std::span<double>;
    std::vector<std::function<void(Ids text, Scores scores)>> steps_;
};

}  // namespace headscope::model
