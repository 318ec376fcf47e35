// SPDX-License-Identifier: GPL-3.0-or-later
// What keeps long texts in little memory, beside what is plain to see; and how far a text may grow.
#include <catch2/catch.hpp>
#include <random>

#include "core/tokenizer/pieces.h"
#include "core/tokenizer/token_record.h"
#include "core/tokenizer/token_set.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/tokenizer/json_parts.h"

using namespace headscope;
using namespace headscope::test;
using namespace headscope::tokenizer;

namespace {

std::uint32_t below(std::mt19937& random, std::uint32_t bound) {
    return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(random);
}

}  // namespace

TEST_CASE("A table of spans returns the value of each byte", "[tokenizer][long]") {
    std::mt19937 random(5);
    for (int round = 0; round < 100; ++round) {
        SpanTable table;
        std::vector<Span> expected;
        Span span;
        while (expected.size() < 1000) {
            switch (below(random, 8)) {
                case 0:  // anywhere
                    span.begin = below(random, 1u << 30);
                    span.end = span.begin + below(random, 9);
                    break;
                case 1:  // the same again
                    break;
                default:
                    span.begin = span.end + (below(random, 4) == 0 ? below(random, 70) : 0);
                    span.end = span.begin + 1 + below(random, 4);
            }
            const std::size_t bytes = below(random, 40) == 0 ? below(random, 400) : 1 + below(random, 4);
            table.add(bytes, span);
            expected.insert(expected.end(), bytes, span);
        }
        REQUIRE(table.size() == expected.size());
        SpanTable::Reader forward(table), anywhere(table);
        for (std::size_t at = 0; at < expected.size(); at += 1 + below(random, 3)) {
            REQUIRE(forward.at(at) == expected[at]);
            const std::size_t other = below(random, static_cast<std::uint32_t>(expected.size()));
            REQUIRE(anywhere.at(other) == expected[other]);
        }
    }
}

TEST_CASE("A list of pieces gives them back", "[tokenizer][long]") {
    std::mt19937 random(6);
    PieceList list;
    std::vector<Piece> expected;
    std::uint32_t at = 0;
    for (int i = 0; i < 20'000; ++i) {
        Piece piece;
        piece.begin = at + (below(random, 3) == 0 ? below(random, below(random, 50) == 0 ? 100'000 : 3) : 0);
        piece.end = piece.begin + below(random, below(random, 50) == 0 ? 100'000 : 140);
        piece.id = below(random, 9) == 0 ? static_cast<std::int32_t>(below(random, 300'000)) : no_id;
        piece.is_first = below(random, 30) == 0;
        at = piece.end;
        list.add(piece);
        expected.push_back(piece);
    }
    REQUIRE(list.size() == expected.size());
    auto next = expected.begin();
    list.each([&](const Piece& piece) {
        REQUIRE(piece.begin == next->begin);
        REQUIRE(piece.end == next->end);
        REQUIRE(piece.id == next->id);
        REQUIRE(piece.is_first == next->is_first);
        ++next;
    });
    REQUIRE(next == expected.end());
}

TEST_CASE("A record of tokens gives them back", "[tokenizer][long]") {
    std::mt19937 random(7);
    const std::string spelling = "\xE2\x96\x81 unknown";
    TokenRecord record;
    std::vector<FoundToken> expected;
    std::uint32_t at = 0;
    while (expected.size() < 300'000) {
        FoundToken token;
        token.id = static_cast<std::int32_t>(below(random, 0x7FFFFFFF));
        token.begin = below(random, 5) == 0 ? below(random, 1u << 30) : at;
        token.end = token.begin + below(random, below(random, 20) == 0 ? 1u << 20 : 12);
        token.special = below(random, 20) == 0;
        if (below(random, 20) == 0) token.respelled = std::string_view(spelling).substr(0, below(random, 10));
        at = token.end;
        record.add(token);
        expected.push_back(token);
    }
    REQUIRE(record.size() == expected.size());
    for (int reading = 0; reading < 2; ++reading) {
        std::size_t same = 0, i = 0;
        record.each([&](const FoundToken& token) {
            const FoundToken& wanted = expected[i++];
            same += token.id == wanted.id && token.begin == wanted.begin && token.end == wanted.end &&
                    token.special == wanted.special && token.respelled == wanted.respelled;
        });
        REQUIRE(same == expected.size());
    }
}

TEST_CASE("More strings than are kept are found in the same order", "[tokenizer][long]") {
    TokenSet set;
    set.add("a", 1);
    set.add("ab", 2);
    set.finish();
    std::string text;
    while (text.size() < 3'000'000) text += "abaa-";
    std::size_t count = 0, at = 0;
    bool right = true;
    set.each(text, [&](const TokenSet::Found& found) {
        const std::size_t place = count % 3 == 0 ? 0 : count % 3 + 1;
        right = right && found.begin == at + place && found.value == (place == 0 ? 2 : 1);
        if (++count % 3 == 0) at += 5;
    });
    REQUIRE(right);
    REQUIRE(count == text.size() / 5 * 3);
}

TEST_CASE("A text may not grow without end", "[tokenizer][long]") {
    JsonParts parts;
    parts.model = R"({"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []})";
    const std::string page(100'000, 'b');
    parts.normalizer = R"({"type": "Replace", "pattern": {"String": "a"}, "content": ")" + page + R"("})";
    const auto tokenizer = parts.make();
    REQUIRE(tokenizer->encode("aaa").ids.size() == 300'000);
    REQUIRE_THROWS_MATCHES(tokenizer->encode(std::string(1000, 'a')), Error,
                           IsError(ErrorCode::limit, "once the tokenizer has normalised it"));
    // Nor by a normaliser after another.
    parts.normalizer = R"({"type": "Sequence", "normalizers": [)";
    for (int i = 0; i < 10; ++i)
        parts.normalizer += std::string(i > 0 ? "," : "") +
                            R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaaaaaaaa"})";
    parts.normalizer += "]}";
    REQUIRE_THROWS_MATCHES(parts.make()->encode("a"), Error, IsError(ErrorCode::limit, "found that it grows"));
    // Nor what the normaliser makes of the added tokens.
    parts.normalizer = R"({"type": "Replace", "pattern": {"String": "a"}, "content": ")" + page + R"("})";
    std::string list;
    for (int i = 0; i < 200; ++i)
        list += (i > 0 ? "," : "") + added_token("a" + std::to_string(i), false, false, false, true);
    parts.added_tokens = "[" + list + "]";
    REQUIRE_THROWS_MATCHES(parts.make(), Error, IsError(ErrorCode::limit, "added_tokens"));
}

TEST_CASE("No file makes a text go through thousands of normalisers", "[tokenizer][long]") {
    JsonParts parts;
    const auto sequence = [](std::size_t count, const std::string& member) {
        std::string text = R"({"type": "Sequence", "normalizers": [)";
        for (std::size_t i = 0; i < count; ++i) text += (i > 0 ? "," : "") + member;
        return text + "]}";
    };
    const std::string strip = R"({"type": "Strip", "strip_left": true, "strip_right": true})";
    parts.normalizer = sequence(100, strip);
    REQUIRE(parts.make()->encode("ab").ids.size() == 1);
    for (const std::string& many : {sequence(50'000, strip), sequence(100, sequence(2, strip))}) {
        parts.normalizer = many;
        REQUIRE_THROWS_MATCHES(parts.make(), Error, IsError(ErrorCode::limit, "normalizer"));
    }
}
