// SPDX-License-Identifier: GPL-3.0-or-later
// Windows of text as encoders read them: ends, corruption, tokenizers and hashed words.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/tokenizer/hashed/word_tokenizer.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/data/corpus.h"
#include "tests/core/data/objective_settings.h"

using namespace headscope;
using namespace headscope::test;
using data::DataBatch;
using data::DataSettings;
using data::Split;

TEST_CASE("Encoders read windows between <s> and </s>, each once an epoch, without separators", "[data][objectives]") {
    Corpus corpus;
    corpus.write("a.txt", "abcdef");
    corpus.write("b.txt", "ghijklmn");
    auto settings = settings_of("shuffle_random", {"*.txt"}, 6);
    settings.objective.shuffle = settings.objective.random = 0;
    const auto set = corpus.prepare(settings);
    CHECK(set->vocabulary() == 262);
    CHECK(set->separator() == -1);
    CHECK(set->special().first == 257);
    CHECK(set->special().padding == 258);
    CHECK(set->special().last == 259);
    CHECK(set->special().mask == 261);
    CHECK(set->summary().training_tokens == 14);
    const auto source = set->source(Split::training, 3);
    REQUIRE(source->epoch() == 3);
    const DataBatch batch = source->read(0, 3);
    CHECK(batch.length == 6);
    CHECK(batch.lengths.empty());
    CHECK(batch.counted == 12);
    std::set<std::string> seen;
    for (std::int64_t i = 0; i < 3; ++i) seen.insert(bytes_of(row(batch.ids, batch, i)));
    CHECK(seen == std::set<std::string>{"|abcd|", "|efgh|", "|ijkl|"});
    CHECK(batch.targets[0] == data::no_target);
    CHECK(batch.targets[1] == 0);
    CHECK(batch.targets[5] == data::no_target);
}

TEST_CASE("Corruption follows from seed and index, not from what was read before", "[data][objectives]") {
    Corpus corpus;
    corpus.write("a.txt", std::string(400, 'x') + std::string(400, 'y'));
    auto settings = settings_of("masked", {"a.txt"}, 34);
    settings.validation = 0.2;
    settings.objective.mask = 0.5;
    const auto set = corpus.prepare(settings);
    const auto source = set->source(Split::training, 5);
    const DataBatch all = source->read(0, 40), part = source->read(17, 2);
    CHECK(part.ids == Ids(all.ids.begin() + 17 * 34, all.ids.begin() + 19 * 34));
    CHECK(part.targets == Ids(all.targets.begin() + 17 * 34, all.targets.begin() + 19 * 34));
    CHECK(set->source(Split::training, 6)->read(0, 40).ids != all.ids);
    CHECK(std::count(all.ids.begin(), all.ids.end(), 261) > 400);
    // The second epoch is spoilt otherwise.
    const std::int64_t epoch = source->epoch();
    const auto count = [&](std::int64_t first) {
        const DataBatch batch = source->read(first, epoch);
        return std::count(batch.ids.begin(), batch.ids.end(), 261);
    };
    CHECK(count(0) != count(epoch));
    // Held-out data is corrupted alike for every seed.
    CHECK(set->source(Split::validation, 5)->read(0, 4).ids == set->source(Split::validation, 6)->read(0, 4).ids);
    // Another objective reads the same token file in another way.
    settings.objective.mask = 0.25;
    const auto other = corpus.prepare(settings);
    CHECK(other->summary().reused);
    CHECK(other->hash() != set->hash());
    settings.objective.kind = "next_token";
    const auto plain = corpus.prepare(settings);
    CHECK_FALSE(plain->summary().reused);
    CHECK(plain->vocabulary() == 257);
}

