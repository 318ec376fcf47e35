// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tokens as a reader sees them: bytes of one character joined, whitespace visible, what tokenizers leave out kept.

#include <cstdint>
#include <string>
#include <vector>

#include "core/figures/figure_data.h"
#include "core/store/analysis/analysis_header.h"

namespace headscope::figures {

/// Tokens [first, end) that are shown as one: a token, or those that share a character of the text.
struct TokenGroup {
    std::int64_t first = 0, end = 0;
    std::string text;  ///< visible; a single space at the begin of a word stays a space
    bool special = false;
    bool space_before = false;                ///< between it and the one before lies whitespace of no token
    int breaks_before = 0, breaks_after = 0;  ///< line feeds of no token; of its own
};

/// Groups of the tokens [first, end) of a sequence; a group that reaches over an end is cut.
std::vector<TokenGroup> token_groups(const store::SequenceTokens& tokens, std::int64_t first, std::int64_t end);

/// The tokens [first, end) as a text to draw, each in the colour of its value; `chosen` is stressed, -1: none.
TextBlock text_block(const store::SequenceTokens& tokens, std::int64_t first, std::int64_t end,
                     const std::vector<float>& values, std::int64_t chosen, const ColourScale& colours);

}  // namespace headscope::figures
