// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/workspace/token_display.h"

using namespace headscope;
using namespace headscope::workspace;

namespace {

struct Part {
    std::string piece;
    std::int64_t begin = 0, end = 0;
    std::int32_t id = 7;
};

store::SequenceTokens sequence(const std::string& text, const std::vector<Part>& parts) {
    store::SequenceTokens made;
    made.text = text;
    for (const Part& part : parts) {
        made.ids.push_back(part.id);
        made.pieces.push_back(part.piece);
        made.offsets.push_back({part.begin, part.end});
    }
    return made;
}

std::vector<std::string> labels(const std::vector<TokenChip>& chips) {
    std::vector<std::string> all;
    for (const TokenChip& chip : chips) all.push_back(chip.numbered());
    return all;
}

using Labels = std::vector<std::string>;

/// "<s> a 🙂\n" with the emoji in three tokens.
const store::SequenceTokens& emoji() {
    static const auto made = sequence(
        "a 🙂\n", {{"<s>", 0, 0}, {"a", 0, 1}, {" \xF0\x9F", 1, 6}, {"\x99", 2, 6}, {"\x82", 2, 6}, {"\n", 6, 7}});
    return made;
}

}  // namespace

TEST_CASE("Bytes of one character are shown as that character", "[workspace][tokens]") {
    const TokenDisplay display(emoji());
    const auto chips = display.chips(0, 99);
    CHECK(labels(chips) == Labels{"<s>", "a", "␣🙂 1/3", "␣🙂 2/3", "␣🙂 3/3", "↵"});
    REQUIRE(chips.size() == 6);
    CHECK(chips[0].special);
    CHECK_FALSE(chips[1].special);
    CHECK(chips[3].first == 2);
    CHECK(chips[3].token == 3);
    CHECK(chips[5].white_space);
    CHECK(chips[5].ends_line);
    CHECK_FALSE(chips[2].white_space);
}

TEST_CASE("A range of tokens has the chips that it has among all", "[workspace][tokens]") {
    const TokenDisplay display(emoji());
    const auto all = labels(display.chips(0, display.size()));
    for (std::int64_t first = -1; first <= display.size() + 1; ++first)
        for (std::int64_t count = -1; count <= display.size() + 1; ++count) {
            Labels expected;
            for (std::int64_t i = std::max<std::int64_t>(first, 0);
                 i < std::min(display.size(), std::max<std::int64_t>(first, 0) + count); ++i)
                expected.push_back(all[static_cast<std::size_t>(i)]);
            INFO(first << ", " << count);
            CHECK(labels(display.chips(first, count)) == expected);
        }
    CHECK(display.chip(4).numbered() == "␣🙂 3/3");
    CHECK(display.chip(99).label.empty());
}

TEST_CASE("Parts of a character are joined whatever their offsets say", "[workspace][tokens]") {
    // Each byte its own, as where a text was cut.
    const auto bytes = sequence("é", {{"\xC3", 0, 1}, {"\xA9", 1, 2}});
    CHECK(labels(TokenDisplay(bytes).chips(0, 2)) == Labels{"é 1/2", "é 2/2"});
    // Ids without a text.
    auto ids = sequence("", {{"x"}, {"\xE4\xB8"}, {"\xAD"}, {"y"}, {"\xAD"}});
    CHECK(labels(TokenDisplay(ids).chips(0, 5)) == Labels{"x", "中 1/2", "中 2/2", "y", "‹xAD›"});
    // One character that a normaliser made two of.
    const auto ligature = sequence("ﬁn", {{"f", 0, 3}, {"in", 0, 4}});
    CHECK(labels(TokenDisplay(ligature).chips(0, 2)) == Labels{"ﬁn 1/2", "ﬁn 2/2"});
}

TEST_CASE("A repeated token is not taken for parts of one character", "[workspace][tokens]") {
    const auto repeated = sequence("God made", {{" God", 0, 3}, {" God", 0, 3}, {" God", 0, 3}});
    CHECK(labels(TokenDisplay(repeated).chips(0, 3)) == Labels{"␣God", "␣God", "␣God"});
    // Two equal bytes of one character are.
    const auto twice =
        sequence("\xF0\x9F\x9F\xA0", {{"\xF0", 0, 4, 1}, {"\x9F", 0, 4, 2}, {"\x9F", 0, 4, 2}, {"\xA0", 0, 4, 3}});
    CHECK(labels(TokenDisplay(twice).chips(2, 1)) == Labels{"🟠 3/4"});
}

TEST_CASE("Special ids inside of a text are flagged", "[workspace][tokens]") {
    const auto chat = sequence("<|u|>hi", {{"<|u|>", 0, 5, 1}, {"hi", 5, 7, 2}});
    const auto chips = TokenDisplay(chat, {1}).chips(0, 2);
    CHECK(chips[0].special);
    CHECK(chips[0].label == "<|u|>");
    CHECK_FALSE(chips[1].special);
}

TEST_CASE("Sequences from elsewhere may have lists of different lengths", "[workspace][tokens]") {
    store::SequenceTokens odd;
    odd.ids = {5, 6, 7};
    odd.pieces = {"a"};
    odd.offsets = {{0, 1}, {-4, 99}};
    odd.text = "a";
    CHECK(labels(TokenDisplay(odd).chips(0, 3)) == Labels{"a", "#6", "#7"});
    // All tokens on one stretch: groups are cut, and stay linear.
    std::vector<Part> parts;
    for (std::int32_t i = 0; i < 32'000; ++i) parts.push_back({i % 2 == 0 ? "a" : "b", 0, 2, i % 2});
    const auto heap = sequence("ab", parts);
    const auto chips = TokenDisplay(heap).chips(0, 32'000);
    CHECK(chips[300].numbered() == "ab 45/256");
    CHECK(TokenDisplay(heap).chip(300).numbered() == "ab 45/256");
}
