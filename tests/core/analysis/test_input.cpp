// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <fstream>

#include "core/analysis/input.h"
#include "core/analysis/text_sources.h"
#include "core/base/error.h"
#include "core/tokenizer/hashed/word_tokenizer.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using Ids = std::vector<std::int32_t>;
using Offset = std::array<std::int64_t, 2>;

namespace {

/// Bytes as ids, between <s> (256) and </s> (257) when special tokens are added. `type` is that of a text's tokens.
class Framed final : public tokenizer::Tokenizer {
public:
    explicit Framed(bool first = true, std::int32_t type = 0) : first_(first), type_(type) {}
    void encode_into(tokenizer::TokenSink& sink, std::string_view text, bool special,
                     const Cancellation*) const override {
        if (special && first_) sink.add({256, 0, 0, true, std::nullopt, 0, 0});
        for (std::uint32_t i = 0; i < text.size(); ++i) {
            if (text[i] == ' ') continue;  // dropped, as WordPiece does
            sink.add({static_cast<unsigned char>(text[i]), i, i + 1, false, std::nullopt, type_});
        }
        if (special) sink.add({257, 0, 0, true, std::nullopt, 0, 0});
    }
    void encode_pair_into(tokenizer::TokenSink& sink, std::string_view a, std::string_view b, bool special,
                          const Cancellation* cancellation) const override {
        encode_into(sink, a, special, cancellation);
        for (std::uint32_t i = 0; i < b.size(); ++i) {
            if (b[i] != ' ') sink.add({static_cast<unsigned char>(b[i]), i, i + 1, false, std::nullopt, 1, 2});
        }
        if (special) sink.add({257, 0, 0, true, std::nullopt, 1, 0});
    }
    std::vector<tokenizer::FramePart> frame(bool) const override { return {}; }
    std::string decode(std::span<const std::int32_t>, bool) const override { return {}; }
    std::string piece(std::int32_t id) const override { return surface(id); }
    std::string surface(std::int32_t id) const override {
        if (id == 256) return "<s>";
        if (id == 257) return "</s>";
        return {static_cast<char>(id)};
    }
    std::int64_t vocabulary_size() const override { return 258; }
    std::optional<std::int32_t> id_of(std::string_view) const override { return std::nullopt; }
    bool adds_first_token() const override { return first_; }

private:
    bool first_;
    std::int32_t type_;
};

analysis::InputOptions text_options(const std::string& text) {
    analysis::InputOptions options;
    options.texts = {text};
    return options;
}

void write(const std::filesystem::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
}

ErrorCode refusal(const analysis::InputOptions& options, const tokenizer::Tokenizer* tokenizer) {
    try {
        analysis::read_input(options, tokenizer);
    } catch (const Error& error) {
        INFO(error.what());
        return error.code();
    }
    FAIL("was not refused");
    return ErrorCode::internal;
}

}  // namespace

TEST_CASE("A text becomes ids, pieces and offsets", "[analysis]") {
    const Framed tokenizer;
    const auto input = analysis::read_input(text_options("ab c"), &tokenizer);
    REQUIRE(input.sequences.size() == 1);
    const auto& tokens = input.sequences[0];
    CHECK(tokens.ids == Ids{256, 'a', 'b', 'c', 257});
    CHECK(tokens.pieces == std::vector<std::string>{"<s>", "a", "b", "c", "</s>"});
    CHECK(tokens.offsets[3] == Offset{3, 4});
    CHECK(tokens.text == "ab c");
    CHECK(input.first_token == "added by the tokenizer");
}

TEST_CASE("A pair is one sequence with types and regions", "[analysis]") {
    const Framed tokenizer;
    auto options = text_options("ab c");
    options.pairs = {"d e"};
    const auto tokens = analysis::read_input(options, &tokenizer).sequences.at(0);
    CHECK(tokens.ids == Ids{256, 'a', 'b', 'c', 257, 'd', 'e', 257});
    CHECK(tokens.types == Ids{0, 0, 0, 0, 0, 1, 1, 1});
    CHECK(tokens.regions == Ids{0, 1, 1, 1, 0, 2, 2, 0});
    CHECK(tokens.text == "ab c\nd e");
    CHECK(tokens.offsets[5] == Offset{5, 6});
    CHECK(tokens.offsets[6] == Offset{7, 8});

    SECTION("one second text is that of all, others are one each") {
        options.texts = {"ab", "c"};
        CHECK(analysis::read_input(options, &tokenizer).sequences.at(1).ids == Ids{256, 'c', 257, 'd', 'e', 257});
        options.pairs = {"d", "e"};
        CHECK(analysis::read_input(options, &tokenizer).sequences.at(1).ids == Ids{256, 'c', 257, 'e', 257});
        options.pairs = {"d", "e", "f"};
        CHECK(refusal(options, &tokenizer) == ErrorCode::usage);
    }
    SECTION("cut, without a first token") {
        options.first_token = analysis::FirstToken::no;
        options.length = 5;
        const auto cut = analysis::read_input(options, &tokenizer).sequences.at(0);
        CHECK(cut.ids == Ids{'a', 'b', 'c', 257, 'd'});
        CHECK(cut.regions == Ids{1, 1, 1, 0, 2});
        CHECK(cut.types == Ids{0, 0, 0, 0, 1});
    }
    SECTION("what is no pair is refused") {
        options.pairs = {" "};
        CHECK(refusal(options, &tokenizer) == ErrorCode::usage);
        options.pairs = {"\xFF"};
        CHECK(refusal(options, &tokenizer) == ErrorCode::format);
    }
}

