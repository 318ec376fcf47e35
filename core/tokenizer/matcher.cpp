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

    void find(std::string_view text, std::vector<Match>& matches) const override {
        const auto length = static_cast<std::uint32_t>(wanted_.size());
        if (length == 0) {
            for (std::uint32_t at = 0; at <= text.size(); ++at) {
                if (at == text.size() || !is_continuation(text[at])) matches.push_back({at, at});
            }
            return;
        }
        for (std::size_t at = text.find(wanted_); at != std::string_view::npos; at = text.find(wanted_, at + length)) {
            matches.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at) + length});
        }
    }

private:
    std::string wanted_;
};

class CharacterMatcher final : public Matcher {
public:
    explicit CharacterMatcher(bool (*belongs)(char32_t)) : belongs_(belongs) {}

    void find(std::string_view text, std::vector<Match>& matches) const override {
        for (std::uint32_t at = 0; at < text.size();) {
            const Decoded c = decode_utf8(text, at);
            if (belongs_(c.point)) matches.push_back({at, at + c.length});
            at += c.length;
        }
    }

private:
    bool (*belongs_)(char32_t);
};

struct Part {
    Match bytes;
    bool delimiter = false;
};

std::vector<Part> cover(const std::vector<Match>& matches, std::uint32_t size, bool invert) {
    std::vector<Part> parts;
    parts.reserve(matches.size() * 2 + 1);
    std::uint32_t last = 0;
    for (const Match& match : matches) {
        if (last != match.begin) parts.push_back({{last, match.begin}, invert});
        parts.push_back({match, !invert});
        last = match.end;
    }
    if (last != size) parts.push_back({{last, size}, invert});
    return parts;
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
    if (behavior == SplitBehavior::isolated) {  // delimiters or not: every part stays
        std::uint32_t last = 0;
        for (const Match& match : matches) {
            if (last != match.begin) parts.push_back({last, match.begin});
            parts.push_back(match);
            last = match.end;
        }
        if (last != size) parts.push_back({last, size});
        return;
    }
    const std::vector<Part> all = cover(matches, size, invert);
    const std::size_t first = parts.size();
    bool previous = false;  // whether the part before was a delimiter
    const auto open = [&] { return parts.size() > first; };
    switch (behavior) {
        case SplitBehavior::isolated:
        case SplitBehavior::removed:
            for (const Part& part : all) {
                if (!part.delimiter) parts.push_back(part.bytes);
            }
            break;
        case SplitBehavior::contiguous:
            for (const Part& part : all) {
                if (part.delimiter == previous && open()) {
                    parts.back().end = part.bytes.end;
                } else {
                    parts.push_back(part.bytes);
                }
                previous = part.delimiter;
            }
            break;
        case SplitBehavior::merged_with_previous:
            for (const Part& part : all) {
                if (part.delimiter && !previous && open()) {
                    parts.back().end = part.bytes.end;
                } else {
                    parts.push_back(part.bytes);
                }
                previous = part.delimiter;
            }
            break;
        case SplitBehavior::merged_with_next:
            for (auto part = all.rbegin(); part != all.rend(); ++part) {
                if (part->delimiter && !previous && open()) {
                    parts.back().begin = part->bytes.begin;
                } else {
                    parts.push_back(part->bytes);
                }
                previous = part->delimiter;
            }
            std::reverse(parts.begin() + static_cast<std::ptrdiff_t>(first), parts.end());
            break;
    }
}

}  // namespace headscope::tokenizer
