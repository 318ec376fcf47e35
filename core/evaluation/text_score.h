// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>

#include "core/evaluation/documents.h"
#include "core/evaluation/score.h"

namespace headscope::evaluation {

struct TextOptions {
    std::int64_t length = 0;             ///< tokens that the model may read at once
    std::int64_t stride = 0;             ///< 0: length, disjoint windows
    std::optional<std::int64_t> prefix;  ///< stands before each document where nothing better is known; else its first
                                         ///< token is not predicted
    std::int64_t most_tokens = 0;        ///< stop after this number; 0: all
    ScoreOptions score;
};

struct TextScore {
    TokenScores tokens;
    std::int64_t documents = 0, words = 0, bytes = 0;
    bool cut = false;          ///< most_tokens ended it: words and bytes say nothing
    double word_loss() const;  ///< nats a word
    double byte_loss() const;  ///< nats a byte
};

/// The rolling log-likelihood of lm-eval-harness over every document.
TextScore score_text(model::Model& model, const Documents& documents, const TextOptions& options,
                     const Share& progress = {});

}  // namespace headscope::evaluation