TEST_CASE("A single text keeps token types other than 0", "[analysis]") {
    auto options = text_options("ab c");
    const Framed plain, typed(true, 2);
    CHECK(analysis::read_input(options, &plain).sequences.at(0).types.empty());
    CHECK(analysis::read_input(options, &typed).sequences.at(0).types == Ids{0, 2, 2, 2, 0});
    CHECK(analysis::read_input(options, &typed).sequences.at(0).regions.empty());
    options.first_token = analysis::FirstToken::no;
    options.length = 2;
    options.windows = true;
    const auto windows = analysis::read_input(options, &typed).sequences;
    REQUIRE(windows.size() == 2);
    CHECK(windows[0].types == Ids{2, 2});
    CHECK(windows[1].types == Ids{2, 0});
}

TEST_CASE("The first token is left out or added as asked", "[analysis]") {
    const Framed framed, bare(false);
    auto options = text_options("ab");
    options.first_token = analysis::FirstToken::no;
    CHECK(analysis::read_input(options, &framed).sequences[0].ids == Ids{'a', 'b', 257});
    CHECK(analysis::read_input(options, &bare).sequences[0].ids == Ids{'a', 'b', 257});
    options.first_token = analysis::FirstToken::yes;
    CHECK(analysis::read_input(options, &framed).sequences[0].ids == Ids{256, 'a', 'b', 257});
    CHECK(refusal(options, &bare) == ErrorCode::usage);
    options.first_token_id = 255;
    const auto input = analysis::read_input(options, &bare);
    CHECK(input.sequences[0].ids == Ids{255, 'a', 'b', 257});
    CHECK(input.first_token == "added");
}

TEST_CASE("A length cuts, and windows cut a long text into parts with their own text", "[analysis]") {
    const Framed tokenizer;
    auto options = text_options("abc \xE6\x9C\x88xyz");
    options.length = 3;
    auto input = analysis::read_input(options, &tokenizer);
    REQUIRE(input.sequences.size() == 1);
    CHECK(input.sequences[0].ids == Ids{256, 'a', 'b'});
    CHECK(input.sequences[0].text == "ab");

    options.windows = true;
    options.length = 5;  // <s> a b c E6 | 9C 88 x y z | </s>
    input = analysis::read_input(options, &tokenizer);
    REQUIRE(input.sequences.size() == 3);
    CHECK(input.sequences[0].text == "abc \xE6\x9C\x88");  // characters stay whole
    CHECK(input.sequences[1].text == "\xE6\x9C\x88xyz");
    CHECK(input.sequences[1].offsets[0] == Offset{1, 2});
    CHECK(input.sequences[1].offsets[4] == Offset{5, 6});
    CHECK(input.sequences[2].ids == Ids{257});
    CHECK(input.sequences[2].text.empty());

    options.length = 100;
    CHECK(analysis::read_input(options, &tokenizer).sequences.size() == 1);
    options.length = 0;
    CHECK(refusal(options, &tokenizer) == ErrorCode::usage);
}

TEST_CASE("Repeating replaces every token of the text by its first", "[analysis]") {
    const Framed tokenizer;
    auto options = text_options("xyz");
    options.repeat_token = true;
    const auto tokens = analysis::read_input(options, &tokenizer).sequences.at(0);
    CHECK(tokens.ids == Ids{256, 'x', 'x', 'x', 257});
    CHECK(tokens.pieces[3] == "x");
    CHECK(tokens.offsets[3] == Offset{0, 1});
}

