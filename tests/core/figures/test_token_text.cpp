// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/figures/token_text.h"

using headscope::figures::visible_token;

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
}
