// SPDX-License-Identifier: GPL-3.0-or-later
// Items with labels and translations: from files of many columns, and from generators.
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/data/batch/item_reader.h"
#include "core/data/catalog.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/data/corpus.h"
#include "tests/core/data/objective_settings.h"

using namespace headscope;
using namespace headscope::test;
using data::DataBatch;
using data::Split;

TEST_CASE("Translations are padded to the longest, and cut", "[data][objectives]") {
    Corpus corpus;
    corpus.write("a.jsonl",
                 "{\"source\": \"ab\", \"target\": \"xyz\"}\n\n{\"target\": \"\", \"source\": \"\", \"id\": [1, "
                 "{\"source\": 2}]}\n"
                 "{\"source\": \"a long source\", \"target\": \"a long target\"}\n");
    const auto settings = settings_of("translation", {"a.jsonl"}, 8);
    const auto set = corpus.prepare(settings);
    CHECK(set->separator() == 259);
    CHECK(set->summary().documents == 3);
    const auto source = set->source(Split::training, 4);
    REQUIRE(source->epoch() == 3);
    const DataBatch batch = source->read(0, 3);
    CHECK(batch.length == 8);
    CHECK(batch.target_length == 8);
    CHECK(batch.counted == 4 + 1 + 8);
    std::set<std::string> seen;
    for (std::int64_t i = 0; i < 3; ++i) {
        const auto at = i * batch.target_length;
        const auto length = batch.target_lengths[static_cast<std::size_t>(i)];
        const Ids reads(batch.target_ids.begin() + at, batch.target_ids.begin() + at + length);
        const Ids says(batch.targets.begin() + at, batch.targets.begin() + at + length);
        CHECK(reads.front() == 257);
        CHECK(says.back() == 259);
        CHECK(Ids(reads.begin() + 1, reads.end()) == Ids(says.begin(), says.end() - 1));
        if (length < 8) {
            CHECK(batch.targets[static_cast<std::size_t>(at + length)] == data::no_target);
            CHECK(batch.target_ids[static_cast<std::size_t>(at + length)] == 258);
        }
        seen.insert(bytes_of(row(batch.ids, batch, i)) + " " + bytes_of(says));
    }
    CHECK(seen == std::set<std::string>{"|ab| xyz|", "|| |", "|a long| a long |"});
    CHECK(source->read(3, 3).ids != batch.ids);  // another order
    // Alone, an item is as long as itself.
    for (std::int64_t i = 0; i < 3; ++i) CHECK(source->read(i, 1).length == batch.lengths[static_cast<std::size_t>(i)]);
    CHECK(corpus.prepare(settings)->summary().reused);
}

TEST_CASE("Other tokenizers have ends and masks of their own", "[data][objectives]") {
    Corpus corpus;
    corpus.write("a.jsonl", R"({"text": "a", "pair": "b b", "source": "a", "target": "b", "label": 1})");
    const auto read = [&](const std::string& objective, const std::string& vocabulary, const std::string& post) {
        corpus.write("t/tokenizer.json",
                     R"({"added_tokens": [], "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": )" + post +
                         R"(, "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1)" + vocabulary +
                         "}}}");
        corpus.write("t/tokenizer_config.json", R"({"mask_token": "[HOLE]"})");
        auto settings = settings_of(objective, {"a.jsonl"}, objective == "masked" ? 3 : 12);
        settings.tokenizer = "t";
        settings.objective.mask = 1;
        const auto set = corpus.prepare(settings);
        return std::pair(set, set->source(Split::training, 1)->read(0, 1));
    };
    const std::string bert = R"(, "[PAD]": 2, "[CLS]": 3, "[SEP]": 4, "[MASK]": 5, "[HOLE]": 6)";
    const std::string ends = R"({"type": "BertProcessing", "sep": ["[SEP]", 4], "cls": ["[CLS]", 3]})";
    CHECK(read("classify", bert, ends).second.ids == Ids{3, 0, 4, 1, 1, 4});
    const auto [masked, batch] = read("masked", bert, ends);
    CHECK(batch.ids.front() == 3);
    CHECK(batch.ids.back() == 4);
    CHECK(batch.targets == Ids{-1, 0, -1});
    CHECK(masked->special().mask == 6);
    CHECK(masked->special().padding == 2);
    // Marian's manner: nothing begins a text, <pad> what the decoder reads.
    const auto [translation, both] = read("translation", R"(, "</s>": 2, "<pad>": 3)", "null");
    CHECK(both.ids == Ids{0, 2});
    CHECK(both.target_ids == Ids{3, 1});
    CHECK(both.targets == Ids{1, 2});
    CHECK(translation->special().first == 3);
}

