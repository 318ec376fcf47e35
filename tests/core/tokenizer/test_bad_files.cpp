// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "tests/core/base/error_matcher.h"
#include "tests/core/tokenizer/json_parts.h"

using namespace headscope;
using namespace headscope::test;
using tokenizer::Tokenizer;

namespace {

void refused(const JsonParts& parts, ErrorCode code, const std::string& part) {
    INFO(parts.text());
    REQUIRE_THROWS_MATCHES(parts.make(), Error, IsError(code, part));
}

JsonParts with_model(const std::string& model) {
    JsonParts parts;
    parts.model = model;
    return parts;
}

}  // namespace

TEST_CASE("Vocabularies and merges that contradict each other are refused with their place", "[tokenizer][bad]") {
    refused(with_model(R"({"vocab": {"a": 0, "b": 1}, "merges": ["a b"]})"), ErrorCode::mismatch,
            "[t.json: model.merges[0]] expected pieces of the vocabulary; found \"ab\"");
    refused(with_model(R"({"vocab": {"a": 0, "ab": 1}, "merges": [["a", "b"]]})"), ErrorCode::mismatch,
            "\"b\", which it lacks");
    refused(with_model(R"({"vocab": {"a": 0}, "merges": ["a"]})"), ErrorCode::format, "model.merges[0]");
    refused(with_model(R"({"vocab": {"a": 0}, "merges": ["a  a"]})"), ErrorCode::format, "model.merges[0]");
    refused(with_model(R"({"vocab": {"a": 0}, "merges": [["a"]]})"), ErrorCode::format, "model.merges[0]");
    refused(with_model(R"({"vocab": {"a": 0}, "merges": [7]})"), ErrorCode::format, "model.merges[0]");
    refused(with_model(R"({"vocab": {"a": 0}, "merges": {}})"), ErrorCode::format, "model.merges");
    refused(with_model(R"({"vocab": {"a": -1}, "merges": []})"), ErrorCode::limit, "model.vocab.a");
    refused(with_model(R"({"vocab": {"a": 99999999999}, "merges": []})"), ErrorCode::limit, "model.vocab.a");
    refused(with_model(R"({"vocab": {"a": 18446744073709551615}, "merges": []})"), ErrorCode::limit, "model.vocab.a");
    refused(with_model(R"({"vocab": {"a": 0.5}, "merges": []})"), ErrorCode::format, "model.vocab.a");
    refused(with_model(R"({"vocab": {"a": "0"}, "merges": []})"), ErrorCode::format, "model.vocab.a");
    refused(with_model(R"({"vocab": [], "type": "BPE", "merges": []})"), ErrorCode::format, "model.vocab");
    refused(with_model(R"({"type": "BPE", "vocab": {}})"), ErrorCode::format, "merges");
    refused(with_model(R"({"vocab": {"a": 0, "a": 1}, "merges": []})"), ErrorCode::format, "t.json");
}

TEST_CASE("Kinds that are not known are named", "[tokenizer][bad]") {
    refused(with_model(R"({"type": "Quantum", "vocab": {}})"), ErrorCode::unsupported, "\"Quantum\"");
    JsonParts parts;
    parts.normalizer = R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Rot13"}]})";
    refused(parts, ErrorCode::unsupported, "[t.json: normalizer.normalizers[1].type] expected a known normaliser");
    parts = {};
    parts.pre_tokenizer = R"({"type": "Scissors"})";
    refused(parts, ErrorCode::unsupported, "Scissors");
    parts = {};
    parts.post_processor = R"({"type": "Glue"})";
    refused(parts, ErrorCode::unsupported, "Glue");
    parts = {};
    parts.decoder = R"({"type": "Oracle"})";
    refused(parts, ErrorCode::unsupported, "Oracle");
    parts.decoder = R"({"kind": "Fuse"})";
    refused(parts, ErrorCode::format, "type");
    parts.decoder = R"({"decoders": []})";
    refused(parts, ErrorCode::format, "type");
    parts = {};
    parts.pre_tokenizer = R"({"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated", "invert": false})";
    refused(parts, ErrorCode::format, "pre_tokenizer.pattern.Regex");
    parts.pre_tokenizer = R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Torn", "invert": false})";
    refused(parts, ErrorCode::unsupported, "Torn");
    parts = {};
    parts.post_processor = R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                              {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {}})";
    refused(parts, ErrorCode::mismatch, "<s>");
    REQUIRE_THROWS_MATCHES(Tokenizer::from_json(R"({"version": "2.0", "model": {}})", "t.json"), Error,
                           IsError(ErrorCode::unsupported, "version"));
}

