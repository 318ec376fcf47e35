// SPDX-License-Identifier: GPL-3.0-or-later
// Words and their hashes against hashlib, re and numpy (tests/oracle/generate/word_hashes.py).
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/io/md5.h"
#include "core/base/json/json.h"
#include "core/base/progress.h"
#include "core/tokenizer/hashed/split.h"
#include "core/tokenizer/hashed/word_tokenizer.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::test;
using nlohmann::json;
using tokenizer::EmbeddingKind;
using tokenizer::HashSettings;
using tokenizer::Ngrams;
using tokenizer::WordHash;
using tokenizer::WordHashKind;

namespace {

const json& golden() {
    static const json all = [] {
        std::ifstream file(test::golden_file("word_hashes.json"));
        return json::parse(file);
    }();
    return all;
}

std::vector<std::string> texts(const char* key) {
    return golden().at(key).get<std::vector<std::string>>();
}

std::string hex(const Md5Digest& digest) {
    std::vector<std::uint8_t> bits;
    for (const std::uint8_t byte : digest)
        for (unsigned i = 0; i < 8; ++i) bits.push_back(byte >> (7 - i) & 1U);
    return tokenizer::bits_hex(bits);
}

HashSettings settings(const char* text) {
    const json document = json::parse(text);
    return tokenizer::read_hash_settings(JsonView(document, "config.json", "embedding"));
}

HashSettings lsh(EmbeddingKind kind, std::int64_t bits, std::int64_t rows) {
    HashSettings made;
    made.kind = kind;
    made.hash = WordHashKind::lsh;
    made.bits = bits;
    made.rows = rows;
    return made;
}

json words_of(std::string_view text) {
    json words = json::array();
    tokenizer::split_words(text, [&](const tokenizer::SplitWord& word) {
        words.push_back({std::string(word.piece), word.begin, word.end});
    });
    return words;
}

struct Made {
    std::vector<std::int32_t> ids;
    std::vector<std::string> pieces;
    std::vector<std::array<std::int64_t, 2>> offsets;
};

Made made_of(const tokenizer::Tokenizer& tokenizer, std::string_view text, bool special = true) {
    const tokenizer::Encoding encoding = tokenizer.encode(text, special);
    return {encoding.ids, tokenizer.pieces(encoding), encoding.offsets};
}

auto says(const std::string& line) {
    return Catch::Message(line);
}

/// A checkpoint that has no more than the vector.
std::string file_with_normal(const std::vector<float>& normal) {
    const std::string header =
        json{{"model.hash_normal",
              {{"dtype", "F32"}, {"shape", {normal.size()}}, {"data_offsets", {0, normal.size() * sizeof(float)}}}}}
            .dump();
    std::string text(8, '\0');
    for (unsigned i = 0; i < 8; ++i) text[i] = static_cast<char>(header.size() >> (8 * i));
    return text + header + std::string(reinterpret_cast<const char*>(normal.data()), normal.size() * sizeof(float));
}

}  // namespace

TEST_CASE("MD5 and HMAC-MD5 are hashlib's", "[hashed]") {
    for (const json& one : golden().at("md5")) {
        INFO(one.at(0));
        CHECK(hex(md5(one.at(0).get<std::string>())) == one.at(1));
    }
    for (const json& one : golden().at("hmac")) {
        INFO(one.at(0) << " " << one.at(1));
        CHECK(hex(HmacMd5(one.at(0).get<std::string>())(one.at(1).get<std::string>())) == one.at(2));
    }
}

TEST_CASE("A text's words are those of Python's re over its lower case", "[hashed]") {
    REQUIRE(golden().at("texts").size() > 10);
    for (const json& one : golden().at("texts")) {
        INFO(one.at("text"));
        CHECK(words_of(one.at("text").get<std::string>()) == one.at("words"));
    }
    CHECK_THROWS_MATCHES(words_of("ab\xFF"), Error, says("[text] expected UTF-8; found \"\\xFF\" at byte 2"));
    Cancellation stopped;
    stopped.request();
    CHECK_THROWS_AS(tokenizer::split_words(
                        "a b", [](const tokenizer::SplitWord&) {}, &stopped),
                    Stopped);
}

