// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/unicode/segments.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/core/base/error_matcher.h"
#include "tests/core/tokenizer/json_parts.h"

using namespace headscope;
using namespace headscope::test;
using namespace headscope::tokenizer;

namespace {

std::vector<std::string> clusters(std::string_view text) {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = cluster_end(text, at);
        all.emplace_back(text.substr(at, end - at));
        at = end;
    }
    return all;
}

using Strings = std::vector<std::string>;

std::string base64(const std::string& bytes) {
    const std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t bits = 0;
        for (std::size_t k = 0; k < 3; ++k)
            bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
        for (std::size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? letters[bits >> (18 - 6 * k) & 63] : '=';
    }
    return text;
}

// A trie for one rule of one ASCII letter: root, letter, value.
std::string charsmap(char letter, const std::string& result, std::uint32_t value = 0) {
    std::vector<std::uint32_t> units(512, 0x1FF);
    units[0] = 256u << 10;  // the root's children begin at 256
    const auto child = static_cast<std::size_t>(256 ^ letter);
    units[child] = static_cast<std::uint32_t>(child ^ 256) << 10 | 1u << 8 | static_cast<unsigned char>(letter);
    units[256] = value | 1u << 31;
    std::string bytes(4 + units.size() * 4, '\0');
    const auto size = static_cast<std::uint32_t>(units.size() * 4);
    std::memcpy(bytes.data(), &size, 4);
    std::memcpy(bytes.data() + 4, units.data(), size);
    return bytes + result + '\0';
}

JsonParts with_map(const std::string& text) {
    JsonParts parts;
    parts.model = R"({"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "XYb": 1, "X": 2}})";
    parts.normalizer = R"({"type": "Precompiled", "precompiled_charsmap": ")" + text + R"("})";
    return parts;
}

}  // namespace

TEST_CASE("Grapheme clusters follow Unicode's rules", "[tokenizer][segments]") {
    REQUIRE(clusters("ab") == Strings{"a", "b"});
    REQUIRE(clusters("a\r\nb\n\r") == Strings{"a", "\r\n", "b", "\n", "\r"});
    REQUIRE(clusters("e\u0301\u0323x") == Strings{"e\u0301\u0323", "x"});
    REQUIRE(clusters("\n\u0301") == Strings{"\n", "\u0301"});
    REQUIRE(clusters("\u0600\u0661a") == Strings{"\u0600\u0661", "a"});  // a prepended sign
    REQUIRE(clusters("\u1112\u1161\u11AB\uD55C\u11AB") == Strings{"\u1112\u1161\u11AB", "\uD55C\u11AB"});
    REQUIRE(clusters("\uD558\u1161\uD55C\u1161") == Strings{"\uD558\u1161", "\uD55C", "\u1161"});  // LV takes a vowel
    REQUIRE(clusters("👩‍👩‍👧a") == Strings{"👩‍👩‍👧", "a"});
    REQUIRE(clusters("a\u200D👧") == Strings{"a\u200D", "👧"});
    REQUIRE(clusters("👍🏽👍") == Strings{"👍🏽", "👍"});
    REQUIRE(clusters("🇩🇪🇫🇷🇬") == Strings{"🇩🇪", "🇫🇷", "🇬"});
    REQUIRE(clusters("\u0915\u094D\u0937\u0915") == Strings{"\u0915\u094D\u0937", "\u0915"});  // a conjunct
    REQUIRE(clusters("\u0915\u094D\u200D\u0937") == Strings{"\u0915\u094D\u200D\u0937"});
    REQUIRE(clusters("\u0E01\u0E33") == Strings{"\u0E01\u0E33"});  // Thai am is a spacing mark
}

TEST_CASE("Scripts that are written together are one", "[tokenizer][segments]") {
    REQUIRE(script(U'a') == script(U'É'));
    REQUIRE(script(U'a') != script(U'я'));
    REQUIRE(script(U'京') == script(U'い'));
    REQUIRE(script(U'グ') == script(U'ー'));
    REQUIRE(script(U' ') == 0);
    REQUIRE(script(0x378) == 0);  // unassigned
    REQUIRE(script(U'0') == script(U'@'));
}

TEST_CASE("A compiled character map takes whole clusters by their beginning", "[tokenizer][segments]") {
    const auto tokenizer = with_map(base64(charsmap('a', "XY"))).make();
    REQUIRE(tokenizer->encode("ab").ids == std::vector<std::int32_t>{1});
    const auto single = with_map(base64(charsmap('a', "X"))).make();
    REQUIRE(single->encode("a\u0301").ids == std::vector<std::int32_t>{2});  // the reference drops the mark, too
    REQUIRE(single->encode("a\u0301").offsets == decltype(single->encode("").offsets){{0, 1}});
    REQUIRE(single->encode("a\u0301\u0301\u0301").ids == std::vector<std::int32_t>{0});  // above 5 bytes it stays
}

TEST_CASE("Character maps that are none are refused with their field", "[tokenizer][segments][bad]") {
    const auto refused = [](const std::string& text) {
        INFO(text.substr(0, 80));
        REQUIRE_THROWS_MATCHES(with_map(text).make(), Error,
                               IsError(ErrorCode::format, "normalizer.precompiled_charsmap"));
    };
    const std::string good = charsmap('a', "X");
    refused("");
    refused("a");
    refused("ab=c");
    refused("ab==");  // bits that no byte has
    refused("????");
    refused(base64("\x04"));
    refused(base64(good.substr(0, 100)));
    refused(base64(good + "\xFF"));
    refused(base64(charsmap('a', "X", 3)));        // a result beyond the end
    refused(base64(charsmap('a', "é", 1)));        // within a character
    refused(base64(std::string("\0\0\0\0X", 5)));  // no root
    std::string far = good;
    far[5] = far[6] = far[7] = '\x7F';  // the root's children lie far away
    refused(base64(far));
    JsonParts parts = with_map("");
    parts.normalizer = R"({"type": "Precompiled", "precompiled_charsmap": null})";
    REQUIRE_THROWS_MATCHES(parts.make(), Error, IsError(ErrorCode::format, "precompiled_charsmap"));
}
