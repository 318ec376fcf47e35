// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <random>

#include "core/base/error.h"
#include "core/tokenizer/regex/regex.h"
#include "core/tokenizer/regex/scanner.h"
#include "core/tokenizer/token_set.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

using namespace headscope;
using namespace headscope::tokenizer;

namespace {

std::vector<std::string> matches(const Matcher& matcher, std::string_view text) {
    std::vector<Match> found;
    matcher.find(text, found);
    std::vector<std::string> parts;
    for (const Match& match : found) parts.emplace_back(text.substr(match.begin, match.end - match.begin));
    return parts;
}

// Text rich in characters that the patterns distinguish.
std::string random_text(std::mt19937& random) {
    static const std::vector<std::string> parts = {
        "a",      "B",       "s",          "S",          "t",       "re",     "VE",     "'",          "'s",
        "'S",     "'\u017f", "'Ll",        "\u017f",     "1",       "23",     "½",      "٣",          " ",
        "  ",     "\n",      "\r",         "\r\n",       "\t",      "\u00a0", "\u3000", "\u2028",     ".",
        "?!",     "-",       "_",          "é",          "e\u0301", "中",     "ß",      "\U0001F44D", "\u200d",
        "\u1C89", "\uA7CB",  "\U00010D4A", "\U00016AC0", "\u180e",  "\u0085"};
    std::string text;
    const int count = std::uniform_int_distribution<int>(0, 24)(random);
    for (int i = 0; i < count; ++i)
        text += parts[std::uniform_int_distribution<std::size_t>(0, parts.size() - 1)(random)];
    return text;
}

const std::string llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

TEST_CASE("The scanners match what the regular expressions match", "[tokenizer][patterns]") {
    const auto pattern = GENERATE(std::string(gpt2_pattern), llama3, qwen2);
    const auto scanner = scanner_for(pattern);
    REQUIRE(scanner);
    const RegexMatcher regex(pattern, "pattern");
    std::mt19937 random(7);
    for (int i = 0; i < 3000; ++i) {
        const std::string text = random_text(random);
        INFO(text);
        REQUIRE(matches(*scanner, text) == matches(regex, text));
    }
    REQUIRE_FALSE(scanner_for(pattern + " "));
}

TEST_CASE("Patterns know Unicode 16", "[tokenizer][patterns]") {
    const auto is = [](const std::string& pattern, const std::string& text) {
        return matches(RegexMatcher(pattern, "pattern"), text) == std::vector<std::string>{text};
    };
    REQUIRE(is(R"(\p{L})", "\u1C89"));  // new in Unicode 16
    REQUIRE(is(R"([\p{Lu}])", "\u1C89"));
    REQUIRE_FALSE(is(R"([^\p{L}])", "\u1C89"));
    REQUIRE_FALSE(is(R"(\P{L})", "\u1C89"));
    REQUIRE(is(R"(\p{^N})", "\u1C89"));
    REQUIRE(is(R"([\P{N}])", "\u1C89"));
    REQUIRE(is(R"(\w+)", "a\u1C89_1"));
    REQUIRE(is(R"(\d+)", "7\U00010D40"));  // Garay digit zero
    REQUIRE(is(R"(\D\W)", "x-"));
    REQUIRE(is(R"([[:alpha:]\p{Nd}]+)", "a1"));
    REQUIRE(is(R"([]\p{L}]+)", "]a"));
    REQUIRE(is(R"(\\p\{L\})", "\\p{L}"));
    REQUIRE(is(R"(\p{Han}+)", "中文\U00031350"));  // the last is new in Unicode 15
    REQUIRE(is(R"(\p{Garay}+)", "\U00010D50"));    // a script of Unicode 16
    REQUIRE(is(R"([[:upper:][:punct:]]+)", "\u1C89+\u2E5D"));
    REQUIRE_FALSE(is(R"([[:^alpha:]])", "\u1C89"));
    REQUIRE(is(R"(\ba\b)", "a"));
    REQUIRE(is(R"(a\Bb)", "ab"));
    REQUIRE_FALSE(is("a\\b\u1C89", "a\u1C89"));
    REQUIRE(category(0x1C89) == Category::lu);
    std::size_t letters = 0;
    for (const CodePointRange& range : category_ranges("L")) letters += range.last - range.first + 1;
    REQUIRE(letters == 141'028);
}

TEST_CASE("Patterns that do not compile or that explode end in an error", "[tokenizer][patterns]") {
    REQUIRE_THROWS_AS(RegexMatcher("(a", "place"), Error);
    REQUIRE_THROWS_AS(RegexMatcher(std::string(1 << 17, 'a'), "place"), Error);
    std::string words;
    for (int i = 0; i < 20'000; ++i) words += "\\w";
    REQUIRE_THROWS_AS(RegexMatcher(words, "place"), Error);
    const RegexMatcher exploding("(a|aa)+$", "place");
    std::vector<Match> found;
    try {
        exploding.find(std::string(60, 'a') + "b", found);
        FAIL("no error");
    } catch (const Error& error) {
        REQUIRE(error.code() == ErrorCode::limit);
        REQUIRE(error.where() == "place");
    }
}

TEST_CASE("Empty matches are taken as the reference takes them", "[tokenizer][patterns]") {
    std::vector<Match> found;
    RegexMatcher("x*", "pattern").find("axxb", found);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (const Match& match : found) pairs.emplace_back(match.begin, match.end);
    REQUIRE(pairs == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 0}, {1, 3}, {4, 4}});
}

TEST_CASE("A set of strings finds the leftmost, then the longest", "[tokenizer][patterns]") {
    std::mt19937 random(11);
    const auto word = [&](std::size_t longest) {
        std::string text(std::uniform_int_distribution<std::size_t>(1, longest)(random), 'a');
        for (char& c : text) c = static_cast<char>('a' + std::uniform_int_distribution<int>(0, 2)(random));
        return text;
    };
    for (int round = 0; round < 300; ++round) {
        TokenSet set;
        std::vector<std::string> strings;
        for (int i = 0; i < 6; ++i) {
            strings.push_back(word(5));
            set.add(strings.back(), i);
        }
        set.finish();
        const std::string text = word(40);
        const auto found = set.find(text);
        std::size_t next = 0;
        for (std::size_t at = 0; at < text.size();) {
            int best = -1;
            for (int i = 0; i < 6; ++i) {
                const auto& candidate = strings[static_cast<std::size_t>(i)];
                if (text.compare(at, candidate.size(), candidate) != 0) continue;
                if (best < 0 || candidate.size() > strings[static_cast<std::size_t>(best)].size()) best = i;
            }
            if (best < 0) {
                ++at;
                continue;
            }
            REQUIRE(next < found.size());
            REQUIRE(found[next].begin == at);
            REQUIRE(found[next].value == best);
            at = found[next++].end;
        }
        REQUIRE(next == found.size());
    }
}

TEST_CASE("A text of nearly matching characters does not cost a square", "[tokenizer][patterns]") {
    TokenSet set;
    set.add(std::string(50'000, 'a') + "b", 1);
    set.add("b" + std::string(50'000, 'a'), 2);
    set.finish();
    REQUIRE(set.find(std::string(4'000'000, 'a')).empty());
}

TEST_CASE("Ends of words are known within look-behinds", "[tokenizer][patterns]") {
    using Found = std::vector<std::string>;
    REQUIRE(matches(RegexMatcher(R"((?<=\bfoo)x\b)", "pattern"), "foox afoox foox1") == Found{"x"});
    REQUIRE(matches(RegexMatcher(R"((?<!\B)x)", "pattern"), "ax x") == Found{"x"});
    REQUIRE(matches(RegexMatcher(R"((?<!a\b.)x)", "pattern"), "a xax") == Found{"x"});
    // Behind them they are those of the newest letters again.
    REQUIRE(matches(RegexMatcher(R"((?<=(?:a)).\b)", "pattern"), "ab a\uA7CB-") == Found{"b", "\uA7CB"});
}
