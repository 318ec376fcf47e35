// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/tokenizer/decode_stream.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/unicode/utf8.h"
#include "tests/oracle/golden.h"

using namespace headscope::tokenizer;

namespace {

const std::string folder = headscope::test::golden_file("tokenizer/");

/// Bytes; counts what it decodes.
class CountingTokenizer final : public Tokenizer {
public:
    void encode_into(TokenSink&, std::string_view, bool, const headscope::Cancellation*) const override {}
    void encode_pair_into(TokenSink&, std::string_view, std::string_view, bool,
                          const headscope::Cancellation*) const override {}
    std::vector<FramePart> frame(bool) const override { return {}; }
    std::string decode(std::span<const std::int32_t> ids, bool) const override {
        decoded += ids.size();
        std::string bytes;
        for (const std::int32_t id : ids) bytes += static_cast<char>(id);
        return repaired_utf8(bytes);
    }
    std::string piece(std::int32_t) const override { return {}; }
    std::string surface(std::int32_t) const override { return {}; }
    std::int64_t vocabulary_size() const override { return 256; }
    std::optional<std::int32_t> id_of(std::string_view) const override { return std::nullopt; }
    bool adds_first_token() const override { return false; }

    mutable std::size_t decoded = 0;
};

std::vector<std::int32_t> bytes_of(std::string_view text) {
    std::vector<std::int32_t> ids;
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
}

}  // namespace

TEST_CASE("A stream gives what decoding everything gives", "[tokenizer][stream]") {
    const auto name =
        GENERATE(as<std::string>{}, "gpt2", "llama3", "llama2", "mistral", "metaspace", "bert_cased", "clip");
    const auto tokenizer = Tokenizer::from_file(folder + name + ".json");
    std::ifstream file(folder + "expected.json");
    const auto expected = nlohmann::json::parse(file);  // lives through the loop
    for (const std::string text : expected.at("texts")) {
        const std::vector<std::int32_t> ids = tokenizer->encode(text).ids;
        for (const std::size_t before : {std::size_t{0}, ids.size() / 2}) {
            DecodeStream stream(*tokenizer, std::span(ids).first(before), true);
            std::string joined = tokenizer->decode(std::span(ids).first(before), true);
            const std::string whole = tokenizer->decode(ids, true);
            // If the first part ends within a character, the two parts decode to other text than the whole.
            if (before > 0 && !whole.starts_with(joined)) continue;
            for (const std::int32_t id : std::span(ids).subspan(before)) joined += stream.add(id);
            joined += stream.finish();
            INFO(name << " " << nlohmann::json(text).dump() << " " << before);
            CHECK(joined == whole);
        }
    }
}

TEST_CASE("A stream holds parts of characters back, and gives them at the end", "[tokenizer][stream]") {
    const CountingTokenizer tokenizer;
    DecodeStream stream(tokenizer);
    std::vector<std::string> given;
    for (const std::int32_t id : bytes_of("a\xC3\xA9\xE4\xB8\xAD")) given.push_back(stream.add(id));
    REQUIRE(given == std::vector<std::string>{"a", "", "é", "", "", "中"});
    REQUIRE(stream.add(0xF0).empty());
    REQUIRE(stream.add(0x9F).empty());
    REQUIRE(stream.finish() == "\uFFFD");
    REQUIRE(stream.finish().empty());
}

TEST_CASE("Bytes that are no character are not held back for ever", "[tokenizer][stream]") {
    const CountingTokenizer tokenizer;
    DecodeStream stream(tokenizer);
    std::string text;
    for (int i = 0; i < 100; ++i) text += stream.add(0x80);
    REQUIRE(text.size() >= 3 * 90);
    text += stream.finish();
    REQUIRE(text.size() == 3 * 100);
}

TEST_CASE("A stream decodes a few tokens for each one, however long it is", "[tokenizer][stream]") {
    const auto decoded = [](std::size_t tokens) {
        const CountingTokenizer tokenizer;
        const std::vector<std::int32_t> before(tokens, 'x');
        DecodeStream stream(tokenizer, before);
        for (std::size_t i = 0; i < tokens; ++i) stream.add(i % 3 == 0 ? 0xC3 : i % 3 == 1 ? 0xA9 : 'a');
        return tokenizer.decoded;
    };
    const std::size_t short_one = decoded(1000);
    REQUIRE(short_one < 50'000);
    REQUIRE(decoded(4000) < 5 * short_one);
}
