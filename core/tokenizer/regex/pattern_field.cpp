// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/regex/pattern_field.h"

#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

std::unique_ptr<Matcher> pattern_field(const JsonView& pattern) {
    if (const auto literal = pattern.find("String")) return literal_matcher(literal->string());
    if (const auto expression = pattern.find("Regex"))
        return pattern_matcher(expression->string(), expression->where());
    pattern.refuse(ErrorCode::format, "expected a pattern {\"String\": ...} or {\"Regex\": ...}");
}

char32_t character_field(const JsonView& character) {
    const std::string text = character.string();
    if (!text.empty()) {
        const Decoded c = decode_utf8(text, 0);
        if (c.length == text.size()) return c.point;
    }
    character.refuse(ErrorCode::format, "expected a string of one character");
}

SplitBehavior behavior_field(const JsonView& behavior) {
    const std::string name = behavior.string();
    if (name == "Removed") return SplitBehavior::removed;
    if (name == "Isolated") return SplitBehavior::isolated;
    if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
    if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
    if (name == "Contiguous") return SplitBehavior::contiguous;
    behavior.refuse(ErrorCode::unsupported,
                    "expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

}  // namespace headscope::tokenizer
