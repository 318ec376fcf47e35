// SPDX-License-Identifier: GPL-3.0-or-later
// Texts and files that could cost a square of their size: what is counted here are results, steps and calls, not time.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/process/cancellation_scope.h"
#include "core/tokenizer/document.h"
#include "core/tokenizer/models/merge_queue.h"
#include "core/tokenizer/models/merges.h"
#include "core/tokenizer/regex/regex.h"
#include "core/tokenizer/unicode/utf8.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/tokenizer/json_parts.h"

using namespace headscope;
using namespace headscope::test;
using namespace headscope::tokenizer;
using Ids = std::vector<std::int32_t>;

namespace {

ErrorCode code_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.code();
    }
    FAIL("no error");
    return ErrorCode::io;
}

JsonParts single_letters() {
    JsonParts parts;
    parts.model = R"({"type": "BPE", "vocab": {"a": 0, "b": 1, " ": 2}, "merges": []})";
    return parts;
}

}  // namespace

TEST_CASE("Merges wait in the same order in both queues", "[tokenizer][limits]") {
    std::mt19937 random(4);
    for (int round = 0; round < 200; ++round) {
        SmallMergeQueue few;
        LargeMergeQueue many;
        for (int step = 0; step < 300; ++step) {
            if (random() % 3 != 0) {
                const WaitingMerge merge{static_cast<std::uint32_t>(random() % 12),
                                         static_cast<std::uint32_t>(random() % 500)};
                few.push(merge);
                many.push(merge);
            } else if (!few.empty()) {
                const WaitingMerge one = few.pop();
                const WaitingMerge other = many.pop();
                REQUIRE(one.rank == other.rank);
                REQUIRE(one.place == other.place);
            }
            REQUIRE(few.empty() == many.empty());
        }
    }
}

TEST_CASE("Words of any length merge alike", "[tokenizer][limits]") {
    std::mt19937 random(9);
    for (int round = 0; round < 30; ++round) {
        std::vector<std::string> pieces = {"a", "b", "c"};
        std::vector<std::pair<std::string, std::string>> merges;
        nlohmann::json model = {{"type", "BPE"}, {"merges", nlohmann::json::array()}};
        while (merges.size() < 20) {
            const std::pair pair(pieces[random() % pieces.size()], pieces[random() % pieces.size()]);
            if (std::find(pieces.begin(), pieces.end(), pair.first + pair.second) != pieces.end()) continue;
            pieces.push_back(pair.first + pair.second);
            merges.push_back(pair);
            model["merges"].push_back({pair.first, pair.second});
        }
        for (std::size_t i = 0; i < pieces.size(); ++i) model["vocab"][pieces[i]] = i;
        JsonParts parts;
        parts.model = model.dump();
        const auto tokenizer = parts.make();
        for (const std::size_t size : {4000, 4096, 4097, 9001}) {
            std::string word(size, 'a');
            for (char& c : word) c = static_cast<char>('a' + random() % 3);
            // No merge makes a pair of lower rank here: rank after rank, each from left to right, is the same.
            std::vector<std::string> expected;
            for (const char c : word) expected.emplace_back(1, c);
            for (const auto& [left, right] : merges) {
                std::vector<std::string> next;
                for (const std::string& symbol : expected) next.push_back(symbol);
                expected.clear();
                for (std::size_t i = 0; i < next.size(); ++i) {
                    const bool joins = i + 1 < next.size() && next[i] == left && next[i + 1] == right;
                    expected.push_back(joins ? left + right : next[i]);
                    i += joins ? 1 : 0;
                }
            }
            const Encoding encoding = tokenizer->encode(word);
            REQUIRE(tokenizer->pieces(encoding) == expected);
            REQUIRE(encoding.offsets.back()[1] == static_cast<std::int64_t>(size));
        }
    }
}