TEST_CASE("Items are held out whole", "[data][objectives]") {
    Corpus corpus;
    std::string lines;
    for (int i = 0; i < 10; ++i)
        lines += "{\"text\": \"" + std::string(i == 6 || i == 7 ? 0U : 2U, static_cast<char>('a' + i)) +
                 "\", \"label\": " + std::to_string(i % 2) + "}\n";
    corpus.write("a.jsonl", lines);
    auto settings = settings_of("classify", {"a.jsonl"}, 8);
    settings.validation = 0.25;
    const auto set = corpus.prepare(settings);
    CHECK(set->source(Split::training, 1)->epoch() == 8 - 2);  // those without text where the parts meet are held out
    CHECK(set->source(Split::validation, 1)->epoch() == 2 + 2);
    settings.validation = 0;
    CHECK(corpus.prepare(settings)->source(Split::training, 1)->epoch() == 10);
    CHECK(corpus.prepare(settings)->source(Split::validation, 1) == nullptr);
    corpus.write("b.jsonl", "{\"text\": \"z\", \"label\": 0}");
    settings.validation_files = {"b.jsonl"};
    CHECK(corpus.prepare(settings)->source(Split::validation, 1)->epoch() == 1);
}

TEST_CASE("Texts and pairs have their ends, and the longer text of a pair is cut first", "[data][objectives]") {
    Corpus corpus;
    const auto read = [&](const std::string& line, std::int64_t classes = 2) {
        corpus.write("a.jsonl", line);
        auto settings = settings_of("classify", {"a.jsonl"}, 12);
        settings.objective.classes = classes;
        return corpus.prepare(settings)->source(Split::training, 1)->read(0, 1);
    };
    const auto text = [&](const std::string& line) { return bytes_of(read(line).ids); };
    CHECK(text(R"({"text": "ab", "label": 1})") == "|ab|");
    CHECK(text(R"({"text": "abcdefghijklmno", "label": 1})") == "|abcdefghij|");
    CHECK(text(R"({"text": "ab", "pair": "xy", "label": 1})") == "|ab||xy|");
    CHECK(text(R"({"text": "ab", "pair": "", "label": 1})") == "|ab|||");
    CHECK(text(R"({"text": "abcdefgh", "pair": "xy", "label": 1})") == "|abcdef||xy|");
    CHECK(text(R"({"text": "ab", "pair": "stuvwxyz", "label": 1})") == "|ab||stuvwx|");
    CHECK(text(R"({"text": "abcdefgh", "pair": "stuvwxyz", "label": 1})") == "|abcd||stuv|");
    const DataBatch batch = read(R"({"text": "ab", "label": 1})");
    CHECK(batch.targets == Ids{1});
    CHECK(batch.values.empty());
    CHECK(batch.counted == 1);
    const DataBatch number = read(R"({"sentence1": "ab", "sentence2": "c", "label": 3.25, "idx": 7})", 1);
    CHECK(number.targets.empty());
    CHECK(number.values == std::vector<float>{3.25F});
}

