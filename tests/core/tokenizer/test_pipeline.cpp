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

namespace {

const std::string kText = R"({"Sequence": {"id": "A", "type_id": 0}})";
const std::string kStart = R"({"SpecialToken": {"id": "<s>", "type_id": 0}})";

std::string template_of(const std::string& single) {
    return R"({"type": "TemplateProcessing", "pair": [], "single": [)" + single +
           R"(], "special_tokens": {"<s>": {"id": "<s>", "ids": [7], "tokens": ["<s>"]}}})";
}

std::shared_ptr<const tokenizer::Tokenizer> with_post_processor(const std::string& post_processor) {
    JsonParts parts;
    parts.post_processor = post_processor;
    return parts.make();
}

}  // namespace

TEST_CASE("A template may have the text twice, or not at all", "[tokenizer][pipeline]") {
    const auto twice = with_post_processor(template_of(kText + "," + kStart + "," + kText));
    REQUIRE(twice->encode("abb").ids == Ids{2, 1, 7, 2, 1});
    REQUIRE(twice->encode("abb").offsets == Offsets{{0, 2}, {2, 3}, {0, 0}, {0, 2}, {2, 3}});
    REQUIRE(twice->encode("abb", false).ids == Ids{2, 1, 2, 1});
    const auto without = with_post_processor(template_of(kStart));
    REQUIRE(without->encode("abb").ids == Ids{7});
    REQUIRE(without->encode("abb", false).ids.empty());
    REQUIRE(without->adds_first_token());
    REQUIRE_FALSE(twice->adds_first_token());
}

TEST_CASE("Of several processors that add tokens each puts its own around what the ones before made",
          "[tokenizer][pipeline]") {
    const std::string bert = R"({"type": "BertProcessing", "sep": ["a", 0], "cls": ["b", 1]})";
    const std::string roberta = R"({"type": "RobertaProcessing", "sep": ["<e>", 9], "cls": ["<b>", 8],
                                    "trim_offsets": false, "add_prefix_space": false})";
    const auto sequence = [](const std::string& list) {
        return R"({"type": "Sequence", "processors": [)" + list + "]}";
    };
    const auto both = with_post_processor(sequence(bert + "," + roberta));
    REQUIRE(both->encode("ab").ids == Ids{8, 1, 2, 0, 9});
    REQUIRE(both->encode("ab", false).ids == Ids{2});
    REQUIRE(with_post_processor(sequence(roberta + "," + bert))->encode("ab").ids == Ids{1, 8, 2, 9, 0});
    // Parts of a template are closed one by one.
    const std::string twice = template_of(kText + "," + kStart + "," + kText);
    REQUIRE(with_post_processor(sequence(twice + "," + bert))->encode("ab").ids == Ids{1, 2, 0, 7, 0, 2, 0});
    REQUIRE(with_post_processor(sequence(twice + "," + roberta))->encode("ab").ids == Ids{8, 2, 9, 9, 7, 9, 9, 2, 9});
    REQUIRE(with_post_processor(sequence(bert + "," + twice))->encode("ab").ids == Ids{1, 2, 0, 7, 1, 2, 0});
}

TEST_CASE("Components without a type are known by their fields", "[tokenizer][pipeline]") {
    JsonParts parts;
    parts.normalizer = R"({"normalizers": [{"strip_left": true, "strip_right": true},
                           {"pattern": {"String": "x"}, "content": "a"}, {"prepend": "b"}]})";
    parts.decoder = R"({"suffix": "b"})";
    parts.post_processor = R"({"sep": ["a", 0], "cls": ["b", 1]})";
    REQUIRE(parts.make()->encode("  xb ").ids == Ids{1, 1, 2, 0});
    REQUIRE(parts.make()->decode(Ids{2, 2}) == "a a");
    parts.normalizer = R"({"clean_text": true, "handle_chinese_chars": true, "lowercase": true})";
    REQUIRE(parts.make()->encode("AB", false).ids == Ids{2});
}

TEST_CASE("Pieces may share an id", "[tokenizer][pipeline]") {
    JsonParts parts;
    parts.model = R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 1}, "merges": []})";
    parts.added_tokens = "[" + added_token("<x>") + "]";
    const auto tokenizer = parts.make();
    REQUIRE(tokenizer->encode("abc<x>").ids == Ids{0, 1, 1, 3});
    REQUIRE(tokenizer->piece(1) == "b");
    REQUIRE(tokenizer->decode(Ids{0, 1}) == "a b");
}