TEST_CASE("A pattern that runs to the end of the text from every place ends in an error", "[tokenizer][limits]") {
    // Nothing is stepped back here, so that the engine's own limits see nothing.
    const RegexMatcher matcher(R"([a-z]+\d)", "place");
    std::vector<Match> found;
    const std::string text = std::string(400'000, 'a') + "A1";  // 8e10 steps
    REQUIRE(code_of([&] { matcher.find(text, found); }) == ErrorCode::limit);
    REQUIRE(found.empty());
    matcher.find(text.substr(0, 400'000) + "1", found);
    REQUIRE(found.size() == 1);
}

TEST_CASE("A search can be stopped", "[tokenizer][limits]") {
    Cancellation cancelled;
    cancelled.request();
    const CancellationScope scope(cancelled);
    std::vector<Match> found;
    const std::string text(100'000, 'a');
    REQUIRE_THROWS_AS(RegexMatcher("a", "place").find(text, found), Stopped);
    REQUIRE_THROWS_AS(RegexMatcher("(a|aa)+$", "place").find(text + "b", found), Stopped);
    JsonParts parts = single_letters();
    parts.normalizer = R"({"type": "Replace", "pattern": {"Regex": "[ab]"}, "content": "b"})";
    REQUIRE_THROWS_AS(parts.make(), Stopped);
}

TEST_CASE("Long texts match as short ones do", "[tokenizer][limits]") {
    // Long ones are searched place by place.
    const std::string part = "x7 aé  \n  it's 12345 中文\u00a0 'S  ...\r\n\tEND7";
    std::string text;
    while (text.size() < 40'000) text += part;
    for (const char* pattern :
         {R"(\d)", R"((?<!x)\d+|\z)", R"(\s+(?!\S)|\s+)", R"((?i:'s)| ?\p{L}+|x*)", R"(^\s|.$)"}) {
        const RegexMatcher matcher(pattern, "place");
        std::vector<Match> found;
        matcher.find(text, found);
        // The same around the middle as in a short text of five parts.
        std::string short_text;
        for (int i = 0; i < 5; ++i) short_text += part;
        std::vector<Match> expected;
        matcher.find(short_text, expected);
        const auto within = [&](const std::vector<Match>& matches, std::size_t begin) {
            std::vector<std::pair<std::size_t, std::size_t>> places;
            for (const Match& match : matches) {
                if (match.begin >= begin && match.end <= begin + part.size())
                    places.emplace_back(match.begin - begin, match.end - begin);
            }
            return places;
        };
        INFO(pattern);
        REQUIRE_FALSE(within(found, 500 * part.size()).empty());
        REQUIRE(within(found, 500 * part.size()) == within(expected, 2 * part.size()));
    }
}

TEST_CASE("Added tokens that are white space and take white space along", "[tokenizer][limits]") {
    JsonParts parts = single_letters();
    parts.added_tokens = "[" + added_token(" ", false, true) + "]";
    const auto tokenizer = parts.make();
    const Encoding encoding = tokenizer->encode("a   b");  // each takes what is left, as in the reference
    REQUIRE(encoding.ids == Ids{0, 2, 2, 2, 1});
    REQUIRE(tokenizer->pieces(encoding) == std::vector<std::string>{"a", "   ", "  ", " ", "b"});
    REQUIRE(tokenizer->encode(std::string(500, ' ')).ids.size() == 500);
    REQUIRE(code_of([&] { tokenizer->encode(std::string(10'000, ' ')); }) == ErrorCode::limit);
}

TEST_CASE("Thousands of added tokens that share a beginning", "[tokenizer][limits]") {
    JsonParts parts = single_letters();
    std::string list;
    for (int i = 1; i <= 2000; ++i)
        list += (i > 1 ? "," : "") + added_token(std::string(static_cast<std::size_t>(i), 'a') + "b");
    parts.added_tokens = "[" + list + "]";
    const auto tokenizer = parts.make();
    REQUIRE(tokenizer->encode(std::string(200'000, 'a')).ids == Ids(200'000, 0));
    REQUIRE(tokenizer->encode(std::string(5000, 'a') + "b").ids.size() == 3001);
}

TEST_CASE("Word pieces as long as a book are refused when words may be so too", "[tokenizer][limits]") {
    JsonParts parts;
    nlohmann::json model = {{"type", "WordPiece"},
                            {"unk_token", "[UNK]"},
                            {"max_input_chars_per_word", 1 << 30},
                            {"vocab", {{"[UNK]", 0}, {"a", 1}, {"##a", 2}, {std::string(20'000, 'a') + "b", 3}}}};
    parts.model = model.dump();
    REQUIRE(code_of([&] { parts.make()->encode(std::string(50'000, 'a')); }) == ErrorCode::limit);
    REQUIRE(parts.make()->encode("aaa").ids == Ids{1, 2, 2});
    model["max_input_chars_per_word"] = 100;
    parts.model = model.dump();
    REQUIRE(parts.make()->encode(std::string(50'000, 'a')).ids == Ids{0});
}

TEST_CASE("Literal text is found in the same places as by comparing", "[tokenizer][limits]") {
    const std::string wanted = std::string(30'000, 'a') + "b";
    const std::string text = std::string(2'000'000, 'a') + "b";  // 6e10 comparisons one by one
    REQUIRE(find_text(text, wanted, 0) == text.size() - wanted.size());
    REQUIRE(find_text(text, wanted, text.size() - 100) == std::string::npos);
    REQUIRE(find_text("abcabc", "c", 3) == 5);
    REQUIRE(find_text("abc", "abcd", 0) == std::string::npos);
    REQUIRE(find_text("abc", "a", 4) == std::string::npos);
}

TEST_CASE("Vocabulary and merges read alike, packed or not", "[tokenizer][limits]") {
    const auto pieces = [](const std::string& text) {
        const nlohmann::json document = read_document(text, "t.json");
        const JsonView model = JsonView(document, "t.json").at("model");
        std::vector<std::pair<std::string, std::int32_t>> found;
        each_piece(model.at("vocab"), [&](std::string_view piece, std::int32_t id) { found.emplace_back(piece, id); });
        std::vector<std::string> merges;
        each_merge(model.at("merges"), [&](std::size_t index, const MergeText& merge) {
            REQUIRE(index == merges.size());
            merges.push_back(std::string(merge.left) + "|" + std::string(merge.right) + (merge.is_pair ? "" : "!"));
        });
        REQUIRE(packed_size(model.at("vocab")) == found.size());
        REQUIRE(packed_size(model.at("merges")) == merges.size());
        std::sort(found.begin(), found.end());
        return std::pair(found, merges);
    };
    const auto packed =
        pieces(R"({"model": {"vocab": {"b": 1, "a": 0, "": 7}, "merges": ["a b", ["a", ""], "#v"]}, "x": []})");
    const auto plain = pieces(R"({"model": {"vocab": {"b": 1.0, "a": 0, "": 7}, "merges": ["a b", ["a", ""], "#v"]}})");
    REQUIRE(packed == plain);
    REQUIRE(packed.first == std::vector<std::pair<std::string, std::int32_t>>{{"", 7}, {"a", 0}, {"b", 1}});
    REQUIRE(packed.second == std::vector<std::string>{"a b|!", "a|", "#v|!"});
    REQUIRE(pieces(R"({"model": {"vocab": {}, "merges": []}})").first.empty());
    // Elsewhere nothing is packed.
    REQUIRE(read_document(R"({"vocab": {"a": 1}, "model": [{"vocab": {"a": 1}}]})", "t.json") ==
            nlohmann::json::parse(R"({"vocab": {"a": 1}, "model": [{"vocab": {"a": 1}}]})"));
}

TEST_CASE("Lists of more merges or pieces than there may be are refused while they are read", "[tokenizer][limits]") {
    std::string merges = R"({"model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [)";
    for (int i = 0; i < 2'000'000; ++i) merges += R"("a b",)";
    REQUIRE_THROWS_MATCHES(read_document(merges + R"("a b"]}})", "t.json"), Error,
                           IsError(ErrorCode::limit, "expected at most 2 000 000 merges; found more"));
    std::string pieces = R"({"model": {"merges": [], "vocab": {)";
    for (int i = 0; i < 2'000'000; ++i) pieces += "\"" + std::to_string(i) + "\":0,";
    REQUIRE_THROWS_MATCHES(read_document(pieces + R"("a":0}}})", "t.json"), Error,
                           IsError(ErrorCode::limit, "expected at most 2 000 000 pieces in a vocabulary; found more"));
}

TEST_CASE("A table of merges grows with what is put into it", "[tokenizer][limits]") {
    MergeTable table;
    for (std::int32_t i = 0; i < 5000; ++i) table.add(i % 70, i / 70, {static_cast<std::uint32_t>(i), i});
    for (std::int32_t i = 0; i < 5000; ++i) {
        REQUIRE(table.find(i % 70, i / 70) != nullptr);
        REQUIRE(table.find(i % 70, i / 70)->result == i);
    }
    REQUIRE(table.find(70, 0) == nullptr);
}
