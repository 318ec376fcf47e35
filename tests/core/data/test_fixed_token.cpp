// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <catch2/catch.hpp>

#include "core/data/fixed_token.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/data/corpus.h"

using namespace headscope;
using namespace headscope::test;
using data::DataSettings;
using data::Split;

namespace {

/// Words a to e are 0 to 4; `more` are entries after them.
std::string word_tokenizer(const std::string& more) {
    return R"({"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4)" +
           more + R"(}, "unk_token": "a"}, "pre_tokenizer": {"type": "WhitespaceSplit"}})";
}

}  // namespace

TEST_CASE("A fixed token is read at its position of every sequence, and targets and order stay", "[data]") {
    Corpus corpus;
    std::string text;
    for (int i = 0; i < 300; ++i) text += static_cast<char>('a' + i % 23);
    corpus.write("a.txt", text);
    DataSettings settings;
    settings.text = {"a.txt"};
    settings.sequence_length = 7;
    settings.validation = 0.3;
    const auto plain = corpus.prepare(settings);
    std::vector<std::string> hashes{plain->hash()};
    for (const std::int64_t position : {0, 3, 6}) {
        settings.fixed_token = data::FixedToken{position, 250};
        const auto fixed = corpus.prepare(settings);
        CHECK(fixed->summary().reused);  // the same tokens
        CHECK(fixed->vocabulary() == plain->vocabulary());
        CHECK(fixed->separator() == plain->separator());
        hashes.push_back(fixed->hash());
        for (const Split split : {Split::training, Split::validation}) {
            const auto source = fixed->source(split, 5), as_text = plain->source(split, 5);
            REQUIRE(source->epoch() == as_text->epoch());
            // Over the end of an epoch, and from its middle.
            const std::int64_t count = source->epoch() + 3;
            data::DataBatch batch = source->read(2, count);
            data::DataBatch expected = as_text->read(2, count);
            CHECK(batch.targets == expected.targets);
            CHECK(batch.counted == expected.counted);
            CHECK(batch.ids != expected.ids);
            for (std::int64_t s = 0; s < count; ++s) expected.ids[static_cast<std::size_t>(7 * s + position)] = 250;
            CHECK(batch.ids == expected.ids);
        }
    }
    settings.fixed_token = data::FixedToken{3, 251};
    hashes.push_back(corpus.prepare(settings)->hash());
    std::sort(hashes.begin(), hashes.end());
    CHECK(std::adjacent_find(hashes.begin(), hashes.end()) == hashes.end());
    settings.validation = 0;
    CHECK(corpus.prepare(settings)->source(Split::validation, 1) == nullptr);
}

TEST_CASE("Several data workers read the same sequences with a fixed token", "[data]") {
    Corpus corpus;
    DataSettings settings;
    settings.generator = data::GeneratorSettings{"markov", {{"symbols", 5}}};
    settings.sequence_length = 9;
    settings.fixed_token = data::FixedToken{2, 4};
    const auto source = corpus.prepare(settings)->source(Split::training, 7);
    data::Prefetcher reader(*source, {1, 3, 5}, 3, 2);
    for (std::int64_t b = 0; b < 11; ++b) {
        const data::DataBatch batch = reader.next(), expected = source->read(1 + 5 * b, 3);
        REQUIRE(batch.ids == expected.ids);
        REQUIRE(batch.targets == expected.targets);
        for (const std::size_t at : {2, 11, 20}) REQUIRE(batch.ids[at] == 4);
    }
}

TEST_CASE("Without an id it is the tokenizer's mask token, else the one for what it does not know", "[data]") {
    Corpus corpus;
    corpus.write("a.txt", "a b c d e a b c d e a");
    const auto folder = corpus.folder / "tokenizer";
    std::filesystem::create_directories(folder);
    DataSettings settings;
    settings.text = {"a.txt"};
    settings.tokenizer = folder;
    settings.sequence_length = 3;
    settings.validation = 0;
    settings.fixed_token = data::FixedToken{1, {}};
    const auto id_with = [&](const std::string& more, const std::string& config) {
        write_file(folder / "tokenizer.json", word_tokenizer(more));
        write_file(folder / "tokenizer_config.json", config);
        return corpus.prepare(settings)->source(Split::training, 1)->read(0, 1).ids[1];
    };
    const std::string both = R"(, "[UNK]": 5, "[MASK]": 6, "<hole>": 7)";
    CHECK(id_with(both, "{}") == 6);
    CHECK(id_with(both, R"({"mask_token": {"content": "<hole>"}, "unk_token": "[UNK]"})") == 7);
    CHECK(id_with(both, R"({"mask_token": null})") == 6);
    CHECK(id_with(R"(, "<unk>": 5)", "{}") == 5);
    CHECK(id_with(R"(, "<unk>": 5)", R"({"unk_token": "c"})") == 2);
    CHECK_THROWS_MATCHES(id_with("", "{}"), Error,
                         IsError(ErrorCode::usage, "[data.fixed_token] expected an id, { position = 1, id = N }"));
}

TEST_CASE("A fixed token beyond the sequence or the vocabulary is refused", "[data]") {
    Corpus corpus;
    corpus.write("a.txt", "some text to train on");
    DataSettings settings;
    settings.text = {"a.txt"};
    settings.sequence_length = 5;
    settings.validation = 0;
    const auto refuses = [&](data::FixedToken token, const std::string& what) {
        settings.fixed_token = token;
        CHECK_THROWS_MATCHES(corpus.prepare(settings), Error, IsError(ErrorCode::usage, what));
    };
    refuses({5, 0}, "[data.fixed_token, position] expected a position of a sequence, 0 to 4; found 5");
    refuses({-1, 0}, "found -1");
    refuses({4, 257}, "[data.fixed_token, id] expected an id from 0 to 256");
    refuses({4, -1}, "found -1");
    refuses({4, {}}, "or a tokenizer with a mask or unk token; found neither");  // bytes have none
    settings.fixed_token = data::FixedToken{4, 256};
    CHECK(corpus.prepare(settings)->source(Split::training, 1)->read(0, 1).ids[4] == 256);
}