TEST_CASE("A tokenizer that is made has the ends that it puts around texts", "[data][objectives]") {
    Corpus corpus;
    corpus.write("a.txt", "the cat and the dog and the bird and the end of the text");
    for (const char* tokenizer : {"bytes", "train:264"}) {
        auto settings = settings_of("masked", {"a.txt"}, 5);
        settings.tokenizer = tokenizer;
        const auto set = corpus.prepare(settings);
        const auto again = tokenizer::Tokenizer::from_json(set->tokenizer_files().at(0).content, "again");
        const auto begin = static_cast<std::int32_t>(set->vocabulary() - 5), end = begin + 2;
        CHECK(again->vocabulary_size() == set->vocabulary());
        CHECK(again->id_of("<mask>") == begin + 4);
        const auto one = again->encode("d").ids;
        REQUIRE(one.size() == 3);
        CHECK(one[0] == begin);
        CHECK(one[2] == end);
        const auto config = nlohmann::json::parse(set->tokenizer_files().at(1).content);
        CHECK(config.at("mask_token") == "<mask>");
        CHECK(config.at("cls_token") == "<s>");
        CHECK(config.at("sep_token") == "</s>");
    }
}

TEST_CASE("Objectives refuse tokenizers and lengths that do not do", "[data][objectives]") {
    Corpus corpus;
    corpus.write("a.txt", "some text to train on");
    corpus.write("plain.json", R"({"added_tokens": [], "model": {"type": "WordLevel", "vocab": {"a": 0, "<s>": 1},
        "unk_token": "a"}})");
    const auto refuses = [&](const DataSettings& settings, const std::string& what) {
        CHECK_THROWS_MATCHES(corpus.prepare(settings), Error, IsError(ErrorCode::usage, what));
    };
    auto settings = settings_of("masked", {"a.txt"}, 8);
    settings.tokenizer = "plain.json";
    refuses(settings, "found none to end with");
    refuses(settings_of("masked", {"a.txt"}, 2), "[data.sequence_length] expected a number from 3 on");
    refuses(settings_of("masked", {"a.txt"}, 100), "expected at least 98 tokens to train on");
    refuses(settings_of("guess", {"a.txt"}, 8),
            "expected next_token, masked, shuffle_random, translation, classify or spans");
    settings = settings_of("masked", {"a.txt"}, 8);
    settings.fixed_token = data::FixedToken{1, 2};
    refuses(settings, "[data.fixed_token]");
    settings = settings_of("classify", {}, 8);
    settings.corpus = "kjv";
    refuses(settings, "expected .jsonl files with \"text\" and \"label\"");
    refuses(settings_of("translation", {"a.txt"}, 8),
            "[data.text] expected .jsonl files with \"source\" and \"target\"");
}

