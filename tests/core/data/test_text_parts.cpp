// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/training/bpe_trainer.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/data/corpus.h"

using namespace headscope;
using namespace headscope::test;
using data::cut_place;
using data::largest_part;

TEST_CASE("a text is cut before a space between words, else before a space, else between characters", "[data]") {
    CHECK(cut_place("one two. three, four", 2) == 3);
    CHECK(cut_place("one two three", 2) == 7);
    CHECK(cut_place("one. two! three", 2) == 9);
    CHECK(cut_place("one.\n two", 2) == 4);
    CHECK(cut_place("aaaaaaaa", 2) == 7);
    CHECK(cut_place("aaaa\xF0\x9F\x99\x82", 2) == 4);
    CHECK(cut_place("aaa \xC3\xA9", 2) == 3);
}

TEST_CASE("a long document comes in parts of bounded size that together are the document", "[data]") {
    TemporaryFolder folder;
    std::string text;
    for (int i = 0; text.size() < 3 * largest_part; ++i) {
        text += "word" + std::to_string(i) + (i % 7 == 0 ? ".\n\n" : i % 3 == 0 ? ", \xC3\xA9t\xC3\xA9 " : " ");
    }
    const Collector spaced = collected(write_file(folder / "a.txt", text), data::SourceKind::text);
    REQUIRE(spaced.documents.size() == 1);
    CHECK(spaced.documents[0] == text);
    CHECK(spaced.parts[0] >= 3);
    CHECK(spaced.parts[0] <= 7);

    std::string solid;
    while (solid.size() < 2 * largest_part + 100) solid += "\xE6\x9D\xB1\xE4\xBA\xAC\xF0\x9F\x99\x82";
    const Collector parts = collected(write_file(folder / "b.txt", solid), data::SourceKind::text);
    CHECK(parts.documents[0] == solid);
    CHECK(parts.parts[0] == 3);
}

TEST_CASE("parts give byte-level tokenizers the same tokens as the whole text", "[data]") {
    tokenizer::BpeSettings settings;
    settings.vocabulary = 400;
    tokenizer::BpeTrainer trainer(settings);
    std::string text;
    for (int i = 0; text.size() < 3 * largest_part; ++i) {
        text +=
            "the word's number " + std::to_string(i * 7919) + (i % 5 == 0 ? "!\n\n  And then " : ", \"it\" goes on ");
    }
    trainer.feed(std::string_view(text).substr(0, 20000));
    NoProgress progress;
    const auto model = trainer.train(progress, Cancellation());
    const auto with = tokenizer::Tokenizer::from_json(tokenizer::byte_level_json(model, true), "test");
    class Encoder final : public data::PartSink {
    public:
        explicit Encoder(const tokenizer::Tokenizer& with) : with_(with) {}
        void begin_document() override {}
        void part(std::string_view text) override {
            const auto more = with_.encode(text, false).ids;
            ids.insert(ids.end(), more.begin(), more.end());
            ++parts;
        }
        void end_document() override {}
        std::vector<std::int32_t> ids;
        int parts = 0;

    private:
        const tokenizer::Tokenizer& with_;
    } encoder(*with);
    data::PartCutter cutter(encoder);
    const auto refuse = [](std::uint64_t) { FAIL("valid text"); };
    cutter.add(text, refuse);
    cutter.finish(refuse);
    CHECK(encoder.parts >= 3);
    CHECK(encoder.ids == with->encode(text, false).ids);
}

TEST_CASE("a text file loses its byte order mark, and invalid UTF-8 is reported by its place", "[data]") {
    TemporaryFolder folder;
    const auto read = [&](const std::string& bytes) {
        return collected(write_file(folder / "a.txt", bytes), data::SourceKind::text).documents.at(0);
    };
    CHECK(read("\xEF\xBB\xBFtext") == "text");
    CHECK(read("") == "");
    CHECK(read(std::string("a\0b", 3)) == std::string("a\0b", 3));
    CHECK_THROWS_MATCHES(read("abc\xFF"), Error, IsError(ErrorCode::format, "found no UTF-8 at byte 3"));
    CHECK_THROWS_MATCHES(read("\xEF\xBB\xBF"
                              "abc\xE6\x9D"),
                         Error, IsError(ErrorCode::format, "at byte 6"));
    const std::string far = std::string(2 * largest_part, 'x') + "\x80";
    CHECK_THROWS_MATCHES(read(far), Error, IsError(ErrorCode::format, "at byte " + std::to_string(2 * largest_part)));
}
