// SPDX-License-Identifier: GPL-3.0-or-later
// Vocabularies of GGUF files against sentencepiece and the models' own splits
// (tests/oracle/generate/gguf_tokenizers.py).
#include <catch2/catch.hpp>
#include <fstream>

#include "core/checkpoint/gguf/gguf.h"
#include "core/tokenizer/tokenizer.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/gguf/gguf_builder.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;
using nlohmann::json;

namespace {

json golden() {
    std::ifstream file(test::golden_file("gguf_tokenizers.json"));
    return json::parse(file);
}

std::optional<TokenizerDocuments> read(const GgufBuilder& file) {
    const TemporaryFolder folder;
    const InputFile opened(write_file(folder / "x.gguf", file.bytes()));
    return gguf_tokenizer(gguf::read_header(opened).metadata);
}

void refused(const GgufBuilder& file, ErrorCode code, const std::string& part) {
    REQUIRE_THROWS_MATCHES(read(file), Error, IsError(code, part));
}

std::shared_ptr<const tokenizer::Tokenizer> opened(const GgufBuilder& file) {
    return tokenizer::Tokenizer::from_json(read(file)->tokenizer.dump(), "tokenizer");
}

GgufBuilder byte_level(const json& entry, const std::string& split) {
    const auto tokens = entry.at("tokens").get<std::vector<std::string>>();
    std::vector<std::int32_t> types(tokens.size(), 1);
    types[types.size() - 2] = 4;
    types.back() = 3;
    GgufBuilder file;
    file.key("tokenizer.ggml.model", "gpt2")
        .key("tokenizer.ggml.pre", split.c_str())
        .key("tokenizer.ggml.tokens", tokens);
    file.key("tokenizer.ggml.token_type", types);
    file.key("tokenizer.ggml.merges", entry.at("merges").get<std::vector<std::string>>());
    return file.key("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(tokens.size() - 1));
}

/// Three words, a byte and a special token.
GgufBuilder few_pieces() {
    GgufBuilder file;
    file.key("tokenizer.ggml.model", "llama");
    file.key("tokenizer.ggml.tokens",
             std::vector<std::string>{"<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "\u2581ab"});
    file.key("tokenizer.ggml.scores", std::vector<float>{0, 0, 0, -9, -8, -7, -1, -2});
    return file.key("tokenizer.ggml.token_type", std::vector<std::int32_t>{2, 3, 3, 1, 1, 1, 1, 1});
}

GgufBuilder with_ends() {
    return few_pieces()
        .key("tokenizer.ggml.bos_token_id", std::uint32_t{1})
        .key("tokenizer.ggml.eos_token_id", std::uint32_t{2});
}

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("A GGUF file's byte-level vocabulary splits as its model does", "[checkpoint][gguf][tokenizer]") {
    const json all = golden();
    const json& entry = all.at("byte_level");
    for (const auto& [split, ids] : entry.at("ids").items()) {
        const auto tokenizer = opened(byte_level(entry, split));
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const auto text = all.at("texts").at(i).get<std::string>();
            INFO(split << ": " << text);
            CHECK(tokenizer->encode(text).ids == ids.at(i).get<Ids>());
            CHECK(tokenizer->decode(tokenizer->encode(text, false).ids) == text);
        }
    }
}

TEST_CASE("A GGUF file's pieces with scores merge as sentencepiece merges them", "[checkpoint][gguf][tokenizer]") {
    const json all = golden();
    for (const json& entry : all.at("sentence_piece")) {
        const bool prefix = entry.at("add_space_prefix");
        GgufBuilder file;
        file.key("tokenizer.ggml.model", "llama").key("tokenizer.ggml.add_space_prefix", prefix);
        file.key("tokenizer.ggml.tokens", entry.at("tokens").get<std::vector<std::string>>());
        file.key("tokenizer.ggml.token_type", entry.at("types").get<std::vector<std::int32_t>>());
        file.key("tokenizer.ggml.scores", entry.at("scores").get<std::vector<float>>());
        file.key("tokenizer.ggml.bos_token_id", std::uint32_t{1});
        const auto tokenizer = opened(file);
        for (std::size_t i = 0; i < all.at("texts").size(); ++i) {
            const auto text = all.at("texts").at(i).get<std::string>();
            INFO(text << (prefix ? ", with a space before it" : ""));
            const Ids ids = tokenizer->encode(text).ids;
            CHECK(ids == entry.at("ids").at(i).get<Ids>());
            CHECK(tokenizer->decode(ids, true) == text);
        }
    }
}

TEST_CASE("Tokens at the ends of a text follow the keys of a GGUF file", "[checkpoint][gguf][tokenizer]") {
    CHECK(opened(with_ends())->encode("ab").ids == Ids{1, 7});
    CHECK(opened(with_ends().key("tokenizer.ggml.add_eos_token", true))->encode("ab").ids == Ids{1, 7, 2});
    CHECK(opened(with_ends().key("tokenizer.ggml.add_bos_token", false))->encode("ab").ids == Ids{7});
    CHECK(opened(few_pieces())->encode("ab").ids == Ids{7});
    CHECK(opened(with_ends())->encode("ab</s>c").ids == Ids{1, 7, 2, 3, 0});
    CHECK(opened(with_ends().key("tokenizer.ggml.add_space_prefix", false))->encode("ab ab").ids == Ids{1, 6, 7});
    refused(few_pieces().key("tokenizer.ggml.add_eos_token", true), ErrorCode::mismatch, "names no eos_token_id");
}

TEST_CASE("Settings of a GGUF file's tokenizer have the names of tokenizer_config.json",
          "[checkpoint][gguf][tokenizer]") {
    GgufBuilder file = with_ends();
    file.key("tokenizer.ggml.unknown_token_id", std::uint32_t{0}).key("tokenizer.ggml.padding_token_id", 4294967295U);
    file.key("tokenizer.chat_template", "{{ x }}").key("tokenizer.ggml.add_bos_token", true);
    const json settings = read(file)->settings;
    CHECK(settings.at("bos_token") == "<s>");
    CHECK(settings.at("eos_token") == "</s>");
    CHECK(settings.at("unk_token") == "<unk>");
    CHECK_FALSE(settings.contains("pad_token"));
    CHECK(settings.at("add_bos_token") == true);
    CHECK(settings.at("chat_template") == "{{ x }}");
    file.key("tokenizer.chat_templates", std::vector<std::string>{"tool_use"});
    file.key("tokenizer.chat_template.tool_use", "{{ y }}");
    const json named = read(file)->settings.at("chat_template");
    CHECK(named.at(0) == json{{"name", "default"}, {"template", "{{ x }}"}});
    CHECK(named.at(1) == json{{"name", "tool_use"}, {"template", "{{ y }}"}});
}

TEST_CASE("A whole tokenizer.json in a GGUF file wins", "[checkpoint][gguf][tokenizer]") {
    GgufBuilder file = few_pieces();
    file.key("tokenizer.huggingface.json", R"({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}})");
    CHECK(read(file)->tokenizer.at("model").at("type") == "WordLevel");
    file = few_pieces();
    refused(file.key("tokenizer.huggingface.json", "{"), ErrorCode::format, "tokenizer.huggingface.json");
    CHECK_FALSE(read(GgufBuilder().key("general.name", "x")).has_value());
    CHECK_FALSE(read(GgufBuilder().key("tokenizer.ggml.model", "none")).has_value());
}

TEST_CASE("Words of BERT lose the spaces that a GGUF file gives them", "[checkpoint][gguf][tokenizer]") {
    GgufBuilder file;
    file.key("tokenizer.ggml.model", "bert");
    file.key("tokenizer.ggml.tokens",
             std::vector<std::string>{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581play", "ing", "\u2581ing"});
    file.key("tokenizer.ggml.token_type", std::vector<std::int32_t>{3, 3, 3, 3, 1, 1, 1});
    file.key("tokenizer.ggml.bos_token_id", std::uint32_t{2})
        .key("tokenizer.ggml.seperator_token_id", std::uint32_t{3});
    file.key("tokenizer.ggml.unknown_token_id", std::uint32_t{1});
    CHECK(opened(file)->encode("Playing ing x").ids == Ids{2, 4, 5, 6, 1, 3});
    file.key("tokenizer.ggml.normalizer.lowercase", false);
    CHECK(opened(file)->encode("Playing ing").ids == Ids{2, 1, 6, 3});
}

TEST_CASE("Pieces of T5 keep their scores", "[checkpoint][gguf][tokenizer]") {
    GgufBuilder file;
    file.key("tokenizer.ggml.model", "t5");
    file.key("tokenizer.ggml.tokens",
             std::vector<std::string>{"<pad>", "</s>", "<unk>", "\u2581", "a", "b", "\u2581a", "ab"});
    file.key("tokenizer.ggml.scores", std::vector<float>{0, 0, 0, -3, -4, -4, -5, -2});
    file.key("tokenizer.ggml.token_type", std::vector<std::int32_t>{3, 3, 2, 1, 1, 1, 1, 1});
    file.key("tokenizer.ggml.eos_token_id", std::uint32_t{1}).key("tokenizer.ggml.unknown_token_id", std::uint32_t{2});
    CHECK(opened(file)->encode("  ab  b").ids == Ids{3, 7, 3, 5, 1});
    file.key("tokenizer.ggml.remove_extra_whitespaces", false);
    CHECK(opened(file)->encode(" ab").ids == Ids{3, 3, 7, 1});
}

TEST_CASE("Vocabularies of a GGUF file that cannot be read are refused by key", "[checkpoint][gguf][tokenizer]") {
    const json all = golden();
    const json& entry = all.at("byte_level");
    refused(byte_level(entry, "unheard-of"), ErrorCode::unsupported, "\"tokenizer.ggml.pre\"");
    refused(byte_level(entry, "gpt-2").key("tokenizer.ggml.new", 1), ErrorCode::unsupported, "\"tokenizer.ggml.new\"");
    refused(byte_level(entry, "gpt-2").key("tokenizer.ggml.eos_token_id", 900), ErrorCode::mismatch, "eos_token_id");
    refused(few_pieces().key("tokenizer.ggml.remove_extra_whitespaces", true), ErrorCode::unsupported,
            "extra_whitespaces");
    const auto with = [](const std::string& key, const GgufValueBytes& value) {
        GgufBuilder file;
        file.key("tokenizer.ggml.model", key == "model" ? value : GgufValueBytes("llama"));
        file.key("tokenizer.ggml.tokens",
                 key == "tokens" ? value : GgufValueBytes(std::vector<std::string>{"<unk>", "a"}));
        if (key != "no scores")
            file.key("tokenizer.ggml.scores", key == "scores" ? value : GgufValueBytes(std::vector<float>{0, 1}));
        if (key == "token_type") file.key("tokenizer.ggml.token_type", value);
        return file;
    };
    read(with("", 0));
    refused(with("model", "rwkv"), ErrorCode::unsupported, "found \"rwkv\"");
    refused(with("tokens", std::vector<std::string>{"a", "a"}), ErrorCode::format, "each token once");
    refused(with("tokens", std::vector<std::string>{"a", "\xFF"}), ErrorCode::format, "UTF-8");
    refused(with("tokens", std::vector<std::string>{}), ErrorCode::format, "tokenizer.ggml.tokens");
    refused(with("tokens", std::vector<std::int32_t>{1, 2}), ErrorCode::format, "array of strings");
    refused(with("scores", std::vector<float>{0}), ErrorCode::format, "each of 2 tokens");
    refused(with("scores", std::vector<float>{0, std::numeric_limits<float>::quiet_NaN()}), ErrorCode::format,
            "finite");
    refused(with("no scores", 0), ErrorCode::format, "tokenizer.ggml.scores");
    refused(with("token_type", std::vector<std::int32_t>{1, 7}), ErrorCode::unsupported, "found 7");
}

TEST_CASE("A GGUF file beside other weights is not their tokenizer", "[checkpoint][gguf]") {
    const TemporaryFolder folder;
    write_file(folder / "other.gguf", GgufBuilder().bytes());
    CHECK_FALSE(tokenizer::Tokenizer::is_in(folder.path()));
}
