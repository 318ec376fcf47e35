// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/data/token_file.h"
#include "core/tokenizer/tokenizer.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/data/corpus.h"

using namespace headscope;
using namespace headscope::test;
using data::DataSettings;
using data::Split;

namespace {

DataSettings settings_of(std::vector<std::string> text, std::int64_t length = 4) {
    DataSettings settings;
    settings.text = std::move(text);
    settings.sequence_length = length;
    settings.validation = 0;
    return settings;
}

/// Windows of a part in the order of the text.
std::string text_of(const data::DataSet& set, Split split) {
    const auto file = data::TokenFile::open(set.summary().token_file);
    const auto range = file->range(split);
    std::vector<std::int64_t> wide(static_cast<std::size_t>(range.size()));
    file->copy(range.begin, range.size(), wide.data());
    return set.tokenizer().decode(std::vector<std::int32_t>(wide.begin(), wide.end()));
}

}  // namespace

TEST_CASE("text becomes bytes with an end of text behind each document", "[data]") {
    Corpus corpus;
    corpus.write("a.txt", "one \xC3\xA9");
    corpus.write("b.txt", "");
    corpus.write("c.jsonl", "{\"text\": \"two\"}\n{\"text\": \"\"}\n{\"text\": \"three\"}\n");
    const auto set = corpus.prepare(settings_of({"*"}));
    CHECK(set->vocabulary() == 257);
    CHECK(set->summary().documents == 3);
    CHECK(set->summary().sources == 3);
    CHECK(set->summary().name == "3 files");
    CHECK(set->summary().training_tokens == 6 + 3 + 5 + 3);
    CHECK(text_of(*set, Split::training) == "one \xC3\xA9<|endoftext|>two<|endoftext|>three<|endoftext|>");
    CHECK(set->source(Split::validation, 1) == nullptr);
    // Its files make a tokenizer that others open.
    REQUIRE(set->tokenizer_files().size() == 2);
    CHECK(set->tokenizer_files()[0].name == "tokenizer.json");
    const auto again = tokenizer::Tokenizer::from_json(set->tokenizer_files()[0].content, "again");
    CHECK(again->encode("a\xC3\xA9<|endoftext|>").ids == std::vector<std::int32_t>{97, 0xC3, 0xA9, 256});
    CHECK(again->decode(std::vector<std::int32_t>{97, 0xC3, 0xA9, 256}, true) == "a\xC3\xA9");
}

TEST_CASE("Lines and arrays of .json files are the data of .jsonl files", "[data][json]") {
    Corpus corpus;
    std::string lines, array = "[";
    for (int i = 0; i < 200; ++i) {
        const std::string object = "{\"text\": \"document " + std::to_string(i) + "\"}";
        lines += object + "\n";
        array += (i > 0 ? ",\n" : "") + object;
    }
    corpus.write("a.jsonl", lines);
    corpus.write("b.json", lines);
    corpus.write("c.json", array + "]");
    const auto usual = corpus.prepare(settings_of({"a.jsonl"}));
    CHECK(usual->summary().documents == 200);
    for (const char* name : {"b.json", "c.json"}) {
        INFO(name);
        const auto set = corpus.prepare(settings_of({name}));
        CHECK(set->summary().documents == 200);
        CHECK(text_of(*set, Split::training) == text_of(*usual, Split::training));
        CHECK(set->hash() == usual->hash());
    }
    corpus.write("d.json", "In the beginning\n");
    CHECK_THROWS_MATCHES(corpus.prepare(settings_of({"d.json"})), Error,
                         IsError(ErrorCode::format, "d.json] expected"));
}

TEST_CASE("a share or files are held out, and files that are held out are not trained on", "[data]") {
    Corpus corpus;
    corpus.write("a.txt", "abcdefghi");
    corpus.write("b.txt", "jklmnopqr");
    auto settings = settings_of({"."});
    settings.validation = 0.25;
    const auto shared = corpus.prepare(settings);
    CHECK(text_of(*shared, Split::training) == "abcdefghi<|endoftext|>jklmn");
    CHECK(text_of(*shared, Split::validation) == "opqr<|endoftext|>");
    CHECK(shared->source(Split::validation, 1)->epoch() == 1);

    settings.validation_files = {"a.*"};
    const auto filed = corpus.prepare(settings);
    CHECK(text_of(*filed, Split::training) == "jklmnopqr<|endoftext|>");
    CHECK(text_of(*filed, Split::validation) == "abcdefghi<|endoftext|>");
    CHECK(filed->hash() != shared->hash());
    settings.validation_files = {"*"};
    CHECK_THROWS_MATCHES(corpus.prepare(settings), Error, IsError(ErrorCode::usage, "found none that is not held out"));
}

