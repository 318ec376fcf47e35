// SPDX-License-Identifier: GPL-3.0-or-later
// Folders from before tokenizer.json. tests/oracle/accept/tokenizer_folders.py compares larger ones with transformers.
#include <catch2/catch.hpp>

#include "core/tokenizer/tokenizer.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using namespace headscope::test;
using tokenizer::Tokenizer;
using Ids = std::vector<std::int32_t>;
using Offsets = std::vector<std::array<std::int64_t, 2>>;

namespace {

class Folder {
public:
    Folder& file(const std::string& name, const std::string& text) {
        write_file(folder_ / name, text);
        return *this;
    }
    Folder& merges(
        const std::string& vocabulary = R"({"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġab": 4, "<s>": 5, "</s>": 6})",
        const std::string& list = "#version: 0.2\na b\nĠ ab\n") {
        return file("vocab.json", vocabulary).file("merges.txt", list);
    }
    std::shared_ptr<const Tokenizer> open() const { return Tokenizer::from_folder(folder_.path()); }
    const std::filesystem::path& path() const { return folder_.path(); }

private:
    static void write_file(const std::filesystem::path& path, const std::string& text) {
        std::ofstream(path, std::ios::binary) << text;
    }
    TemporaryFolder folder_;
};

void refused(const Folder& folder, ErrorCode code, const std::string& part) {
    REQUIRE_THROWS_MATCHES(folder.open(), Error, IsError(code, part));
}

}  // namespace

TEST_CASE("vocab.json and merges.txt alone are GPT-2's tokenizer", "[tokenizer][folders]") {
    const auto tokenizer = Folder().merges().open();
    const auto encoding = tokenizer->encode("ab ab");
    REQUIRE(encoding.ids == Ids{3, 4});
    REQUIRE(encoding.offsets == Offsets{{0, 2}, {2, 5}});
    REQUIRE(tokenizer->decode(encoding.ids) == "ab ab");
    REQUIRE(tokenizer->id_of("<|endoftext|>") == 7);  // added behind the vocabulary
    REQUIRE_FALSE(tokenizer->adds_first_token());
}

TEST_CASE("RoBERTa's files put tokens around the text and trim offsets", "[tokenizer][folders]") {
    Folder folder;
    folder.merges().file("config.json", R"({"model_type": "roberta"})");
    auto encoding = folder.open()->encode("ab ab");
    REQUIRE(encoding.ids == Ids{5, 3, 4, 6});
    REQUIRE(encoding.offsets == Offsets{{0, 0}, {0, 2}, {3, 5}, {0, 0}});
    folder.file("tokenizer_config.json", R"({"trim_offsets": false, "add_prefix_space": true})");
    encoding = folder.open()->encode("ab ab");
    REQUIRE(encoding.ids == Ids{5, 4, 4, 6});
    REQUIRE(encoding.offsets == Offsets{{0, 0}, {0, 2}, {2, 5}, {0, 0}});
}

TEST_CASE("Blenderbot's files put a space before the text and nothing around it", "[tokenizer][folders]") {
    Folder folder;
    folder.merges().file("config.json", R"({"model_type": "blenderbot"})");
    REQUIRE(folder.open()->encode("ab ab").ids == Ids{4, 4});
    folder.file("tokenizer_config.json", R"({"add_prefix_space": false})");
    REQUIRE(folder.open()->encode("ab ab").ids == Ids{3, 4});
}

TEST_CASE("CLIP's files are lower case, with ends of words", "[tokenizer][folders]") {
    Folder folder;
    folder.merges(R"({"a": 0, "b": 1, "b</w>": 2, "ab</w>": 3, "<|startoftext|>": 4, "<|endoftext|>": 5})", "a b</w>\n")
        .file("config.json", R"({"model_type": "clip"})");
    const auto tokenizer = folder.open();
    const auto encoding = tokenizer->encode("AB \n  ab");
    REQUIRE(encoding.ids == Ids{4, 3, 3, 5});
    REQUIRE(encoding.offsets == Offsets{{0, 0}, {0, 2}, {6, 8}, {0, 0}});
    REQUIRE(tokenizer->decode(std::vector<std::int32_t>{3, 3}) == "ab ab");
}

