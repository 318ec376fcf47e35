// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <chrono>

#include "tests/core/base/error_matcher.h"
#include "tests/core/tokenizer/json_parts.h"

using namespace headscope;
using namespace headscope::test;
using tokenizer::Tokenizer;
using Ids = std::vector<std::int32_t>;
using Offsets = std::vector<std::array<std::int64_t, 2>>;

TEST_CASE("Bytes are ids", "[tokenizer][bytes]") {
    const auto bytes = Tokenizer::bytes();
    const auto encoding = bytes->encode("aé\xFF");
    REQUIRE(encoding.ids == Ids{0x61, 0xC3, 0xA9, 0xFF});
    REQUIRE(encoding.offsets == Offsets{{0, 1}, {1, 2}, {2, 3}, {3, 4}});
    REQUIRE(encoding.special == std::vector<std::uint8_t>(4, 0));
    REQUIRE(bytes->decode(encoding.ids) == "aé\uFFFD");
    REQUIRE(bytes->decode(Ids{-1, 256, 0x62}) == "b");
    REQUIRE(bytes->vocabulary_size() == 256);
    REQUIRE(bytes->piece(' ') == "Ġ");
    REQUIRE(bytes->surface(' ') == " ");
    REQUIRE(bytes->id_of("Ġ") == 32);
    REQUIRE_FALSE(bytes->id_of("ab").has_value());
    for (std::int32_t id = 0; id < 256; ++id) REQUIRE(bytes->id_of(bytes->piece(id)) == id);
}

TEST_CASE("Truncation and padding of the file are ignored", "[tokenizer][pipeline]") {
    REQUIRE(JsonParts().make()->encode("ababab").ids == Ids{2, 2, 2});
    REQUIRE(JsonParts().make()->encode("").ids.empty());
}

TEST_CASE("A word with more characters than WordPiece takes is unknown", "[tokenizer][pipeline]") {
    JsonParts parts;
    parts.model = R"({"unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 4,
                      "vocab": {"[UNK]": 0, "é": 1, "##é": 2, "##éé": 3, "##x": 4}})";
    const auto tokenizer = parts.make();
    REQUIRE(tokenizer->encode("éééé").ids == Ids{1, 3, 2});
    REQUIRE(tokenizer->encode("ééééé").ids == Ids{0});
    REQUIRE(tokenizer->encode("éz").ids == Ids{0});
    REQUIRE(tokenizer->encode("ééx").offsets == Offsets{{0, 2}, {2, 4}, {4, 5}});
}

TEST_CASE("A long word of a WordPiece that takes any length is no square", "[tokenizer][pipeline]") {
    JsonParts parts;
    parts.model = R"({"type": "WordPiece", "unk_token": "u", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 1000000000, "vocab": {"u": 0, "a": 1, "##a": 2, "##aaa": 3}})";
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE(parts.make()->encode(std::string(1'000'000, 'a')).ids.size() == 333'334);
    REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("Byte-level text is spelled out for components that come after it", "[tokenizer][pipeline]") {
    JsonParts parts;
    parts.model = R"({"type": "WordLevel", "vocab": {"a": 0, "Ġ": 1, "Ã": 2, "©": 3, "?": 4}, "unk_token": "?"})";
    parts.pre_tokenizer = R"({"type": "Sequence", "pretokenizers": [
        {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": false},
        {"type": "FixedLength", "length": 1}]})";
    const auto encoding = parts.make()->encode("aé");
    REQUIRE(encoding.ids == Ids{1, 0, 2, 3});
    REQUIRE(encoding.offsets == Offsets{{0, 1}, {0, 1}, {1, 3}, {1, 3}});
}

TEST_CASE("Offsets are trimmed by characters, in bytes", "[tokenizer][pipeline]") {
    JsonParts parts;
    parts.added_tokens = "[" + added_token("<m>", true, true) + "]";
    parts.post_processor = R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true})";
    const auto encoding = parts.make()->encode("a\u3000 <m>\u3000b");
    REQUIRE(encoding.ids == Ids{0, 3, 1});
    REQUIRE(encoding.offsets == Offsets{{0, 1}, {5, 8}, {11, 12}});
}

TEST_CASE("Old and new Metaspace files say the same", "[tokenizer][pipeline]") {
    JsonParts parts;
    parts.model = R"({"vocab": {"▁": 0, "a": 1}, "merges": []})";
    parts.pre_tokenizer = R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": true})";
    REQUIRE(parts.make()->encode("a a").ids == Ids{0, 1, 0, 1});
    parts.pre_tokenizer = R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": false})";
    REQUIRE(parts.make()->encode("a a").ids == Ids{1, 0, 1});
    parts.pre_tokenizer = R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": false})";
    REQUIRE(parts.make()->encode("a a").ids == Ids{1, 0, 1});
    parts.pre_tokenizer = R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": false,
                              "prepend_scheme": "first"})";
    REQUIRE_THROWS_MATCHES(parts.make(), Error, IsError(ErrorCode::mismatch, "prepend_scheme"));
}