TEST_CASE("Columns of GLUE and SuperGLUE are found by their names", "[data][objectives]") {
    Corpus corpus;
    data::ObjectiveSettings objective;
    objective.kind = "classify";
    const auto read = [&](const std::string& line) {
        std::string all;
        const auto path = corpus.write("a.jsonl", line + "\n");
        data::read_items(
            InputFile(path), data::SourceKind::json_lines, objective,
            [&](const data::TextItem& item) { all += item.text + (item.has_other ? "|" + item.other : ""); },
            [](std::uint64_t) {});
        return all;
    };
    CHECK(read(R"({"sentence": "a", "label": 1, "idx": 0})") == "a");
    CHECK(read(R"({"sentence": "a", "label": 1.0})") == "a");  // as tables with gaps are exported
    CHECK(read(R"({"sentence1": "a", "sentence2": "b", "label": 1})") == "a|b");
    CHECK(read(R"({"question1": "a", "question2": "b", "label": 1})") == "a|b");
    CHECK(read(R"({"premise": "a", "hypothesis": "b", "label": 1})") == "a|b");
    CHECK(read(R"({"question": "a", "sentence": "b", "label": 1})") == "a|b");
    CHECK(read(R"({"question": "b", "passage": "a", "idx": {"p": 1}, "label": 1})") == "a|b");
    CHECK(read(R"({"paragraph": "a", "question": "b", "answer": "c", "label": 1})") == "a|b c");
    CHECK(read(R"({"word": "w", "sentence1": "a", "sentence2": "b", "start1": 0, "label": 1})") == "w a|b");
    CHECK(read(R"({"text": "a", "span1_index": 0, "span1_text": "b", "span2_text": "c", "label": 1})") == "a|b c");
    CHECK(read(R"({"premise": "a", "choice1": "c", "choice2": "d", "question": "cause", "label": 1})") ==
          "a cause|c d");

    const auto refuses = [&](const std::string& line, const std::string& what) {
        CHECK_THROWS_MATCHES(read("{\"text\": \"a\", \"label\": 0}\n" + line), Error, IsError(ErrorCode::format, what));
    };
    refuses(R"({"text": "a"})", "a.jsonl:2] expected a whole number from 0 to 1 for \"label\"; found \"text\"");
    refuses(R"({"text": "a", "label": "yes"})", "found \"yes\"; give each class its number");
    refuses(R"({"text": "a", "label": 2})", "found 2");
    refuses(R"({"text": "a", "label": -1})", "kept secret");
    refuses(R"({"text": "a", "label": 0.5})", "found 0.5");
    refuses(R"({"text": "a", "label": true})", "found a truth value");
    refuses(R"({"text": 3, "label": 1})", "expected a string for \"text\"; found a number");
    refuses(R"({"body": "a", "label": 1})", "a.jsonl:2] expected a \"text\", or the columns");
    refuses(R"(["text"])", "expected an object; found an array");
    refuses(R"({"text": "a", "text": "b", "label": 1})", "expected one \"text\"");
    refuses(R"({"text": "a", "label": 1)", "a.jsonl:2]");
    objective.kind = "translation";
    CHECK_THROWS_MATCHES(
        read(R"({"source": "a"})"), Error,
        IsError(ErrorCode::format, "a.jsonl:1] expected a \"source\" and a \"target\"; found \"source\""));
}

