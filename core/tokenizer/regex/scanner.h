// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Hand-written equivalents of the split patterns of GPT-2, Llama 3 and Qwen2: the same matches as the regular
// expressions, linear in the text, without a backtracking stack.

#include <memory>
#include <string_view>

#include "core/tokenizer/regex/matcher.h"

namespace headscope::tokenizer {

/// GPT-2's pattern, which byte-level pre-tokenisers have built in.
extern const std::string_view gpt2_pattern;

/// The scanner of exactly this pattern, or nothing.
std::unique_ptr<Matcher> scanner_for(std::string_view pattern);

}  // namespace headscope::tokenizer