TEST_CASE("a token file is used again until a source, the tokenizer or the split changes", "[data]") {
    Corpus corpus;
    corpus.write("a.txt", "some text to train on");
    auto settings = settings_of({"a.txt"});
    const auto first = corpus.prepare(settings);
    CHECK_FALSE(first->summary().reused);
    CHECK(first->summary().token_file.string().find("cache/headscope/tokens") != std::string::npos);
    const auto second = corpus.prepare(settings);
    CHECK(second->summary().reused);
    CHECK(second->hash() == first->hash());
    // The same text under another name is the same data.
    std::filesystem::rename(corpus.folder.path() / "text/a.txt", corpus.folder.path() / "text/b.txt");
    settings.text = {"b.txt"};
    CHECK(corpus.prepare(settings)->summary().reused);

    corpus.write("b.txt", "some text to train ON");
    const auto changed = corpus.prepare(settings);
    CHECK_FALSE(changed->summary().reused);
    CHECK(changed->hash() != first->hash());
    settings.sequence_length = 5;
    const auto longer = corpus.prepare(settings);
    CHECK(longer->summary().reused);
    CHECK(longer->hash() != changed->hash());  // another order of data
    settings.validation = 0.5;
    CHECK_FALSE(corpus.prepare(settings)->summary().reused);
    settings.tokenizer = "train:257";
    CHECK_FALSE(corpus.prepare(settings)->summary().reused);

    // A file that rotted in the cache is made again.
    settings = settings_of({"b.txt"});
    const auto path = changed->summary().token_file;
    std::string bytes = read_file(path);
    const std::string text("t\0o\0 \0t\0r\0", 10);
    REQUIRE(bytes.find(text) != std::string::npos);
    bytes[bytes.find(text)] = 'T';
    write_file(path, bytes);
    const auto mended = corpus.prepare(settings);
    CHECK_FALSE(mended->summary().reused);
    CHECK(mended->hash() == changed->hash());
}

TEST_CASE("where the cache cannot be used the token file lies beside the run's folder", "[data]") {
    Corpus corpus;
    corpus.write("a.txt", "some text to train on");
    ::setenv("XDG_CACHE_HOME", write_file(corpus.folder / "file", "in the way").c_str(), 1);
    const auto set = corpus.prepare(settings_of({"a.txt"}));
    CHECK(set->summary().token_file == corpus.folder / "run.tokens.h5");
    CHECK(corpus.prepare(settings_of({"a.txt"}))->summary().reused);
}

TEST_CASE("a tokenizer is trained on the text and kept, and a tokenizer of a folder is used with its files", "[data]") {
    Corpus corpus;
    std::string text;
    for (int i = 0; i < 200; ++i) text += "the cat sat on the mat and the dog sat on the log. ";
    corpus.write("a.txt", text);
    auto settings = settings_of({"a.txt"});
    settings.tokenizer = "train:270";
    const auto set = corpus.prepare(settings);
    CHECK(set->vocabulary() == 270);
    CHECK(set->summary().training_tokens < static_cast<std::int64_t>(text.size()) / 2);
    CHECK(text_of(*set, Split::training) == text + "<|endoftext|>");
    CHECK(corpus.prepare(settings)->summary().reused);

    const auto folder = corpus.folder / "tokenizer";
    std::filesystem::create_directory(folder);
    for (const auto& file : set->tokenizer_files()) write_file(folder / file.name, file.content);
    settings.tokenizer = folder;
    const auto same = corpus.prepare(settings);
    CHECK(text_of(*same, Split::training) == text + "<|endoftext|>");
    CHECK(same->tokenizer_files().size() == set->tokenizer_files().size());
    settings.tokenizer = folder / "tokenizer.json";
    CHECK(corpus.prepare(settings)->vocabulary() == 270);
    // Nothing more to merge is no error: the vocabulary is what came out.
    corpus.write("tiny.txt", "aaaa aaaa");
    settings = settings_of({"tiny.txt"}, 1);
    settings.tokenizer = "train:5000";
    CHECK(corpus.prepare(settings)->vocabulary() < 270);
}

TEST_CASE("a vocabulary of one id makes tokens, windows and targets", "[data]") {
    Corpus corpus;
    corpus.write("a.txt", "x x x x x");
    const auto path = write_file(corpus.folder / "tokenizer.json",
                                 R"({"version": "1.0", "model": {"type": "WordLevel", "vocab": {"x": 0},
                                     "unk_token": "x"}, "pre_tokenizer": {"type": "WhitespaceSplit"}})");
    auto settings = settings_of({"a.txt"}, 2);
    settings.tokenizer = path;
    const auto set = corpus.prepare(settings);
    CHECK(set->vocabulary() == 1);
    CHECK(set->summary().training_tokens == 5);
    const auto batch = set->source(Split::training, 1)->read(0, 2);
    CHECK(batch.ids == std::vector<std::int64_t>(4, 0));
    CHECK(batch.targets == batch.ids);
}

