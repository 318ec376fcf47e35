// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/batch/corruption.h"
#include "core/data/token_code.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::data {

/// One sequence of the numbers (token_code.h) of one text or two, with the inserted tokens and the token types of
/// `frame` (Frame::one or two). `padding` stands in a sequence that would be empty: a model reads at least one token.
SpoiltSequence frame_texts(const TokenCode& code, std::span<const tokenizer::FramePart> frame,
                           std::span<const std::int64_t> text, std::span<const std::int64_t> other,
                           std::int64_t padding);

}  // namespace headscope::data
