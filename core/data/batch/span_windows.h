// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A question and its context as sequences of a model that marks the answer (SQuAD): the context is read in windows that
// overlap, each behind the question. Tokens are numbers of token_code.h. Threads: any.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/data/batch/item_source.h"

namespace headscope::data {

/// Bytes [begin, end) of a text.
using ByteRange = std::array<std::int64_t, 2>;
/// First and last token of a context; both -1: none.
using TokenSpan = std::array<std::int64_t, 2>;

/// Context tokens [begin, begin + tokens).
struct SpanWindow {
    std::int64_t begin = 0, tokens = 0;
    std::int64_t end() const { return begin + tokens; }
};

/// Windows of one context. Consecutive ones share objective.stride tokens; the last is the first that reaches the end.
struct SpanCut {
    std::int64_t question = 0;  ///< tokens of the question that are read
    std::int64_t context = 0;   ///< tokens of the context
    std::int64_t room = 0;      ///< context tokens of a window at most
    std::int64_t step = 1;      ///< from one window's begin to the next

    std::int64_t windows() const { return context <= room ? 1 : 1 + (context - room + step - 1) / step; }
    SpanWindow window(std::int64_t index) const { return {index * step, std::min(room, context - index * step)}; }
};

/// A question that leaves a window no more than the stride is cut at its end, unless all of the context fits.
SpanCut cut_context(const ItemForm& form, std::int64_t question, std::int64_t context);

struct SpanSequence {
    SpoiltSequence tokens;
    std::int64_t context_at = 0;  ///< place of the window's first context token
};
SpanSequence span_sequence(const ItemForm& form, const SpanCut& cut, const SpanWindow& window,
                           std::span<const std::int64_t> question, std::span<const std::int64_t> context);

/// The place of each token of a context in its text.
std::vector<ByteRange> token_ranges(const tokenizer::Tokenizer& tokenizer, const std::string& context,
                                    const Cancellation* cancellation);
/// The last token that begins at or before the answer's begin, and the first that ends at or behind its end.
TokenSpan answer_tokens(std::span<const ByteRange> tokens, const ByteRange& answer);
/// Places of the answer in a window's sequence; both 0, the first token, where not all of it is in the window.
TokenSpan answer_in(const SpanSequence& sequence, const SpanWindow& window, const TokenSpan& answer);

}  // namespace headscope::data