TEST_CASE("Lists of ids need no tokenizer", "[analysis]") {
    const test::TemporaryFolder folder;
    analysis::InputOptions options;
    options.token_files = {folder / "ids.json"};
    options.vocabulary = 100;
    write(folder / "ids.json", "[[1, 2, 3], [99]]");
    auto input = analysis::read_input(options, nullptr);
    REQUIRE(input.sequences.size() == 2);
    CHECK(input.sequences[0].ids == Ids{1, 2, 3});
    CHECK(input.sequences[1].pieces == std::vector<std::string>{"99"});
    CHECK(input.paths == options.token_files);

    const Framed tokenizer;
    write(folder / "ids.json", "[[97, 98]]");
    input = analysis::read_input(options, &tokenizer);
    CHECK(input.sequences[0].text == "ab");
    CHECK(input.sequences[0].offsets[1] == Offset{1, 2});

    for (const char* bad : {"", "[]", "[[]]", "[1, 2]", "{\"a\": 1}", "[[1, 100]]", "[[-1]]", "[[1.5]]", "[[true]]",
                            "[[1]", "[[\"1\"]]", "[[99999999999999999999]]"}) {
        INFO(bad);
        write(folder / "ids.json", bad);
        CHECK_THROWS_AS(analysis::read_input(options, nullptr), Error);
    }
}

TEST_CASE("Files and bundled texts are read whole and checked", "[analysis]") {
    const Framed tokenizer;
    const test::TemporaryFolder folder;
    std::filesystem::create_directory(folder / "texts");
    write(folder / "texts/night.txt", "by night\n");
    write(folder / "texts/notes.md", "no text");
    write(folder / "a.txt", "abc");
    analysis::InputOptions options;
    options.resources = folder.path();
    options.files = {folder / "a.txt"};
    options.examples = {"night"};
    options.texts = {"t"};
    const auto input = analysis::read_input(options, &tokenizer);
    REQUIRE(input.sequences.size() == 3);
    CHECK(input.sequences[0].text == "t");
    CHECK(input.sequences[1].text == "abc");
    CHECK(input.sequences[2].text == "by night\n");
    CHECK(input.paths.size() == 2);
    CHECK(analysis::bundled_texts(folder.path()) == std::vector<std::string>{"night"});

    options.examples = {"../a"};
    CHECK(refusal(options, &tokenizer) == ErrorCode::usage);
    options.examples.clear();
    options.files = {folder / "absent.txt"};
    CHECK(refusal(options, &tokenizer) == ErrorCode::io);
    write(folder / "a.txt", "ab\xFFz");
    options.files = {folder / "a.txt"};
    CHECK(refusal(options, &tokenizer) == ErrorCode::format);
    write(folder / "a.txt", "");
    CHECK(refusal(options, &tokenizer) == ErrorCode::usage);
}

TEST_CASE("Nothing to analyse is refused", "[analysis]") {
    const Framed tokenizer;
    CHECK(refusal({}, &tokenizer) == ErrorCode::usage);
    CHECK(refusal(text_options(""), &tokenizer) == ErrorCode::usage);
    CHECK(refusal(text_options("   "), &tokenizer) == ErrorCode::usage);  // only inserted tokens are left
    CHECK(refusal(text_options("a"), nullptr) == ErrorCode::usage);
    auto options = text_options("a");
    options.vocabulary = 97;  // 'a' is 97
    CHECK(refusal(options, &tokenizer) == ErrorCode::mismatch);
    CHECK(refusal(text_options("a\xC0"), &tokenizer) == ErrorCode::format);
}

TEST_CASE("A text goes through the chat template, and nothing is added twice", "[analysis][input]") {
    const Framed tokenizer;
    analysis::InputOptions options = text_options("hi");
    options.chat.emplace();
    options.chat->text =
        "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}:{% endif %}";
    options.chat->special_tokens["bos_token"] = "^";
    const auto input = analysis::read_input(options, &tokenizer);
    REQUIRE(input.first_token == "as the chat template does");
    REQUIRE(input.sequences.at(0).text == "^[user]hi:");
    REQUIRE(input.sequences[0].ids == Ids{'^', '[', 'u', 's', 'e', 'r', ']', 'h', 'i', ':'});
    REQUIRE(input.sequences[0].offsets.back() == Offset{9, 10});

    options.chat_options.add_generation_prompt = false;
    options.texts = {"one", "two"};
    REQUIRE(analysis::read_input(options, &tokenizer).sequences.at(1).text == "^[user]two");

    options.first_token = analysis::FirstToken::yes;
    REQUIRE_THROWS_AS(analysis::read_input(options, &tokenizer), Error);
    options.first_token = analysis::FirstToken::automatic;
    options.chat->text = "{{ raise_exception('no') }}";
    REQUIRE_THROWS_AS(analysis::read_input(options, &tokenizer), Error);
}