TEST_CASE("Hashed words have bits, rows or code points and no vocabulary", "[data][objectives]") {
    Corpus corpus;
    corpus.write("a.txt", "The cat saw the CAT, t\xC3\xA9");
    auto settings = settings_of("shuffle_random", {"a.txt"}, 9);
    settings.objective.shuffle = settings.objective.random = 0;
    using Kind = tokenizer::EmbeddingKind;
    const auto read = [&](const data::HashedWords& with) {
        NoProgress progress;
        const auto set = data::DataSet::prepare(settings, {corpus.folder / "text", corpus.folder / "run"}, progress,
                                                Cancellation(), &with);
        return std::pair(set, set->source(Split::training, 1)->read(0, 1));
    };
    const auto pool = words(Kind::add, 128);
    const auto [bit_set, bits] = read(pool);
    CHECK(bits.ids == Ids{0, 5, 5, 5, 5, 5, 5, 5, 2});
    CHECK(bits.bits_per_token == 128);
    REQUIRE(bits.bits.size() == 9 * 128);
    const auto of = [&](std::size_t word) {
        return std::vector<std::uint8_t>(bits.bits.begin() + static_cast<std::ptrdiff_t>(word * 128),
                                         bits.bits.begin() + static_cast<std::ptrdiff_t>(word * 128 + 128));
    };
    // thesis.md: HMAC-MD5 of "the" with the key "en".
    CHECK(tokenizer::bits_hex(of(1)) == "b9386d96710ddd52bc49ff0033ead10f");
    CHECK(of(4) == of(1));
    CHECK(of(5) == of(2));
    CHECK(of(0) == std::vector<std::uint8_t>(128, 0));
    CHECK(bit_set->vocabulary() == 6);
    CHECK(bit_set->summary().training_tokens == 7);
    CHECK(bit_set->tokenizer().word_hash() != nullptr);
    const auto other_set = read(words(Kind::add, 128, 0, "de")).first;
    CHECK(other_set->hash() != bit_set->hash());
    CHECK(read(pool).first->summary().reused);

    const auto [row_set, rows] = read(words(Kind::emb, 0, 50'260));
    CHECK(rows.ids[1] == 20'664);
    CHECK(rows.bits.empty());
    CHECK(rows.points.empty());
    CHECK(row_set->vocabulary() == 50'265);

    // Pieces of another tokenizer, as they are spelt: not lower-cased.
    tokenizer::HashSettings of_pieces = pool.tokenizer->word_hash()->settings();
    of_pieces.tokenizer_pieces = true;
    const auto hash = std::make_shared<tokenizer::WordHash>(of_pieces);
    const data::HashedWords bytes{std::make_shared<tokenizer::WordTokenizer>(hash, tokenizer::Tokenizer::bytes()), {}};
    settings.sequence_length = 26;
    const auto pieces = read(bytes).second;
    std::vector<std::uint8_t> first(128);
    hash->bits(tokenizer::Tokenizer::bytes()->piece('T'), first);
    CHECK(std::equal(first.begin(), first.end(), pieces.bits.begin() + 128));

    settings.sequence_length = 25;
    const auto characters = read(words(Kind::characters, 0)).second;
    CHECK(std::count(characters.ids.begin(), characters.ids.end(), 5) == 23);
    CHECK(characters.points[1] == 'T');
    CHECK(characters.points[4] == ' ');
    CHECK(characters.points[23] == 0xE9);
    CHECK(characters.points[24] == 0);

    for (const char* objective : {"next_token", "masked", "translation"}) {
        settings.objective.kind = objective;
        if (settings.objective.kind == "translation") corpus.write("a.jsonl", "{\"source\": \"a\", \"target\": \"b\"}");
        if (settings.objective.kind == "translation") settings.text = {"a.jsonl"};
        CHECK_THROWS_MATCHES(read(pool), Error, IsError(ErrorCode::usage, "which wants a vocabulary"));
    }
}

TEST_CASE("The n-grams of a job's words, the most frequent first", "[data][objectives]") {
    Corpus corpus;
    corpus.write("a.txt", "Ab ab b");
    corpus.write("held.txt", "zzzz zzzz zzzz");
    corpus.write("c.jsonl", "{\"text\": \"ab\", \"pair\": \"b\", \"label\": 1}");
    auto settings = settings_of("shuffle_random", {"*.txt"}, 8);
    settings.validation_files = {"held.txt"};
    NoProgress progress;
    const auto ngrams = [&](std::size_t count) {
        return data::frequent_ngrams(settings, {corpus.folder / "text", {}}, count, progress, Cancellation());
    };
    CHECK(ngrams(9) == std::vector<std::string>{"b", "a", "ab"});
    CHECK(ngrams(2) == std::vector<std::string>{"b", "a"});
    CHECK(data::frequent_ngrams(settings, {corpus.folder / "text", {}}, 3, progress, Cancellation(),
                                tokenizer::Tokenizer::bytes().get()) ==
          std::vector<std::string>{tokenizer::Tokenizer::bytes()->piece('b'), tokenizer::Tokenizer::bytes()->piece(' '),
                                   "A"});
    settings = settings_of("classify", {"c.jsonl"}, 8);
    CHECK(ngrams(9) == std::vector<std::string>{"b", "a", "ab"});
    settings = generated("translation", "translation", 8);
    CHECK(ngrams(1) == std::vector<std::string>{"t"});
}
