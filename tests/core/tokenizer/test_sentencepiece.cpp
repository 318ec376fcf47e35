// SPDX-License-Identifier: GPL-3.0-or-later
// Folders with a sentencepiece model: against transformers (tests/oracle/accept/sentencepiece_folders.py), and what is
// refused.
#include <catch2/catch.hpp>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/tokenizer/files/sentencepiece_model.h"
#include "core/tokenizer/tokenizer.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using nlohmann::json;
using test::IsError;
using test::TemporaryFolder;
using tokenizer::parse_sentencepiece_model;
using tokenizer::SentencePieceModel;
using tokenizer::Tokenizer;
using Ids = std::vector<std::int32_t>;

namespace {

std::string from_hex(const std::string& hex) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    return bytes;
}

void write(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

// Protocol Buffers, as far as a test needs them: fields below 16, and messages below 128 bytes.
std::string number(int field, unsigned value) {
    return {static_cast<char>(field << 3), static_cast<char>(value)};
}
std::string counted(int field, const std::string& bytes) {
    return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string piece(const std::string& text, float score = 0, unsigned kind = 1) {
    std::string bytes(sizeof score, '\0');
    std::memcpy(bytes.data(), &score, sizeof score);
    return counted(1, counted(1, text) + std::string{static_cast<char>(2 << 3 | 5)} + bytes + number(3, kind));
}

std::string tiny_model(const std::string& more = "") {
    return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("\u2581a", -1) + piece("b", -2) +
           piece("\u2581", -3) + more;
}

/// A folder of Marian's, whose models are `model`.
class Folder {
public:
    explicit Folder(const std::string& model, const std::string& config = "{}") {
        write(folder_ / "source.spm", model);
        write(folder_ / "target.spm", model);
        write(folder_ / "vocab.json", R"({"</s>": 0, "<unk>": 1, "b": 2, "▁a": 3, "<pad>": 4})");
        write(folder_ / "config.json", R"({"model_type": "marian"})");
        write(folder_ / "tokenizer_config.json", config);
    }
    void file(const char* name, const std::string& bytes) const { write(folder_ / name, bytes); }
    void remove(const char* name) const { std::filesystem::remove(folder_ / name); }
    std::shared_ptr<const Tokenizer> open() const { return Tokenizer::from_folder(folder_.path()); }
    const std::filesystem::path& path() const { return folder_.path(); }

private:
    TemporaryFolder folder_;
};

void refused(const Folder& folder, ErrorCode code, const std::string& part) {
    CHECK_THROWS_MATCHES(folder.open(), Error, IsError(code, part));
}

}  // namespace

TEST_CASE("Folders with a sentencepiece model give the ids of transformers", "[tokenizer][folders][golden]") {
    std::ifstream file(test::golden_file("tokenizer/sentencepiece.json"));
    REQUIRE(file.good());
    const json golden = json::parse(file);
    for (const json& one : golden.at("folders")) {
        const TemporaryFolder folder;
        for (const auto& [name, content] : one.at("files").items()) {
            const auto text = content.get<std::string>();
            write(folder / name, golden["models"].contains(text) ? from_hex(golden["models"][text]) : text);
        }
        CAPTURE(one.at("name"));
        REQUIRE(Tokenizer::is_in(folder.path()));
        const auto tokenizer = Tokenizer::from_folder(folder.path());
        const json& decoded = one.at("decoded");
        for (std::size_t i = 0; i < decoded.size(); ++i) {
            const json& answer = one.at("texts")[i];
            const auto text = answer[0].get<std::string>();
            CAPTURE(text);
            const auto encoding = tokenizer->encode(text);
            CHECK(encoding.ids == answer[1].get<Ids>());
            for (const auto& [begin, end] : encoding.offsets)
                CHECK((0 <= begin && begin <= end && end <= static_cast<std::int64_t>(text.size())));
            if (!answer[2].is_null()) CHECK(tokenizer->of_target().encode(text).ids == answer[2].get<Ids>());
            const auto ids = answer[answer[2].is_null() ? 1 : 2].get<Ids>();
            CHECK(tokenizer->of_target().decode(ids, true) == decoded[i].get<std::string>());
        }
    }
}

TEST_CASE("Tokens of a sentencepiece model know their place", "[tokenizer][folders]") {
    const auto tokenizer = Folder(tiny_model()).open();
    const auto encoding = tokenizer->encode(" ab  a");
    CHECK(encoding.ids == Ids{3, 2, 3, 0});
    CHECK(encoding.offsets == std::vector<std::array<std::int64_t, 2>>{{1, 2}, {2, 3}, {3, 6}, {0, 0}});
    CHECK(tokenizer->pieces(encoding) == std::vector<std::string>{"▁a", "b", "▁a", "</s>"});
    CHECK(tokenizer->encode("c").ids == Ids{1, 1, 0});
    CHECK_FALSE(tokenizer->adds_first_token());
}

TEST_CASE("A sentencepiece model is read field by field", "[tokenizer][sentencepiece]") {
    const SentencePieceModel model = parse_sentencepiece_model(
        tiny_model(counted(2, number(3, 2)) + counted(3, number(3, 0) + number(4, 0) + counted(2, "rules")) +
                   counted(4, "skipped") + number(9, 1)),
        "model");
    CHECK(model.pieces.size() == 6);
    CHECK(model.pieces[0].kind == SentencePieceModel::Kind::unknown);
    CHECK(model.pieces[3].text == "\u2581a");
    CHECK(model.pieces[4].score == -2);
    CHECK(model.type == SentencePieceModel::Type::bpe);
    CHECK(model.character_map == "rules");
    CHECK_FALSE(model.dummy_prefix);
    CHECK_FALSE(model.extra_spaces_removed);
    CHECK(model.spaces_escaped);
}

TEST_CASE("A bad sentencepiece model is refused with the place", "[tokenizer][sentencepiece][bad]") {
    const auto refuses = [](const std::string& bytes, const std::string& part) {
        CHECK_THROWS_MATCHES(parse_sentencepiece_model(bytes, "model"), Error, IsError(ErrorCode::format, part));
    };
    refuses("", "found no piece");
    refuses("\x0A", "[model, byte 0] expected a field of a sentencepiece model; found one that ends within a number");
    refuses(
        "\x0A\x05"
        "ab",
        "found one that ends beyond what it is in");
    refuses(tiny_model().substr(0, 10), "found one that ends beyond");
    refuses("\x0B", "found a field of type 3");
    refuses("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "found a number of more than 64 bits");
    refuses(number(1, 1), "found one of number 1 that is not bytes");
    refuses(piece("a", 0, 7), "found a piece of kind 7");
    refuses(piece("\xFF"), "which is no UTF-8");
    refuses(piece("a", std::numeric_limits<float>::infinity()), "found a score that is no number");
    refuses(tiny_model(counted(2, number(3, 5))), "found a model of type 5");
    // Every prefix is one or the other: a model, or an error.
    const std::string whole = tiny_model();
    for (std::size_t size = 0; size < whole.size(); ++size) {
        try {
            const SentencePieceModel model = parse_sentencepiece_model(whole.substr(0, size), "model");
            CHECK_FALSE(model.pieces.empty());
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::format);
        }
    }
}

TEST_CASE("Folders that are not plain are refused by what they have", "[tokenizer][folders][bad]") {
    refused(Folder(tiny_model(counted(2, number(3, 2)))), ErrorCode::unsupported, "expected a unigram model");
    refused(Folder(tiny_model(piece("x", 0, 4))), ErrorCode::unsupported, "found \"x\"");
    refused(Folder(tiny_model(counted(3, number(5, 0)))), ErrorCode::unsupported, "expected spaces before words");
    refused(Folder(tiny_model(counted(3, number(3, 0)))), ErrorCode::unsupported, "expected a space before the text");
    refused(Folder(tiny_model(counted(3, counted(2,
                                                 "\x10"
                                                 "abc")))),
            ErrorCode::format, "precompiled_charsmap");
    refused(Folder(tiny_model(), R"({"eos_token": null})"), ErrorCode::mismatch, "eos_token");
    refused(Folder(tiny_model(), R"({"split_special_tokens": true})"), ErrorCode::unsupported, "split_special_tokens");
    refused(Folder(tiny_model(), R"({"tokenizer_class": "XGLMTokenizer"})"), ErrorCode::unsupported, "source.spm");
    refused(Folder(tiny_model(), R"({"separate_vocabs": true})"), ErrorCode::io, "target_vocab.json");
    const Folder ends(tiny_model(), R"({"separate_vocabs": true})");
    ends.file("target_vocab.json", R"({"<unk>": 0, "</s>": 1})");
    refused(ends, ErrorCode::unsupported, "target_vocab.json");
    const Folder without(tiny_model());
    without.remove("target.spm");
    refused(without, ErrorCode::io, "target.spm");
    const Folder unknown(tiny_model());
    unknown.file("vocab.json", R"({"</s>": 0, "b": 1})");
    refused(unknown, ErrorCode::mismatch, "unk_token");
    const Folder language(tiny_model(), R"({"tokenizer_class": "M2M100Tokenizer", "src_lang": "xx"})");
    language.file("sentencepiece.bpe.model", tiny_model());
    refused(language, ErrorCode::mismatch, "src_lang");
    // Weights whose tokenizer is of another kind are read without it.
    const Folder other(tiny_model(), R"({"tokenizer_class": "XGLMTokenizer"})");
    CHECK_FALSE(Tokenizer::is_in(other.path()));
}