TEST_CASE("Of a text that is too long for anything the first tokens are kept, and all are counted",
          "[analysis][input]") {
    const Framed tokenizer;
    const std::size_t most = std::size_t{1} << 22U;
    analysis::InputOptions options = text_options(std::string(most, 'a'));  // with <s> and </s> two too many
    REQUIRE(refusal(options, &tokenizer) == ErrorCode::limit);
    std::int64_t told = 0;
    options.check_length = [&](std::int64_t tokens) {
        told = tokens;
        throw Error(ErrorCode::usage, "model", "expected fewer", "found more");
    };
    REQUIRE(refusal(options, &tokenizer) == ErrorCode::usage);  // what the model says comes first
    REQUIRE(told == static_cast<std::int64_t>(most) + 2);
    options.check_length = nullptr;
    options.length = 5;
    const auto input = analysis::read_input(options, &tokenizer);
    REQUIRE(input.sequences.at(0).ids == Ids{256, 'a', 'a', 'a', 'a'});
    REQUIRE(input.sequences[0].text == "aaaa");
    options.windows = true;
    REQUIRE(refusal(options, &tokenizer) == ErrorCode::limit);
    // The same where the first token goes or comes: the text is cut with its tokens.
    options.windows = false;
    options.texts = {"abcdef"};
    options.first_token = analysis::FirstToken::no;
    REQUIRE(analysis::read_input(options, &tokenizer).sequences.at(0).text == "abcde");
    const Framed bare(false);
    options.first_token = analysis::FirstToken::yes;
    options.first_token_id = 256;
    REQUIRE(analysis::read_input(options, &bare).sequences.at(0).text == "abcd");
}

TEST_CASE("Words that are hashed keep their pieces and bits", "[analysis]") {
    tokenizer::HashSettings settings;
    settings.kind = tokenizer::EmbeddingKind::add;
    settings.hash = tokenizer::WordHashKind::md5;
    settings.bits = 128;
    const tokenizer::WordTokenizer words(std::make_shared<const tokenizer::WordHash>(settings));
    const std::string the = "b9386d96710ddd52bc49ff0033ead10f", hello = "1dec56025892c637efb2601c8e1a3ab4";
    using Texts = std::vector<std::string>;

    const auto whole = analysis::read_input(text_options("The, Hello"), &words).sequences.at(0);
    CHECK(whole.ids == Ids{0, 5, 5, 5, 2});
    CHECK(whole.pieces == Texts{"<s>", "the", ",", "hello", "</s>"});
    CHECK(whole.hashes == Texts{"", the, words.word_hash()->hex(","), hello, ""});
    CHECK(whole.offsets.at(3) == Offset{5, 10});

    auto options = text_options("The, Hello");
    options.windows = true;
    options.length = 3;
    const auto windows = analysis::read_input(options, &words).sequences;
    REQUIRE(windows.size() == 2);
    CHECK(windows[1].pieces == Texts{"hello", "</s>"});
    CHECK(windows[1].hashes == Texts{hello, ""});
    CHECK(windows[1].text == "Hello");

    options = text_options("The, Hello");
    options.repeat_token = true;
    options.first_token = analysis::FirstToken::no;
    const auto repeated = analysis::read_input(options, &words).sequences.at(0);
    CHECK(repeated.pieces == Texts{"the", "the", "the", "</s>"});
    CHECK(repeated.hashes == Texts{the, the, the, ""});

    const test::TemporaryFolder folder;
    const auto path = folder / "tokens.json";
    options = {};
    options.token_files = {path};
    write(path, R"([[0, "hello", {"hash": ")" + the + R"("}, "The"], [4]])");
    const auto lists = analysis::read_input(options, &words).sequences;
    REQUIRE(lists.size() == 2);
    CHECK(lists[0].ids == Ids{0, 5, 5, 5});
    CHECK(lists[0].hashes == Texts{"", hello, the, words.word_hash()->hex("The")});
    CHECK(lists[0].pieces == Texts{"<s>", "hello", "#" + the, "The"});
    CHECK(lists[0].text == "<s> hello #" + the + " The");
    CHECK(lists[0].offsets.at(1) == Offset{4, 9});
    CHECK(lists[1].pieces == Texts{"<mask>"});
    const std::pair<const char*, ErrorCode> wrong[] = {{"[[5]]", ErrorCode::limit},
                                                       {"[]", ErrorCode::usage},
                                                       {"[[]]", ErrorCode::usage},
                                                       {"[[true]]", ErrorCode::format},
                                                       {R"([[{"hash": "12"}]])", ErrorCode::format},
                                                       {R"([[{"word": "a"}]])", ErrorCode::format}};
    for (const auto& [text, code] : wrong) {
        INFO(text);
        write(path, text);
        CHECK(refusal(options, &words) == code);
    }
}

TEST_CASE("Labels are arrays of whole numbers, and an empty file of them is refused", "[analysis]") {
    const test::TemporaryFolder folder;
    const auto path = folder / "labels.json";
    write(path, "[[-100, 2], []]");
    CHECK(analysis::read_label_file(path) == std::vector<std::vector<std::int64_t>>{{-100, 2}, {}});
    for (const char* text : {"[]", "{}", "[[1.5]]", "[1]"}) {
        INFO(text);
        write(path, text);
        CHECK_THROWS_AS(analysis::read_label_file(path), Error);
    }
}