TEST_CASE("Files that are called the same and mean something else are refused by their kind", "[tokenizer][folders]") {
    for (const std::string type : {"whisper", "blenderbot-small"}) {
        Folder folder;
        refused(folder.merges().file("config.json", R"({"model_type": ")" + type + R"("})"), ErrorCode::unsupported,
                "the tokenizer of a " + type + " model");
    }
    Folder folder;
    refused(folder.merges().file("tokenizer_config.json", R"({"tokenizer_class": "WhisperTokenizer"})"),
            ErrorCode::unsupported, "WhisperTokenizer");
}

TEST_CASE("Settings beside a vocabulary are those of any version", "[tokenizer][folders]") {
    Folder folder;
    folder.merges().file("tokenizer_config.json",
                         R"({"tokenizer_class": "GPT2TokenizerFast", "add_bos_token": true, "unk_token": null,
                             "bos_token": {"__type": "AddedToken", "content": "<s>", "lstrip": true}})");
    REQUIRE(folder.open()->encode("ab  <s>").ids == Ids{5, 3, 5});
    REQUIRE(folder.open()->adds_first_token());
    // Older files count where the newer list is not there.
    folder.file("special_tokens_map.json", R"({"eos_token": "</s>", "additional_special_tokens": ["<x>"]})")
        .file("added_tokens.json", R"({"<y>": 8, "<z>": 7})");
    const auto old = folder.open();
    REQUIRE(old->id_of("<z>") == 7);
    REQUIRE(old->id_of("<y>") == 8);
    REQUIRE(old->id_of("<x>") == 9);
    REQUIRE(old->decode(Ids{6, 8, 9}, true) == "<y>");
    folder.file("tokenizer_config.json", R"({"added_tokens_decoder": {"7": {"content": "<w>", "special": true}}})");
    REQUIRE(folder.open()->id_of("<w>") == 7);
    REQUIRE_FALSE(folder.open()->id_of("<y>").has_value());
}

TEST_CASE("vocab.txt is BERT's tokenizer", "[tokenizer][folders]") {
    Folder folder;
    folder.file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\r\n##e\ne \nE\n\u00E9\nzh\u4E2D\n");
    REQUIRE(folder.open()->encode("The \u00C9ee [MASK]").ids == Ids{2, 5, 7, 6, 6, 4, 3});
    folder.file("tokenizer_config.json", R"({"do_lower_case": false, "strip_accents": false})");
    REQUIRE(folder.open()->encode("the E \u00E9").ids == Ids{2, 5, 8, 9, 3});
    REQUIRE(folder.open()->encode("zh\u4E2D").ids == Ids{2, 1, 1, 3});
    folder.file("tokenizer_config.json", R"({"tokenize_chinese_chars": false})");
    REQUIRE(folder.open()->encode("zh\u4E2D").ids == Ids{2, 10, 3});
}

TEST_CASE("ESM's vocab.txt splits proteins into its pieces, wherever they are", "[tokenizer][folders]") {
    Folder folder;
    folder.file("vocab.txt", "<cls>\n<pad>\n<eos>\n<unk>\nL\nA\n<null_1>\n<mask>")
        .file("config.json", R"({"model_type": "esm"})");
    const auto tokenizer = folder.open();
    const auto encoding = tokenizer->encode("LA<mask>A");
    REQUIRE(encoding.ids == Ids{0, 4, 5, 7, 5, 2});
    REQUIRE(encoding.offsets == Offsets{{0, 0}, {0, 1}, {1, 2}, {2, 8}, {8, 9}, {0, 0}});
    // Characters without a piece form one unknown up to the next piece or white space, as in Python.
    REQUIRE(tokenizer->encode(" lx\x1Cy L<<null_1>").ids == Ids{0, 3, 3, 4, 3, 6, 2});
    REQUIRE(tokenizer->decode(encoding.ids) == "<cls> L A <mask> A <eos>");
    REQUIRE(tokenizer->decode(encoding.ids, true) == "L A A");
    folder.file("tokenizer_config.json", R"({"tokenizer_class": "EsmTokenizer", "eos_token": null})");
    REQUIRE(folder.open()->encode("L").ids == Ids{0, 4});
    folder.file("tokenizer_config.json", R"({"cls_token": null})");
    refused(folder, ErrorCode::mismatch, "cls_token");
}

