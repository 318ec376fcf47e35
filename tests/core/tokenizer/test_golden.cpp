// SPDX-License-Identifier: GPL-3.0-or-later
// Tokens of awkward texts against those of the `tokenizers` library (tests/oracle/generate/tokenizer_files.py).
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/unicode/utf8.h"
#include "tests/oracle/golden.h"

using namespace headscope::tokenizer;
using nlohmann::json;

namespace {

const std::string folder = headscope::test::golden_file("tokenizer/");

const json& golden() {
    static const json document = [] {
        std::ifstream file(folder + "expected.json");
        return json::parse(file);
    }();
    return document;
}

std::vector<std::int64_t> flat(const Encoding& encoding) {
    std::vector<std::int64_t> all;
    for (const auto& [begin, end] : encoding.offsets) all.insert(all.end(), {begin, end});
    return all;
}

std::vector<std::string> expected_pieces(const Tokenizer& tokenizer, const json& expected) {
    std::vector<std::string> pieces;
    for (const std::int32_t id : expected.at("ids")) pieces.push_back(tokenizer.piece(id));
    for (const auto& respelled : expected.at("pieces")) pieces.at(respelled[0]) = respelled[1];
    return pieces;
}

}  // namespace

TEST_CASE("Ids, pieces and byte offsets are the reference's", "[tokenizer][golden]") {
    const auto name = GENERATE(as<std::string>{}, "gpt2", "roberta", "llama3", "qwen2", "cased_pattern", "llama2",
                               "mistral", "metaspace", "bert_uncased", "bert_cased", "clip", "words", "splits", "t5",
                               "unigram_bytes", "scripts");
    const auto tokenizer = Tokenizer::from_file(folder + name + ".json");
    const json& encodings = golden().at(name).at("encodings");
    REQUIRE(encodings.size() >= golden().at("texts").size());
    for (const json& expected : encodings) {
        const std::string text = golden().at("texts").at(expected.at("text").get<std::size_t>());
        INFO(name << ": " << json(text).dump() << (expected.at("add") ? "" : ", nothing added"));
        const Encoding found = tokenizer->encode(text, expected.at("add"));
        REQUIRE(found.ids == expected.at("ids").get<std::vector<std::int32_t>>());
        REQUIRE(flat(found) == expected.at("offsets").get<std::vector<std::int64_t>>());
        REQUIRE(tokenizer->pieces(found) == expected_pieces(*tokenizer, expected));
        REQUIRE(std::count(found.special.begin(), found.special.end(), 1) == expected.at("special"));
        REQUIRE(found.special.size() == found.ids.size());
    }
}

TEST_CASE("Pairs are joined as the reference joins them", "[tokenizer][golden]") {
    struct Tokens final : TokenSink {
        void add(const FoundToken& token) override {
            const std::string& text = texts[token.region == 2 ? 1 : 0];
            ids.push_back(token.id);
            types.push_back(token.type);
            regions.push_back(token.region);
            special += token.special ? 1 : 0;
            const auto characters = [&](std::size_t byte) {
                return count_utf8(std::string_view(text).substr(0, byte));
            };
            offsets.push_back({characters(token.begin), characters(token.end)});
        }
        std::vector<std::string> texts;
        std::vector<std::int32_t> ids, types, regions;
        std::vector<std::array<std::size_t, 2>> offsets;
        int special = 0;
    };
    const auto read = [](const std::string& name) {
        std::ifstream file(folder + name + ".json");
        return json::parse(file);
    };
    for (const json& one : read("pairs")) {
        json description = read(one.at("file"));
        if (one.contains("post_processor")) description["post_processor"] = one.at("post_processor");
        const auto tokenizer = Tokenizer::from_json(description.dump(), "pairs");
        for (const json& expected : one.at("encodings")) {
            Tokens found;
            for (const std::size_t text : expected.at("texts")) found.texts.push_back(golden().at("texts").at(text));
            tokenizer->encode_pair_into(found, found.texts[0], found.texts[1], expected.at("add"));
            INFO(one.at("file") << " " << one.value("post_processor", json()).dump() << " "
                                << json(found.texts).dump());
            REQUIRE(found.ids == expected.at("ids").get<std::vector<std::int32_t>>());
            REQUIRE(found.types == expected.at("types").get<std::vector<std::int32_t>>());
            REQUIRE(found.special == expected.at("special"));
            REQUIRE(json(found.offsets) == expected.at("characters"));
            if (!expected.at("regions").empty()) REQUIRE(json(found.regions) == expected.at("regions"));
        }
    }
}

