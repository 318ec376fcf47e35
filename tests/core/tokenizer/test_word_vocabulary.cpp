// SPDX-License-Identifier: GPL-3.0-or-later
// Transformer-XL's word vocabularies as Python and torch.save write them (tests/oracle/generate/word_vocabularies.py).
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/tokenizer/tokenizer.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::test;
using nlohmann::json;
using tokenizer::Tokenizer;
using Ids = std::vector<std::int32_t>;
namespace fs = std::filesystem;

namespace {

const fs::path kWords = test::golden_file("words");

/// A model's folder with one of the golden files as `name`.
class Folder {
public:
    explicit Folder(const std::string& golden, const std::string& name = "vocab.bin") {
        fs::copy_file(kWords / golden, folder_ / name);
        file("config.json", R"({"model_type": "transfo-xl"})");
    }
    Folder& file(const std::string& name, const std::string& text) {
        std::ofstream(folder_ / name, std::ios::binary) << text;
        return *this;
    }
    std::shared_ptr<const Tokenizer> open() const { return Tokenizer::from_folder(folder_.path()); }
    const fs::path& path() const { return folder_.path(); }

private:
    TemporaryFolder folder_;
};

json expected() {
    std::ifstream file(kWords / "expected.json");
    return json::parse(file);
}

void check_ids(const Tokenizer& tokenizer, bool lower) {
    const json golden = expected(), &ids = golden.at("lower_case").at(lower ? "true" : "false");
    for (std::size_t n = 0; n < ids.size(); ++n) {
        INFO("text " << n);
        CHECK(tokenizer.encode(golden.at("texts").at(n).get<std::string>()).ids == ids.at(n).get<Ids>());
    }
}

}  // namespace

TEST_CASE("Word vocabularies of Transformer-XL cut texts as its paper's code does, whatever wrote them",
          "[tokenizer][folders]") {
    for (const auto& [golden, name] :
         {std::pair{"before_1.6.bin", "vocab.bin"}, std::pair{"archive.bin", "vocab.pt"},
          std::pair{"protocol2.pkl", "vocab.pkl"}, std::pair{"protocol5.pkl", "vocab.pkl"}}) {
        INFO(golden);
        const Folder folder(golden, name);
        REQUIRE(Tokenizer::is_in(folder.path()));
        const auto tokenizer = folder.open();
        check_ids(*tokenizer, std::string(golden) == "archive.bin");
        CHECK(tokenizer->vocabulary_size() == 11);
        CHECK(tokenizer->decode(Ids{1, 2, 0}) == "the cat <eos>");
        CHECK(tokenizer->decode(Ids{1, 2, 0}, true) == "the cat");
    }
}

TEST_CASE("Words keep their places in the text, and the end of a line is where its <eos> is", "[tokenizer][folders]") {
    const auto encoding = Folder("archive.bin").open()->encode("the\nCat");
    REQUIRE(encoding.ids == Ids{1, 0, 2, 0});
    using Offsets = std::vector<std::array<std::int64_t, 2>>;
    CHECK(encoding.offsets == Offsets{{0, 3}, {3, 4}, {4, 7}, {0, 0}});
}

TEST_CASE("lower_case beside a word vocabulary goes before the file's own", "[tokenizer][folders]") {
    Folder lower("archive.bin"), plain("protocol5.pkl");
    lower.file("tokenizer_config.json", R"({"lower_case": false})");
    plain.file("tokenizer_config.json", R"({"lower_case": true})");
    check_ids(*lower.open(), false);
    check_ids(*plain.open(), true);
}

TEST_CASE("A vocabulary in a file of that name is Transformer-XL's alone", "[tokenizer][folders]") {
    Folder other("archive.bin");
    other.file("config.json", R"({"model_type": "gpt2"})");
    CHECK_FALSE(Tokenizer::is_in(other.path()));
    other.file("tokenizer_config.json", R"({"tokenizer_class": "TransfoXLTokenizer"})");
    CHECK(Tokenizer::is_in(other.path()));
    // As lines of text it has rules that are not built.
    Folder lines("archive.bin");
    fs::remove(lines.path() / "vocab.bin");
    lines.file("vocab.txt", "<eos>\nthe\n");
    CHECK_THROWS_MATCHES(lines.open(), Error, IsError(ErrorCode::unsupported, "transfo-xl"));
}

TEST_CASE("Word vocabularies that are none are refused in a line", "[tokenizer][errors]") {
    const auto refuses = [](const std::string& golden, ErrorCode code, const std::string& part) {
        INFO(golden);
        CHECK_THROWS_MATCHES(Folder(golden).open(), Error, IsError(code, part));
    };
    refuses("bad_none.pkl", ErrorCode::format, "idx2sym");
    refuses("bad_empty.pkl", ErrorCode::format, "idx2sym");
    refuses("bad_list.pkl", ErrorCode::format, "dictionary");
    refuses("bad_twice.pkl", ErrorCode::format, "idx2sym[2]");
    refuses("bad_number.pkl", ErrorCode::format, "idx2sym[1]");
    refuses("bad_outside.pkl", ErrorCode::format, "unk_idx");
    refuses("bad_lower.pkl", ErrorCode::format, "lower_case");
    refuses("bad_letters.pkl", ErrorCode::unsupported, "delimiter");
    Folder cut("before_1.6.bin");
    fs::resize_file(cut.path() / "vocab.bin", 300);
    CHECK_THROWS_MATCHES(cut.open(), Error, IsError(ErrorCode::format, "vocab.bin"));
    Folder text("archive.bin");
    text.file("vocab.bin", "the\ncat\n");
    CHECK_THROWS_MATCHES(text.open(), Error, IsError(ErrorCode::format, "pickle"));
    text.file("vocab.bin", "");
    CHECK_THROWS_MATCHES(text.open(), Error, IsError(ErrorCode::format, "pickle"));
}
