// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <chrono>

#include "core/tokenizer/models/piece_trie.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/tokenizer/json_parts.h"

using namespace headscope;
using namespace headscope::test;
using tokenizer::PieceTrie;
using Ids = std::vector<std::int32_t>;
using Offsets = std::vector<std::array<std::int64_t, 2>>;

namespace {

JsonParts unigram(const std::string& vocabulary, const std::string& more = R"("unk_id": 0)") {
    JsonParts parts;
    parts.model = R"({"type": "Unigram", )" + more + R"(, "vocab": )" + vocabulary + "}";
    return parts;
}

const std::string small = R"([["<unk>", 0], ["a", -1.5], ["b", -2], ["ab", -4], ["aba", -4.25], ["é", -3]])";

}  // namespace

TEST_CASE("A unigram model takes the pieces with the highest sum of scores", "[tokenizer][unigram]") {
    const auto tokenizer = unigram(small).make();
    REQUIRE(tokenizer->encode("ab").ids == Ids{1, 2});  // -3.5 before -4
    REQUIRE(tokenizer->encode("aba").ids == Ids{4});    // -4.25 before -5
    REQUIRE(tokenizer->encode("abab").ids == Ids{4, 2});
    REQUIRE(tokenizer->encode("éa").offsets == Offsets{{0, 2}, {2, 3}});
    REQUIRE(tokenizer->vocabulary_size() == 6);
}

TEST_CASE("Of equal sums a unigram model takes the one that was found first", "[tokenizer][unigram]") {
    // a|ba ends with the later beginning; ab|a reaches the end from place 2 only after a|ba from place 1.
    const auto tokenizer = unigram(R"([["<unk>", 0], ["a", -1], ["ab", -2], ["ba", -2]])").make();
    REQUIRE(tokenizer->encode("aba").ids == Ids{1, 3});
}

TEST_CASE("Unknown characters in a row are one token that reads as itself", "[tokenizer][unigram]") {
    const auto tokenizer = unigram(small).make();
    const auto encoding = tokenizer->encode("axéyzb");
    REQUIRE(encoding.ids == Ids{1, 0, 5, 0, 2});
    REQUIRE(encoding.offsets == Offsets{{0, 1}, {1, 2}, {2, 4}, {4, 6}, {6, 7}});
    REQUIRE(tokenizer->pieces(encoding) == std::vector<std::string>{"a", "x", "é", "yz", "b"});
    REQUIRE(tokenizer->encode("<unk>x").ids == Ids{0});  // the piece itself is one of them
}

TEST_CASE("Unknown characters of a unigram model fall back to bytes if all of them can", "[tokenizer][unigram]") {
    const std::string bytes = R"([["<unk>", 0], ["a", -1], ["<0xC3>", -9], ["<0xA9>", -9], ["<0xa8>", -9]])";
    const auto tokenizer = unigram(bytes, R"("unk_id": 0, "byte_fallback": true)").make();
    REQUIRE(tokenizer->encode("aéa").ids == Ids{1, 2, 3, 1});
    REQUIRE(tokenizer->encode("aéa").offsets == Offsets{{0, 1}, {1, 3}, {1, 3}, {3, 4}});
    REQUIRE(tokenizer->encode("éx").ids == Ids{0});
    REQUIRE(tokenizer->encode("è").ids == Ids{0});  // its piece is spelled in small letters
    REQUIRE(tokenizer->surface(2) == "\xC3");
}

TEST_CASE("Of equal pieces of a unigram model the last one counts", "[tokenizer][unigram]") {
    const auto tokenizer = unigram(R"([["<unk>", 0], ["a", -1], ["a", -9], ["", -1]])").make();
    REQUIRE(tokenizer->encode("aa").ids == Ids{2, 2});
    REQUIRE(tokenizer->piece(1) == "a");
    REQUIRE(tokenizer->id_of("a") == 2);
}