TEST_CASE("MD5 gives a word's row, bits and codes", "[hashed]") {
    const std::vector<std::string> words = texts("words");
    HashSettings emb;
    emb.kind = EmbeddingKind::emb;
    emb.hash = WordHashKind::md5;
    for (std::size_t n = 0; n < golden().at("rows").size(); ++n) {
        emb.rows = golden().at("rows").at(n);
        const WordHash hash(emb);
        for (std::size_t i = 0; i < words.size(); ++i) {
            INFO(words[i] << " of " << emb.rows);
            CHECK(hash.id(words[i]) == golden().at("ids").at(n).at(i));
            CHECK(hash.hex(words[i]) == golden().at("hex").at(i));
        }
    }
    const WordHash pool(settings(R"({"kind": "pool", "hash": "md5", "bits": 128, "group_bits": 10})"));
    for (std::size_t i = 0; i < words.size(); ++i) {
        std::vector<std::uint8_t> bits(128);
        pool.bits(words[i], bits);
        CHECK(json(tokenizer::codes_of(bits, 10)) == golden().at("codes").at(i));
        CHECK(pool.id(words[i]) == 5);
    }
}

TEST_CASE("LSH gives a word's row and bits from its n-grams", "[hashed]") {
    const std::vector<std::string> words = texts("words");
    for (const json& one : golden().at("lsh")) {
        const auto ngrams = std::make_shared<const Ngrams>(one.at("ngrams").get<std::vector<std::string>>(), "list");
        const auto normal = one.at("normal").get<std::vector<float>>();
        const WordHash bits(lsh(EmbeddingKind::add, one.at("bits"), 0), ngrams, normal);
        const WordHash rows(lsh(EmbeddingKind::emb, 0, one.at("rows")), ngrams, normal);
        for (std::size_t i = 0; i < words.size(); ++i) {
            INFO(words[i] << " of " << ngrams->size());
            CHECK(bits.hex(words[i]) == one.at("hex").at(i));
            CHECK(rows.id(words[i]) == one.at("ids").at(i));
            CHECK(rows.hex(words[i]).empty());
        }
    }
    const auto two = std::make_shared<const Ngrams>(std::vector<std::string>{"a", "b"}, "list");
    CHECK_THROWS_MATCHES(WordHash(lsh(EmbeddingKind::add, 3, 0), two, {1}), Error,
                         says("[ngrams.json] expected as many n-grams as model.hash_normal has numbers, 1; found 2"));
}

TEST_CASE("The most frequent n-grams of a text, ties by code point", "[hashed]") {
    tokenizer::NgramCounter counter;
    for (const std::string& text : texts("corpus")) counter.feed(text);
    CHECK(counter.different() == golden().at("all_ngrams"));
    for (const auto& [most, list] : golden().at("ngrams").items())
        CHECK(json(counter.most_frequent(std::stoul(most))) == list);

    // Those that are frequent stay, whatever is forgotten.
    tokenizer::NgramCounter forgetful;
    for (int i = 0; i < 200; ++i) {
        forgetful.feed("ab w" + std::to_string(1000 + i));
        forgetful.forget_rare(40);
        CHECK(forgetful.different() <= 40);
    }
    CHECK(forgetful.most_frequent(3) == std::vector<std::string>{"1", "a", "ab"});

    TemporaryFolder folder;
    const auto path = folder.path() / "ngrams.json";
    const std::vector<std::string> list = counter.most_frequent(1000);
    write_file(path, tokenizer::ngrams_json(list));
    CHECK(Ngrams::from_file(path)->list() == list);

    const auto refused = [&](const std::string& text, const std::string& error) {
        write_file(path, text);
        CHECK_THROWS_MATCHES(Ngrams::from_file(path), Error, says(error));
    };
    refused("[]", "[ngrams.json] expected at least one n-gram; found an empty list");
    refused(R"(["a", ""])", "[ngrams.json[1]] expected an n-gram of 1 to 4 code points; found \"\"");
    refused(R"(["abcde"])", "[ngrams.json[0]] expected an n-gram of 1 to 4 code points; found \"abcde\"");
    refused(R"(["a", "b", "a"])", "[ngrams.json[2]] expected another n-gram than those before it; found \"a\"");
}

