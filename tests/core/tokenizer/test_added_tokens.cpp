// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "tests/core/tokenizer/json_parts.h"

using namespace headscope::test;
using Ids = std::vector<std::int32_t>;
using Offsets = std::vector<std::array<std::int64_t, 2>>;

TEST_CASE("Added tokens keep the vocabulary's id or follow it, whatever the file says", "[tokenizer][added]") {
    JsonParts parts;  // the file says 0 for each
    parts.added_tokens = "[" + added_token("<x>") + "," + added_token("ab") + "," + added_token("<y>") + "]";
    const auto tokenizer = parts.make();
    REQUIRE(tokenizer->encode("<x>ab<y>").ids == Ids{3, 2, 4});
    REQUIRE(tokenizer->vocabulary_size() == 5);
    REQUIRE(tokenizer->id_of("<y>") == 4);
    REQUIRE(tokenizer->piece(4) == "<y>");
}

TEST_CASE("Added tokens take white space along", "[tokenizer][added]") {
    JsonParts parts;
    parts.added_tokens = "[" + added_token("<l>", true) + "," + added_token("<r>", false, true) + "]";
    const auto tokenizer = parts.make();
    const auto encoding = tokenizer->encode("a \u3000<l>b<r>  b");
    REQUIRE(encoding.ids == Ids{0, 3, 1, 4, 1});
    REQUIRE(encoding.offsets == Offsets{{0, 1}, {1, 8}, {8, 9}, {9, 14}, {14, 15}});
    REQUIRE(tokenizer->pieces(encoding) == std::vector<std::string>{"a", " \u3000<l>", "b", "<r>  ", "b"});
    REQUIRE(tokenizer->decode(encoding.ids) == "a <l> b <r> b");
}

TEST_CASE("Single words are not found within words", "[tokenizer][added]") {
    JsonParts parts;
    parts.added_tokens = "[" + added_token("ba", false, false, true) + "]";
    const auto tokenizer = parts.make();
    REQUIRE(tokenizer->encode("ba").ids == Ids{3});
    REQUIRE(tokenizer->encode("aba").ids == Ids{2, 0});
    REQUIRE(tokenizer->encode("a-ba.").ids == Ids{0, 3});
}

TEST_CASE("The longest of the tokens that begin first wins", "[tokenizer][added]") {
    JsonParts parts;
    parts.added_tokens = "[" + added_token("<a>") + "," + added_token("<a>b") + "," + added_token("a><") + "]";
    REQUIRE(parts.make()->encode("<a>b<a><").ids == Ids{4, 3});
}

TEST_CASE("Normalised tokens are found in normalised text, and normalising stops at the others", "[tokenizer][added]") {
    JsonParts parts;
    parts.normalizer =
        R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "b"}, {"type": "Lowercase"}]})";
    parts.added_tokens = "[" + added_token("<S>", false, false, false, true, true) + "," + added_token("<RAW>") + "]";
    const auto tokenizer = parts.make();
    // "<S>" stands for "b<s>": it begins a text, and is no token elsewhere.
    const auto encoding = tokenizer->encode("<S>A<s>");
    REQUIRE(encoding.ids == Ids{3, 0});
    REQUIRE(encoding.offsets == Offsets{{0, 3}, {3, 4}});
    REQUIRE(tokenizer->encode("A<RAW>A<raw>").ids == Ids{1, 0, 4, 1, 0, 0});
    REQUIRE(tokenizer->piece(3) == "b<s>");
    REQUIRE(tokenizer->surface(3) == "<S>");
    REQUIRE(tokenizer->decode(Ids{3, 0}, true) == "b<s> a");  // as in the reference
}

TEST_CASE("Special tokens can be left out of decoded text", "[tokenizer][added]") {
    JsonParts parts;
    parts.added_tokens = "[" + added_token("<s>", false, false, false, false, true) + "," + added_token("<n>") + "]";
    const auto tokenizer = parts.make();
    REQUIRE(tokenizer->decode(Ids{3, 0, 4}) == "<s> a <n>");
    REQUIRE(tokenizer->decode(Ids{3, 0, 4}, true) == "a <n>");
    REQUIRE(tokenizer->decode(Ids{-1, 0, 77, 2'000'000'000}) == "a");
}

TEST_CASE("Tokens that are new to a vocabulary with holes follow its count", "[tokenizer][added]") {
    JsonParts parts;
    parts.model = R"({"type": "BPE", "vocab": {"a": 0, "b": 5, "[X]": 9}, "merges": []})";
    parts.added_tokens = "[" + added_token("[X]") + "," + added_token("[Y]") + "," + added_token("[Z]") + "]";
    REQUIRE(parts.make()->encode("a[X]b[Y][Z]").ids == Ids{0, 9, 5, 3, 4});  // as in the reference
}