TEST_CASE("The translation generator holds numbers out and says both languages", "[data][objectives]") {
    const data::Generator generator = data::make_generator({"translation", {{"digits", 2}}}, 16);
    const std::set<std::string> known(generator.pieces.begin(), generator.pieces.end());
    CHECK(known.size() == generator.pieces.size());
    std::set<std::string> training, held_out;
    for (std::int64_t i = 0; i < 2000; ++i) {
        training.insert(generator.item(Split::training, 1, i).text);
        held_out.insert(generator.item(Split::validation, 0, i).text);
    }
    CHECK(training.size() + held_out.size() == 100);
    CHECK(held_out.size() >= 5);
    for (const std::string& text : held_out) CHECK(training.count(text) == 0);
    const auto long_one = data::make_generator({"translation", {{"digits", 6}}}, 16);
    std::set<std::string> targets;
    for (std::int64_t i = 0; i < 200; ++i) {
        const data::TextItem item = long_one.item(Split::training, 1, i);
        CHECK(item.has_other);
        CHECK(targets.insert(item.other).second == true);
    }

    Corpus corpus;
    const auto set = corpus.prepare(generated("translation", "translation", 32));
    CHECK(set->vocabulary() == 36 + 5);
    const auto source = set->source(Split::training, 1);
    CHECK(source->epoch() == 0);
    const DataBatch batch = source->read(5, 3);
    CHECK(source->read(6, 1).target_ids ==
          Ids(batch.target_ids.begin() + batch.target_length,
              batch.target_ids.begin() + batch.target_length + batch.target_lengths.at(1)));
    for (const std::int64_t id : batch.ids) CHECK(id < set->vocabulary());
    CHECK(batch.ids.front() == 36);
    CHECK_THROWS_MATCHES(corpus.prepare(generated("classify", "translation", 32)), Error,
                         IsError(ErrorCode::usage, "found translation, which makes translations"));
    CHECK_THROWS_MATCHES(corpus.prepare(generated("classify", "markov", 32)), Error,
                         IsError(ErrorCode::usage, "found markov, which makes none"));
}

TEST_CASE("The agreement generator judges sentences, read as its words, as hashes and as bytes", "[data][objectives]") {
    const data::Generator generator = data::make_generator({"agreement", {{"endings", 3}}}, 16);
    std::int64_t agreeing = 0;
    for (std::int64_t i = 0; i < 400; ++i) {
        const std::string text = generator.item(Split::training, 1, i).text;
        std::map<char, int> endings;
        for (std::size_t at = 3; at < text.size(); at += 5) ++endings[text[at]];
        const bool agrees = generator.item(Split::training, 1, i).label == 1;
        agreeing += agrees ? 1 : 0;
        REQUIRE(endings.size() == (agrees ? 1U : 2U));
    }
    CHECK(agreeing > 150);
    CHECK(agreeing < 250);
    // Stems of one and of two syllables are all different words.
    const auto many = data::make_generator({"agreement", {{"stems", 1332}, {"endings", 4}}}, 16).pieces;
    CHECK(std::set(many.begin(), many.end()).size() == 1 + 1332 * 4);

    Corpus corpus;
    auto settings = generated("classify", "agreement", 32);
    const auto own = corpus.prepare(settings);
    CHECK(own->vocabulary() == 1 + 12 * 2 + 5);
    const DataBatch batch = own->source(Split::training, 1)->read(0, 8);
    CHECK(batch.targets.size() == 8);
    // The same vocabulary is learnt from before.
    settings.objective.kind = "masked";
    const auto before = corpus.prepare(settings);
    CHECK(before->tokenizer_files().at(0).content == own->tokenizer_files().at(0).content);
    CHECK(before->source(Split::training, 1)->read(0, 2).length == 32);

    settings.objective.kind = "classify";
    NoProgress progress;
    const auto with = words(tokenizer::EmbeddingKind::add, 128);
    const auto hashed = data::DataSet::prepare(settings, {corpus.folder / "text", {}}, progress, Cancellation(), &with);
    const DataBatch bits = hashed->source(Split::training, 1)->read(0, 8);
    CHECK(bits.targets == batch.targets);
    CHECK(bits.lengths == batch.lengths);
    CHECK(bits.bits.size() == static_cast<std::size_t>(8 * bits.length * 128));
    settings.objective.kind = "shuffle_random";
    const auto spoilt = data::DataSet::prepare(settings, {corpus.folder / "text", {}}, progress, Cancellation(), &with);
    CHECK(spoilt->source(Split::training, 1)->read(0, 2).bits.size() == 2 * 32 * 128);

    corpus.write("t.json", own->tokenizer_files().at(0).content);
    settings.objective.kind = "classify";
    settings.tokenizer = "t.json";
    CHECK(corpus.prepare(settings)->source(Split::training, 1)->read(0, 8).ids == batch.ids);
    settings.tokenizer = "train:300";
    CHECK_THROWS_MATCHES(corpus.prepare(settings), Error, IsError(ErrorCode::usage, "found train:300"));
}
