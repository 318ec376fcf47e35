// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/figures/token_text.h"

using namespace headscope::figures;

TEST_CASE("Token labels hide nothing", "[figures][tokens]") {
    CHECK(visible_token(" the") == "␣the");
    CHECK(visible_token("\n\t\r") == "↵⇥␍");
    CHECK(visible_token("") == "∅");
    CHECK(visible_token("\x1b[0m") == "‹U+001B›[0m");
    CHECK(visible_token("a\xE2\x80\xAE"
                        "b") == "a‹U+202E›b");
    CHECK(visible_token("\xC2\xA0") == "‹U+00A0›");
    CHECK(visible_token("\xE2\x80\x8D") == "‹U+200D›");
    CHECK(visible_token("月光") == "月光");
    CHECK(visible_token("\xC2\xA0\x07") == "‹U+00A0›‹U+0007›");
    // A family is one character; a joiner with nothing to join is shown.
    CHECK(visible_token("👩\xE2\x80\x8D👧x", 3) == "👩\xE2\x80\x8D👧x");
    CHECK(visible_token("a\xE2\x80\x8D") == "a‹U+200D›");
}

TEST_CASE("The stand-in of a character is its spelling in labels", "[figures][tokens]") {
    CHECK(stand_in(' ') == "␣");
    CHECK(stand_in('a').empty());
    CHECK(stand_in(0x202E) == code_point_name(0x202E));
    CHECK(code_point_name(0x1FFFD) == "‹U+1FFFD›");
    CHECK(byte_name(0x9C) == "‹x9C›");
}

TEST_CASE("Bytes that are no character are shown one by one", "[figures][tokens]") {
    CHECK(visible_token("\xE6") == "‹xE6›");
    CHECK(visible_token("\xE6\x9C") == "‹xE6›‹x9C›");
    CHECK(visible_token("\xED\xA0\x80") == "‹xED›‹xA0›‹x80›");
}

TEST_CASE("Long tokens are elided between characters, never inside one", "[figures][tokens]") {
    CHECK(visible_token("antidisestablishmentarianism", 10) == "antidi…ism");
    CHECK(visible_token("antidisest", 10) == "antidisest");
    // e and a combining accent are one character.
    CHECK(visible_token("e\xCC\x81"
                        "e\xCC\x81"
                        "e\xCC\x81",
                        3) ==
          "e\xCC\x81"
          "e\xCC\x81"
          "e\xCC\x81");
    CHECK(visible_token("\xCC\x81") == "◌\xCC\x81");
    CHECK(visible_token("\xCC\x81x") == "◌\xCC\x81x");
}

TEST_CASE("A label is short, whatever the token", "[figures][tokens]") {
    CHECK(visible_token("abcdefghijk", 10) == "abcdef…ijk");
    std::string heap = "e";
    for (int i = 0; i < 100'000; ++i) heap += "\xCC\x81";
    CHECK(visible_token(heap, 10).size() < 10 * 80);
    CHECK(visible_token(std::string(50'000'000, 'x'), 10) == "xxxxxx…xxx");
}