TEST_CASE("a generator is a data set with a tokenizer of its pieces", "[data]") {
    Corpus corpus;
    DataSettings settings;
    settings.generator = data::GeneratorSettings{"markov", {{"symbols", 3}, {"order", 1}}};
    settings.sequence_length = 8;
    const auto set = corpus.prepare(settings);
    CHECK(set->vocabulary() == 3);
    CHECK(set->summary().entropies.size() == 2);
    CHECK(set->tokenizer().encode("c a b").ids == std::vector<std::int32_t>{2, 0, 1});
    CHECK(set->tokenizer().decode(std::vector<std::int32_t>{2, 0, 1}) == "c a b");
    CHECK(set->source(Split::training, 1)->read(0, 2).ids.size() == 16);
    CHECK(set->source(Split::validation, 1)->read(0, 2).ids == set->source(Split::validation, 2)->read(0, 2).ids);
    CHECK(set->source(Split::validation, 1)->read(0, 2).ids != set->source(Split::training, 0)->read(0, 2).ids);
    const std::string hash = set->hash();
    settings.generator->options["table"] = 1;
    CHECK(corpus.prepare(settings)->hash() != hash);
}

TEST_CASE("settings that cannot be are refused before anything is written", "[data]") {
    Corpus corpus;
    corpus.write("a.txt", "some text");
    corpus.write("empty.txt", "");
    corpus.write("blank.jsonl", "\n\n{\"text\": \"\"}\n");
    const auto refuses = [&](const DataSettings& settings, const std::string& what) {
        CHECK_THROWS_MATCHES(corpus.prepare(settings), Error, IsError(ErrorCode::usage, what));
    };
    refuses({}, "expected one of text, corpus and generator");
    auto settings = settings_of({"a.txt"});
    settings.corpus = "kjv";
    refuses(settings, "expected one of text, corpus and generator to train on; found 2");
    settings = settings_of({});
    settings.corpus = "kjw";
    refuses(settings, "(kjv?)");
    settings.corpus = "copy";
    refuses(settings, "which is for data.generator");
    settings = settings_of({"a.txt"}, 0);
    refuses(settings, "data.sequence_length");
    settings = settings_of({"a.txt"}, 10);
    refuses(settings, "expected at least 11 tokens to train on, one sequence and what follows it; found 10");
    CHECK(corpus.prepare(settings_of({"a.txt"}, 9))->source(Split::training, 1)->epoch() == 1);
    settings = settings_of({"a.txt"});
    settings.validation = 0.1;
    refuses(settings, "[data.validation] expected at least 5 tokens held out");
    settings.validation = 1;
    refuses(settings, "expected a share from 0 to less than 1");
    settings.validation = -0.1;
    refuses(settings, "expected a share");
    refuses(settings_of({"empty.txt"}), "expected text to train on; found none in");
    refuses(settings_of({"empty.txt", "blank.jsonl"}), "found none in 2 files");
    settings = settings_of({"a.txt"});
    settings.tokenizer = "byts";
    refuses(settings, "[data.tokenizer] expected \"bytes\", \"train:N\"");
    settings.tokenizer = "train:256";
    refuses(settings, "expected \"train:N\" with N from 257");
    settings.tokenizer = "train:2k";
    refuses(settings, "expected \"train:N\"");
}

TEST_CASE("a file that changes while it is read is noticed, and nothing is kept", "[data]") {
    Corpus corpus;
    const auto path = corpus.write("a.txt", "some text to train on");
    corpus.write("b.txt", "more of it");
    class Meddler final : public Progress {
    public:
        Meddler(std::filesystem::path path, std::string when, double after)
            : path_(std::move(path)), when_(std::move(when)), after_(after) {}
        void advance(double done, double, const std::string& what) override {
            if (what == when_ && done >= after_) write_file(path_, "some other text to train on");
        }

    private:
        std::filesystem::path path_;
        std::string when_;
        double after_;
    };
    const DataSettings settings = settings_of({"a.txt", "b.txt"});
    const auto prepare = [&](Meddler meddler) {
        write_file(path, "some text to train on");
        return data::DataSet::prepare(settings, {corpus.folder / "text", {}}, meddler, Cancellation());
    };
    // While it is hashed, between that and its reading, while it is read.
    for (const Meddler& meddler : {Meddler(path, "look at the text", 0), Meddler(path, "look at the text", 1),
                                   Meddler(path, "tokenise the text", 1)}) {
        CHECK_THROWS_MATCHES(prepare(meddler), Error, IsError(ErrorCode::mismatch, "a.txt"));
        const auto tokens = corpus.folder / "cache/headscope/tokens";
        CHECK((!std::filesystem::exists(tokens) || std::filesystem::is_empty(tokens)));
    }
}

TEST_CASE("preparing data stops when asked and leaves nothing half done", "[data]") {
    Corpus corpus;
    std::string text;
    while (text.size() < 8'000'000) text += "words and more words go on and on ";
    corpus.write("a.txt", text);
    Cancellation cancellation;
    class Stopper final : public Progress {
    public:
        explicit Stopper(Cancellation& flag) : flag_(flag) {}
        void advance(double done, double, const std::string& what) override {
            if (what == "tokenise the text" && done > 3'000'000) flag_.request();
        }

    private:
        Cancellation& flag_;
    } stopper(cancellation);
    const DataSettings settings = settings_of({"a.txt"});
    CHECK_THROWS_AS(data::DataSet::prepare(settings, {corpus.folder / "text", {}}, stopper, cancellation), Stopped);
    CHECK(std::filesystem::is_empty(corpus.folder / "cache/headscope/tokens"));
}