TEST_CASE("Bits are written as digits and read again", "[hashed]") {
    const std::vector<std::uint8_t> bits = {1, 0, 1, 1, 0, 0, 1};
    CHECK(tokenizer::bits_hex(bits) == "b2");
    std::vector<std::uint8_t> read(7);
    tokenizer::read_bits_hex("b2", read, "here");
    CHECK(read == bits);
    for (const char* wrong : {"b", "b22", "b3", "B2", "g2", ""}) {
        INFO(wrong);
        CHECK_THROWS_AS(tokenizer::read_bits_hex(wrong, read, "here"), Error);
    }
}

TEST_CASE("An embedding's keys are read, written and refused", "[hashed]") {
    for (const char* text : {R"({"kind": "emb", "hash": "md5", "key": "x", "rows": 7, "words": "split"})",
                             R"({"kind": "emb", "hash": "lsh", "rows": 7, "words": "tokenizer"})",
                             R"({"kind": "pool", "hash": "lsh", "bits": 20, "group_bits": 6, "words": "split"})",
                             R"({"kind": "add", "hash": "md5", "key": "en", "bits": 128, "words": "split"})",
                             R"({"kind": "proj", "hash": "lsh", "bits": 1, "words": "split"})",
                             R"({"kind": "linear", "hash": "lsh", "bits": 420, "words": "split"})",
                             R"({"kind": "characters", "hash_functions": 8, "buckets": 16000})"}) {
        CHECK(json::parse(tokenizer::hash_settings_json(settings(text))) == json::parse(text));
    }
    CHECK(settings(R"({"kind": "table"})").is_table());
    CHECK(settings(R"({"kind": "emb", "hash": "md5", "rows": 7})").ids() == 12);
    CHECK(settings(R"({"kind": "pool", "hash": "lsh", "bits": 128, "group_bits": 10})").groups() == 13);

    const auto refused = [](const char* text, const char* error) {
        INFO(text);
        CHECK_THROWS_MATCHES(settings(text), Error, says(error));
    };
    refused(R"({})", "[config.json: embedding.kind] expected this key; found none");
    refused(R"({"kind": "sum"})",
            "[config.json: embedding.kind] expected one of table, emb, pool, add, proj, linear, characters; "
            "found \"sum\"");
    refused(R"({"kind": "emb", "hash": "sha", "rows": 7})",
            "[config.json: embedding.hash] expected one of md5, lsh; found \"sha\"");
    refused(R"({"kind": "add", "hash": "md5", "bits": 64})",
            "[config.json: embedding.bits] expected 128, the bits that MD5 has; found 64");
    refused(R"({"kind": "add", "hash": "lsh"})", "[config.json: embedding.bits] expected this key; found none");
    refused(R"({"kind": "table", "rows": 3})", "[config.json: embedding] expected only \"kind\"; found rows");
    CHECK_THROWS_AS(settings(R"({"kind": "emb", "hash": "lsh", "key": "en", "rows": 3})"), Error);
    CHECK_THROWS_AS(settings(R"({"kind": "emb", "hash": "md5", "rows": 0})"), Error);
    CHECK_THROWS_AS(settings(R"({"kind": "pool", "hash": "lsh", "bits": 8, "group_bits": 9})"), Error);
    CHECK_THROWS_AS(settings(R"({"kind": "characters", "hash_functions": 9, "buckets": 4})"), Error);
}

