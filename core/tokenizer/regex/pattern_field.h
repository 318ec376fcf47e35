// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Fields that several kinds of components share.

#include <memory>

#include "core/base/json/json.h"
#include "core/tokenizer/regex/matcher.h"

namespace headscope::tokenizer {

/// {"String": "..."} or {"Regex": "..."}.
std::unique_ptr<Matcher> pattern_field(const JsonView& pattern);
/// A string of exactly one character.
char32_t character_field(const JsonView& character);
/// "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext" or "Contiguous".
SplitBehavior behavior_field(const JsonView& behavior);

}  // namespace headscope::tokenizer