TEST_CASE("Decoded text is the reference's, parts of characters included", "[tokenizer][golden]") {
    const auto name = GENERATE(as<std::string>{}, "gpt2", "roberta", "llama3", "qwen2", "cased_pattern", "llama2",
                               "mistral", "metaspace", "bert_uncased", "bert_cased", "clip", "words", "splits", "t5",
                               "unigram_bytes", "scripts");
    const auto tokenizer = Tokenizer::from_file(folder + name + ".json");
    for (const json& expected : golden().at(name).at("decodings")) {
        // A list of ids, or the number of a text whose encoding is meant.
        std::vector<std::int32_t> ids;
        if (expected[0].is_array()) {
            ids = expected[0].get<std::vector<std::int32_t>>();
        } else {
            ids = tokenizer->encode(golden().at("texts").at(expected[0].get<std::size_t>()).get<std::string>()).ids;
        }
        INFO(name << ": " << json(ids).dump());
        REQUIRE(tokenizer->decode(ids, expected[1]) == expected[2].get<std::string>());
    }
}

TEST_CASE("Whether a token goes before the text is known", "[tokenizer][golden]") {
    const auto adds = [](const std::string& name) {
        return Tokenizer::from_file(folder + name + ".json")->adds_first_token();
    };
    REQUIRE(adds("llama2"));
    REQUIRE(adds("llama3"));
    REQUIRE(adds("roberta"));
    REQUIRE(adds("bert_cased"));
    REQUIRE_FALSE(adds("gpt2"));
    REQUIRE_FALSE(adds("qwen2"));
    REQUIRE_FALSE(Tokenizer::bytes()->adds_first_token());
}

TEST_CASE("Surfaces read as text", "[tokenizer][golden]") {
    const auto gpt2 = Tokenizer::from_file(folder + "gpt2.json");
    REQUIRE(gpt2->surface(gpt2->id_of("Ġthe").value()) == " the");
    REQUIRE(gpt2->surface(gpt2->id_of("Ã").value()) == "\xC3");
    REQUIRE(gpt2->surface(gpt2->id_of("<|end|>").value()) == "<|end|>");
    const auto llama2 = Tokenizer::from_file(folder + "llama2.json");
    REQUIRE(llama2->surface(llama2->id_of("▁th").value()) == " th");
    REQUIRE(llama2->surface(llama2->id_of("<0x0A>").value()) == "\n");
    REQUIRE(llama2->surface(llama2->id_of("<s>").value()) == "<s>");
    REQUIRE(llama2->piece(1'000'000).empty());
    REQUIRE(llama2->surface(-1).empty());
    REQUIRE_FALSE(llama2->id_of("no such piece").has_value());
}

TEST_CASE("The bundled sample's tokenizer gives text back", "[tokenizer]") {
    const auto tokenizer = Tokenizer::from_file(std::string(HEADSCOPE_SOURCE_DIR) +
                                                "/resources/samples/llama-kjv-shakespeare/tokenizer.json");
    REQUIRE(tokenizer->vocabulary_size() == 2048);
    const std::string text = "In the beginning God created the heaven and the earth.\n\tÆ 中 👍🏽";
    const Encoding encoding = tokenizer->encode(text);
    REQUIRE(tokenizer->decode(encoding.ids, true) == text);
}