TEST_CASE("A word tokenizer gives ids, words and where they stand", "[hashed]") {
    const auto hash = std::make_shared<const WordHash>(settings(R"({"kind": "emb", "hash": "md5", "rows": 50260})"));
    const tokenizer::WordTokenizer words(hash);
    const Made made = made_of(words, "The \u0130<s>");
    CHECK(made.ids ==
          std::vector<std::int32_t>{0, 20664, hash->id("i"), hash->id("\u0307<"), hash->id("s"), hash->id(">"), 2});
    CHECK(made.pieces == std::vector<std::string>{"<s>", "the", "i", "\u0307<", "s", ">", "</s>"});
    CHECK(json(made.offsets) == json::parse("[[0,0],[0,3],[4,6],[4,7],[7,8],[8,9],[0,0]]"));
    CHECK(made_of(words, "").ids == std::vector<std::int32_t>{0, 2});
    CHECK(made_of(words, "", false).ids.empty());
    CHECK(words.vocabulary_size() == 50265);
    CHECK(words.id_of("<mask>") == 4);
    CHECK(words.decode(std::vector<std::int32_t>{0, 77, 2}, false) == "<s></s>");

    class Pair final : public tokenizer::TokenSink {
    public:
        void add(const tokenizer::FoundToken& token) override {
            text += token.special ? "*" : std::string(token.respelled.value());
            regions.push_back(token.region);
        }
        std::string text;
        std::vector<int> regions;
    } pair;
    words.encode_pair_into(pair, "A", "B c", true, nullptr);
    CHECK(pair.text == "*a**bc*");
    CHECK(pair.regions == std::vector<int>{0, 1, 0, 0, 2, 2, 0});
}

TEST_CASE("A tokenizer of characters takes them as they are", "[hashed]") {
    const auto hash =
        std::make_shared<const WordHash>(settings(R"({"kind": "characters", "hash_functions": 8, "buckets": 16})"));
    const Made made = made_of(tokenizer::WordTokenizer(hash), "A \u00e9\u4e2d");
    CHECK(made.ids == std::vector<std::int32_t>{0, 5, 5, 5, 5, 2});
    CHECK(made.pieces == std::vector<std::string>{"<s>", "A", " ", "\u00e9", "\u4e2d", "</s>"});
    CHECK(json(made.offsets) == json::parse("[[0,0],[0,1],[1,2],[2,4],[4,7],[0,0]]"));
    CHECK(hash->hex("A").empty());
}

TEST_CASE("A checkpoint's folder says how its words are hashed", "[hashed]") {
    TemporaryFolder folder;
    const auto& path = folder.path();
    const auto configure = [&](const std::string& embedding) {
        write_file(path / "config.json", R"({"model_type": "headscope", "embedding": )" + embedding + "}");
    };
    CHECK_FALSE(tokenizer::Tokenizer::is_in(path));
    configure(R"({"kind": "table"})");
    CHECK_FALSE(tokenizer::Tokenizer::is_in(path));
    configure(R"({"kind": "emb", "hash": "md5", "rows": 50260})");
    REQUIRE(tokenizer::Tokenizer::is_in(path));
    CHECK(made_of(*tokenizer::Tokenizer::from_folder(path), "the").ids == std::vector<std::int32_t>{0, 20664, 2});

    const json& one = golden().at("lsh").at(0);
    configure(R"({"kind": "add", "hash": "lsh", "bits": )" + one.at("bits").dump() + "}");
    write_file(path / "ngrams.json", one.at("ngrams").dump());
    write_file(path / "model.safetensors", file_with_normal(one.at("normal").get<std::vector<float>>()));
    const auto words = tokenizer::Tokenizer::from_folder(path);
    REQUIRE(words->word_hash() != nullptr);
    CHECK(words->word_hash()->hex("the") == one.at("hex").at(0));
    write_file(path / "ngrams.json", R"(["a"])");
    CHECK_THROWS_AS(tokenizer::Tokenizer::from_folder(path), Error);

    configure(R"({"kind": "add", "hash": "md5", "words": "tokenizer"})");
    write_file(
        path / "tokenizer.json",
        R"({"version": "1.0", "model": {"type": "WordLevel", "vocab": {"The": 0, "[u]": 1}, "unk_token": "[u]"},)"
        R"( "pre_tokenizer": {"type": "WhitespaceSplit"}})");
    const auto pieces = tokenizer::Tokenizer::from_folder(path);
    CHECK(made_of(*pieces, "The cat").pieces == std::vector<std::string>{"<s>", "The", "[u]", "</s>"});
    CHECK(pieces->word_hash()->hex("The") == hex(HmacMd5("en")("The")));
}
