// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/matcher.h"

#include <algorithm>
#include <utility>

#include "core/tokenizer/regex.h"
#include "core/tokenizer/scanner.h"
#include "core/tokenizer/utf8.h"

namespace headscope::tokenizer {

namespace {

class LiteralMatcher final : public Matcher {
public:
    explicit LiteralMatcher(std::string wanted) : wanted_(std::move(wanted)) {}

    void find(std::string_view text, std::vector<Match>& matches, SearchWatch&) const override {
        const auto length = static_cast<std::uint32_t>(wanted_.size());
        if (length == 0) {
            for (std::uint32_t at = 0; at <= text.size(); ++at) {
                if (at == text.size() || !is_continuation(text[at])) matches.push_back({at, at});
            }
            return;
        }
        for (std::size_t at = find_text(text, wanted_, 0); at != std::string_view::npos;
             at = find_text(text, wanted_, at + length)) {
            matches.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at) + length});
        }
    }

private:
    std::string wanted_;
};

class CharacterMatcher final : public Matcher {
public:
    explicit CharacterMatcher(bool (*belongs)(char32_t)) : belongs_(belongs) {}

    void find(std::string_view text, std::vector<Match>& matches, SearchWatch&) const override {
        for (std::uint32_t at = 0; at < text.size();) {
            const Decoded c = decode_utf8(text, at);
            if (belongs_(c.point)) matches.push_back({at, at + c.length});
            at += c.length;
        }
    }

private:
    bool (*belongs_)(char32_t);
};

// Calls take(part, is_delimiter) for the matches and for what lies between them, from left to right.
template <class Take>
void each_part(const std::vector<Match>& matches, std::uint32_t size, bool invert, const Take& take) {
    std::uint32_t last = 0;
    for (const Match& match : matches) {
        if (last != match.begin) take(Match{last, match.begin}, invert);
        take(match, !invert);
        last = match.end;
    }
    if (last != size) take(Match{last, size}, invert);
}

}  // namespace

std::unique_ptr<Matcher> literal_matcher(std::string text) {
    return std::make_unique<LiteralMatcher>(std::move(text));
}

std::unique_ptr<Matcher> character_matcher(bool (*belongs)(char32_t)) {
    return std::make_unique<CharacterMatcher>(belongs);
}

std::unique_ptr<Matcher> character_matcher(char32_t c) {
    return literal_matcher(to_utf8(c));
}

std::unique_ptr<Matcher> pattern_matcher(const std::string& pattern, const std::string& where) {
    if (auto scanner = scanner_for(pattern)) return scanner;
    return std::make_unique<RegexMatcher>(pattern, where);
}

void split_parts(const std::vector<Match>& matches, std::uint32_t size, SplitBehavior behavior, bool invert,
                 std::vector<Match>& parts) {
    const std::size_t first = parts.size();
    bool previous = false;  // whether the part before was a delimiter
    const auto open = [&] { return parts.size() > first; };
    each_part(matches, size, invert, [&](Match part, bool delimiter) {
        switch (behavior) {
            case SplitBehavior::isolated:
                parts.push_back(part);
                break;
            case SplitBehavior::removed:
                if (!delimiter) parts.push_back(part);
                break;
            case SplitBehavior::contiguous:
                if (delimiter == previous && open()) {
                    parts.back().end = part.end;
                } else {
                    parts.push_back(part);
                }
                break;
            case SplitBehavior::merged_with_previous:
                if (delimiter && !previous && open()) {
                    parts.back().end = part.end;
                } else {
                    parts.push_back(part);
                }
                break;
            case SplitBehavior::merged_with_next:
                if (!delimiter && previous && open()) {
                    parts.back().end = part.end;
                } else {
                    parts.push_back(part);
                }
                break;
        }
        previous = delimiter;
    });
}

}  // namespace headscope::tokenizer