TEST_CASE("A unigram model without an unknown piece throws when it needs one", "[tokenizer][unigram]") {
    const auto tokenizer = unigram(R"([["a", -1], ["ab", -1]])", R"("unk_id": null)").make();
    REQUIRE(tokenizer->encode("aab").ids == Ids{0, 1});
    REQUIRE_THROWS_MATCHES(tokenizer->encode("b"), Error, IsError(ErrorCode::mismatch, "unk_id"));
}

TEST_CASE("What is wrong with a unigram vocabulary is named", "[tokenizer][unigram][bad]") {
    const auto refused = [](const JsonParts& parts, ErrorCode code, const std::string& part) {
        REQUIRE_THROWS_MATCHES(parts.make(), Error, IsError(code, part));
    };
    refused(unigram(R"({"a": 0})"), ErrorCode::format, "model.vocab");
    refused(unigram(R"([["a", 0], ["b"]])"), ErrorCode::format, "model.vocab[1]");
    refused(unigram(R"([["a", 0], ["b", 0, 0]])"), ErrorCode::format, "model.vocab[1]");
    refused(unigram(R"([[0, "a"]])"), ErrorCode::format, "model.vocab[0]");
    refused(unigram(R"([["a", null]])"), ErrorCode::format, "model.vocab[0]");
    refused(unigram(R"([["a", 0]])", R"("unk_id": 1)"), ErrorCode::mismatch, "model.unk_id");
    refused(unigram(R"([["a", 0]])", R"("unk_id": -1)"), ErrorCode::limit, "model.unk_id");
    refused(unigram(R"([["a", 0]])", R"("unk_id": "a")"), ErrorCode::format, "model.unk_id");
    refused(unigram(R"([["a", 0]])", R"("unk_id": 0, "byte_fallback": 1)"), ErrorCode::format, "model.byte_fallback");
}

TEST_CASE("A word of megabytes is no square for a unigram model", "[tokenizer][unigram]") {
    const auto tokenizer = unigram(R"([["<unk>", 0], ["a", -1], ["aa", -1.5], ["aaaaaaaaaaaaaaaa", -20]])").make();
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE(tokenizer->encode(std::string(2'000'000, 'a')).ids.size() == 1'000'000);
    REQUIRE(tokenizer->encode(std::string(2'000'000, 'x')).ids.size() == 1);
    REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("The trie finds every beginning, from the shortest on", "[tokenizer][unigram]") {
    std::vector<std::string> strings = {"a", "ab", "abc", "b", "", "ab", std::string("a\0b", 3), "\xFF\xFE", "abcd"};
    for (int first = 0; first < 256; ++first) {  // many nodes with many children
        for (int second = first % 7; second < 256; second += 7) {
            strings.push_back(std::string("z") + static_cast<char>(first) + static_cast<char>(second));
        }
    }
    std::vector<std::pair<std::string_view, std::int32_t>> pieces;
    for (std::size_t i = 0; i < strings.size(); ++i) pieces.emplace_back(strings[i], static_cast<std::int32_t>(i));
    const PieceTrie trie(pieces);
    const auto found = [&](std::string_view text) {
        std::vector<std::pair<std::size_t, std::int32_t>> all;
        trie.find(text, [&](std::size_t length, std::int32_t value) { all.emplace_back(length, value); });
        return all;
    };
    using All = std::vector<std::pair<std::size_t, std::int32_t>>;
    REQUIRE(found("abcx") == All{{1, 0}, {2, 5}, {3, 2}});
    REQUIRE(found(std::string("a\0bc", 4)) == All{{1, 0}, {3, 6}});
    REQUIRE(found("\xFF\xFE") == All{{2, 7}});
    REQUIRE(found("x").empty());
    for (std::size_t i = 9; i < strings.size(); ++i) {
        REQUIRE(found(strings[i]) == All{{3, static_cast<std::int32_t>(i)}});
    }
    REQUIRE(found("z").empty());
    std::size_t none = 0;
    PieceTrie().find("a", [&](std::size_t, std::int32_t) { ++none; });
    REQUIRE(none == 0);
}
