// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/regex/matcher.h"

#include <utility>

#include "core/tokenizer/regex/regex.h"
#include "core/tokenizer/regex/scanner.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

class LiteralMatcher final : public Matcher {
public:
    explicit LiteralMatcher(std::string wanted) : wanted_(std::move(wanted)) {}

    void each(std::string_view text, SearchWatch&, const TakeMatch& take) const override {
        const auto length = static_cast<std::uint32_t>(wanted_.size());
        if (length == 0) {
            for (std::uint32_t at = 0; at <= text.size(); ++at) {
                if (at == text.size() || !is_continuation(text[at])) take({at, at});
            }
            return;
        }
        for (std::size_t at = find_text(text, wanted_, 0); at != std::string_view::npos;
             at = find_text(text, wanted_, at + length)) {
            take({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at) + length});
        }
    }

private:
    std::string wanted_;
};

class CharacterMatcher final : public Matcher {
public:
    explicit CharacterMatcher(bool (*belongs)(char32_t)) : belongs_(belongs) {}

    void each(std::string_view text, SearchWatch&, const TakeMatch& take) const override {
        for (std::uint32_t at = 0; at < text.size();) {
            const Decoded c = decode_utf8(text, at);
            if (belongs_(c.point)) take({at, at + c.length});
            at += c.length;
        }
    }

private:
    bool (*belongs_)(char32_t);
};

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
    PartMaker maker(size, behavior, invert, [&parts](Match part) { parts.push_back(part); });
    for (const Match& match : matches) maker.match(match);
    maker.finish();
}

}  // namespace headscope::tokenizer