TEST_CASE("What is no tokenizer.json is refused", "[tokenizer][bad]") {
    for (const std::string text : {"", "{", "[]", "7", "{}", "null", "{\"model\": null}", "{\"model\": []}", "\xFF"}) {
        INFO(text);
        REQUIRE_THROWS_AS(Tokenizer::from_json(text, "t.json"), Error);
    }
    std::string deep = R"({"version": "1.0", "model": {"vocab": {}, "merges": []}, "normalizer": )";
    for (int i = 0; i < 100'000; ++i) deep += R"({"type": "Sequence", "normalizers": [)";
    REQUIRE_THROWS_AS(Tokenizer::from_json(deep, "t.json"), Error);
    REQUIRE_THROWS_MATCHES(Tokenizer::from_file("/nonexistent/tokenizer.json"), Error, IsError(ErrorCode::io));
    REQUIRE_THROWS_AS(Tokenizer::from_file("/"), Error);
    REQUIRE_THROWS_AS(Tokenizer::from_file("/dev/zero"), Error);
}

TEST_CASE("Text that is no UTF-8 is refused with its byte", "[tokenizer][bad]") {
    const auto tokenizer = JsonParts().make();
    for (const std::string text : {"ab\xFF", "ab\xE4\xB8", "ab\xC0\x80", "ab\xED\xA0\x80", "ab\xF4\x90\x80\x80"}) {
        REQUIRE_THROWS_MATCHES(tokenizer->encode(text), Error, IsError(ErrorCode::format, "at byte 2"));
    }
    REQUIRE(tokenizer->encode(std::string("a\0b", 3)).ids.size() == 1);  // unknown and without a token for it: left out
}

TEST_CASE("An unknown word without a token for it is an error", "[tokenizer][bad]") {
    const auto words = with_model(R"({"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"})").make();
    REQUIRE(words->encode("a").ids.size() == 1);
    REQUIRE_THROWS_MATCHES(words->encode("b"), Error, IsError(ErrorCode::mismatch, "[UNK]"));
    const auto pieces = with_model(R"({"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "[UNK]"})").make();
    REQUIRE_THROWS_MATCHES(pieces->encode("b"), Error, IsError(ErrorCode::mismatch, "[UNK]"));
    const auto bpe = with_model(R"({"vocab": {"a": 0}, "merges": [], "unk_token": "[UNK]"})").make();
    REQUIRE_THROWS_MATCHES(bpe->encode("b"), Error, IsError(ErrorCode::mismatch, "[UNK]"));
}

TEST_CASE("Templates that put the text where there is none are refused", "[tokenizer][bad]") {
    const auto with_single = [](const std::string& single) {
        return R"({"type": "TemplateProcessing", "pair": [], "special_tokens": {}, "single": )" + single + "}";
    };
    const std::string text = R"({"Sequence": {"id": "A", "type_id": 0}})";
    JsonParts parts;
    parts.post_processor = with_single(R"([{"Sequence": {"id": "B", "type_id": 0}}])");
    refused(parts, ErrorCode::unsupported, "post_processor.single[0]] expected the sequence A alone");
    const std::string twice = with_single("[" + text + "," + text + "]");
    parts.post_processor = R"({"type": "Sequence", "processors": [)" + twice + "," + twice + "]}";
    refused(parts, ErrorCode::unsupported, "found 2 parts before it");
    std::string often = text;
    for (int i = 0; i < 16; ++i) often += "," + text;
    parts.post_processor = with_single("[" + often + "]");
    refused(parts, ErrorCode::limit, "the text at most 16 times");
}
