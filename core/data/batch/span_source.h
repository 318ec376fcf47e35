// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/data/batch/span_windows.h"

namespace headscope::data {

/// A question with its context as numbers, and the tokens of its first answer.
struct TokenQuestion {
    std::vector<std::int64_t> question, context;
    TokenSpan answer{-1, -1};
};

struct QuestionRows {
    std::int64_t questions = 0;
    /// Tokens of a question and of its context.
    std::function<std::array<std::int64_t, 2>(std::int64_t index)> sizes;
    std::function<TokenQuestion(std::int64_t index)> read;
};

/// The questions of one part of a token file. Error usage for none.
QuestionRows stored_questions(std::shared_ptr<const TokenFile> file, Split split);

/// Windows of questions (span_windows.h), in another order each epoch, with the places of the answer as targets [B, 2].
/// Batches are as long as their longest window, and count those whose question was cut.
class SpanSource final : public BatchSource {
public:
    SpanSource(QuestionRows rows, ItemForm form, std::uint64_t seed);
    std::int64_t epoch() const override { return ends_.back(); }
    DataBatch read(std::int64_t first, std::int64_t count) const override;

private:
    QuestionRows rows_;
    ItemForm form_;
    std::uint64_t seed_;
    std::vector<std::int64_t> ends_;  ///< of each question's windows
};

}  // namespace headscope::data