TEST_CASE("tokenizer.json goes before older files", "[tokenizer][folders]") {
    Folder folder;
    folder.merges().file("tokenizer.json", R"({"version": "1.0", "model": {"vocab": {"q": 0}, "merges": []}})");
    REQUIRE(folder.open()->vocabulary_size() == 1);
    REQUIRE(Tokenizer::is_in(folder.path()));
    REQUIRE_FALSE(Tokenizer::is_in(TemporaryFolder().path()));
}

TEST_CASE("Unreadable files are refused with the expectation", "[tokenizer][folders][bad]") {
    refused(Folder(), ErrorCode::io, "expected a tokenizer.json, or vocab.json with merges.txt, or vocab.txt");
    refused(Folder().file("vocab.json", "{}"), ErrorCode::io, "merges.txt");
    refused(Folder().file("tokenizer.model", "\x0A"), ErrorCode::unsupported, "sentencepiece");
    refused(Folder().file("spiece.model", "\x0A"), ErrorCode::unsupported, "spiece.model");
    Folder model;
    model.file("tokenizer.model", "\x0A");
    REQUIRE_THROWS_MATCHES(Tokenizer::from_file(model.path() / "tokenizer.model"), Error,
                           IsError(ErrorCode::unsupported, "expected a tokenizer.json"));
    refused(Folder().merges().file("tokenizer_config.json", R"({"tokenizer_class": "MarianTokenizer"})"),
            ErrorCode::unsupported, "MarianTokenizer");
    refused(Folder().merges().file("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer"})"),
            ErrorCode::mismatch, "vocab.txt");
    refused(Folder().file("vocab.txt", "a\n").file("config.json", R"({"model_type": "gpt2"})"), ErrorCode::mismatch,
            "merges.txt");
}

TEST_CASE("Broken older files are refused with the place", "[tokenizer][folders][bad]") {
    refused(Folder().merges("[]"), ErrorCode::format, "vocab.json");
    refused(Folder().merges("{"), ErrorCode::format, "vocab.json");
    refused(Folder().merges(R"({"a": "0", "b": 1, "ab": 3})", "a b\n"), ErrorCode::format, "model.vocab.a");
    refused(Folder().merges(R"({"a": 0, "b": 1, "ab": 3})", "#version\na b\nab\n"), ErrorCode::format,
            "merges.txt: line 3");
    refused(Folder().merges(R"({"a": 0, "b": 1, "ab": 3})", "a  b\n"), ErrorCode::format, "merges.txt: line 1");
    refused(Folder().merges(R"({"a": 0, "b": 1})", "a b\n"), ErrorCode::mismatch, "merges.txt: line 1");
    refused(Folder().merges(R"({"a": 0, "b": 1})", "a \xFF\n"), ErrorCode::format, "merges.txt");
    refused(Folder().file("vocab.txt", ""), ErrorCode::format, "vocab.txt");
    refused(Folder().file("vocab.txt", "a\n\xFF\n"), ErrorCode::format, "at byte 2");
    const auto config_refused = [](const std::string& text, ErrorCode code, const std::string& part) {
        Folder folder;
        folder.merges().file("tokenizer_config.json", text);
        refused(folder, code, part);
    };
    config_refused("[]", ErrorCode::format, "tokenizer_config.json");
    config_refused(R"({"add_prefix_space": 1})", ErrorCode::format, "tokenizer_config.json: add_prefix_space");
    config_refused(R"({"tokenizer_class": 1})", ErrorCode::format, "tokenizer_config.json: tokenizer_class");
    config_refused(R"({"bos_token": 1})", ErrorCode::format, "tokenizer_config.json: bos_token");
    config_refused(R"({"bos_token": {"lstrip": true}})", ErrorCode::format, "bos_token.content");
    config_refused(R"({"added_tokens_decoder": []})", ErrorCode::format, "added_tokens_decoder");
    config_refused(R"({"added_tokens_decoder": {"x": {"content": "a"}}})", ErrorCode::format, "added_tokens_decoder.x");
    config_refused(R"({"added_tokens_decoder": {"1": "a"}})", ErrorCode::format, "added_tokens_decoder.1");
    config_refused(R"({"extra_special_tokens": [1]})", ErrorCode::format, "extra_special_tokens[0]");
    config_refused(R"({"split_special_tokens": true})", ErrorCode::unsupported, "split_special_tokens");
    Folder added;
    added.merges().file("added_tokens.json", R"({"x": "1"})");
    refused(added, ErrorCode::format, "added_tokens.json: x");
}
