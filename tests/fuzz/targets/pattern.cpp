// SPDX-License-Identifier: GPL-3.0-or-later
// A regular expression of a tokenizer.json (first line) over a text (the rest): it compiles or not, finds or reaches a
// limit; what it finds lies in the text, in order, on characters. The well-known patterns' scanners must find what the
// regular expressions find.
#include <algorithm>

#include "core/base/text/text.h"
#include "core/tokenizer/regex/matcher.h"
#include "core/tokenizer/regex/regex.h"
#include "core/tokenizer/regex/scanner.h"
#include "core/tokenizer/unicode/utf8.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {
namespace {

using tokenizer::Match;
using tokenizer::Matcher;
using tokenizer::SplitBehavior;

constexpr const char* contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
constexpr const char* rest = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Patterns of well-known tokenizers, with a scanner of our own or without.
const std::vector<std::string>& known_patterns() {
    static const std::vector<std::string> patterns = {
        std::string(tokenizer::gpt2_pattern),
        std::string(contractions) + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" + rest,
        std::string(contractions) + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" + rest,
    };
    return patterns;
}

bool on_a_character(std::string_view text, std::size_t at) {
    return at == text.size() || !tokenizer::is_continuation(text[at]);
}

void check_matches(const std::vector<Match>& matches, std::string_view text) {
    std::size_t last = 0;
    for (const Match& match : matches) {
        expect(last <= match.begin && match.begin <= match.end && match.end <= text.size(), "matches in order");
        expect(on_a_character(text, match.begin) && on_a_character(text, match.end), "matches of whole characters");
        last = match.end;
    }
}

/// Parts are in order; those of every behaviour but `removed` cover the text.
void check_parts(const std::vector<Match>& matches, std::string_view text) {
    for (const SplitBehavior behavior :
         {SplitBehavior::removed, SplitBehavior::isolated, SplitBehavior::merged_with_previous,
          SplitBehavior::merged_with_next, SplitBehavior::contiguous}) {
        for (const bool invert : {false, true}) {
            std::vector<Match> parts;
            tokenizer::split_parts(matches, static_cast<std::uint32_t>(text.size()), behavior, invert, parts);
            std::size_t last = 0;
            for (const Match& part : parts) {
                const bool follows = behavior == SplitBehavior::removed ? last <= part.begin : last == part.begin;
                expect(follows && part.begin <= part.end && part.end <= text.size(), "parts that follow each other");
                last = part.end;
            }
            if (behavior != SplitBehavior::removed) expect(last == text.size(), "parts that cover the text");
        }
    }
}

bool equal(const std::vector<Match>& a, const std::vector<Match>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Match& x, const Match& y) { return x.begin == y.begin && x.end == y.end; });
}

void compare_scanners(std::string_view text) {
    struct Pair {
        std::unique_ptr<Matcher> scanner;
        std::unique_ptr<Matcher> regex;
    };
    static const std::vector<Pair> pairs = [] {
        std::vector<Pair> all;
        for (const std::string& pattern : known_patterns()) {
            auto scanner = tokenizer::scanner_for(pattern);
            if (scanner)
                all.push_back({std::move(scanner), std::make_unique<tokenizer::RegexMatcher>(pattern, "known")});
        }
        return all;
    }();
    for (const Pair& pair : pairs) {
        std::vector<Match> quick, slow;
        pair.scanner->find(text, quick);
        check_matches(quick, text);
        if (!refusal([&] { pair.regex->find(text, slow); })) {
            expect(equal(quick, slow), "a scanner to find what its regular expression finds");
        }
    }
}

}  // namespace

void run_pattern(std::string_view input) {
    const std::string pattern = tokenizer::repaired_utf8(take_line(input));
    const std::string text = tokenizer::repaired_utf8(input);
    refusal([&] {
        const auto matcher = tokenizer::pattern_matcher(pattern, "tokenizer.json: pre_tokenizer.pattern");
        std::vector<Match> matches;
        matcher->find(text, matches);
        check_matches(matches, text);
        check_parts(matches, text);
    });
    std::vector<Match> literal;
    tokenizer::literal_matcher(pattern)->find(text, literal);
    check_matches(literal, text);
    check_parts(literal, text);
    compare_scanners(text);
}

}  // namespace headscope::fuzz
