// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Checks and counts shared by the operators of kernels/recurrent.h.

#include <algorithm>
#include <cstdint>

#include "kernels/recurrent.h"

namespace headscope::kernels {

/// Throws Error unless shapes, types and rule fit. Without `with_value` only the heads of the value are read.
void check_recurrent(const RecurrentInput& input, bool with_value = true);

/// Tokens of sequence b that are no padding.
inline std::int64_t recurrent_tokens(const RecurrentRule& rule, std::int64_t b, std::int64_t length) {
    return rule.length.empty() ? length : rule.length[static_cast<std::size_t>(b)];
}

/// End of the chunk that holds `token`, at most `end`; `end` without chunks.
inline std::int64_t recurrent_chunk_end(const RecurrentRule& rule, std::int64_t token, std::int64_t end) {
    if (rule.chunk_size == 0) return end;
    const std::int64_t position = rule.chunk_begin + token;
    return std::min(end, token + rule.chunk_size - position % rule.chunk_size);
}

/// End of the piece that begins at `token`, at most `end`.
inline std::int64_t recurrent_piece_end(const RecurrentRule& rule, std::int64_t token, std::int64_t end) {
    return std::min(recurrent_chunk_end(rule, token, end), token + kRecurrentPiece);
}

}  // namespace headscope::kernels
