// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Which tokens of two sequences are each other: two tokenizers on one text, one model on two texts, a text and its
// edited version. 32 000 tokens take milliseconds; memory stays below some 20 MB.

#include <cstdint>
#include <vector>

#include "core/store/analysis/analysis_header.h"

namespace headscope::figures {

struct TokenAlignment {
    enum class By {
        identity,  ///< the same tokens
        place,     ///< the same text: tokens that cover the same bytes
        pieces,    ///< different texts: the longest list of equal pieces in order
    };
    By by = By::identity;
    /// False where the texts differ so much that equal pieces were only looked for around rare ones, or not at all.
    bool complete = true;
    /// For each token of A the one of B that covers most of it (or equals it), -1 where there is none; and the way
    /// back.
    std::vector<std::int64_t> to_b, to_a;
};

/// By identity if the ids and pieces are the same; by place if the texts are the same and offsets say where tokens are
/// (inserted tokens are paired at the begin and at the end); else by pieces, as Myers (1986) does it, with at most 2000
/// tokens that differ, and beyond that between tokens that occur once in each (patience). Any thread.
TokenAlignment align_tokens(const store::SequenceTokens& a, const store::SequenceTokens& b);

/// For `partners` (to_b or to_a) among `others` tokens: the place on the other side of the edge before each token, and
/// of the last edge, rising. Edges of tokens with a partner lie at the partner's, the ends at the ends, others evenly
/// between.
std::vector<double> edge_places(const std::vector<std::int64_t>& partners, std::int64_t others);
/// The place on the other side of any place between the edges; beyond them that of the end.
double place_at(const std::vector<double>& places, double place);

}  // namespace headscope::figures
