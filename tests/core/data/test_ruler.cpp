// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/data/ruler/ruler.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/data/corpus.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::test;
using namespace headscope::data;

namespace {

std::shared_ptr<const Essays> essays() {
    Essays made{"made", {}};
    for (int i = 0; i < 300; ++i) made.sentences.push_back("Sentence " + std::to_string(i) + " says nothing.");
    return std::make_shared<const Essays>(made);
}

std::vector<std::string> lines_of(const std::string& text, char end = '\n') {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line, end);) lines.push_back(line);
    return lines;
}

std::int64_t count(const std::string& text, const std::string& part) {
    std::int64_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

/// Tokens of a tokenizer that takes three bytes for one.
std::int64_t thirds(const std::string& text) {
    return (std::ssize(text) + 2) / 3;
}

RulerMaker maker(const std::string& task, std::int64_t length, std::uint64_t seed = 1) {
    return {*find_ruler_task(task), length, seed, essays(), thirds};
}

}  // namespace

TEST_CASE("Words are adjectives and nouns, many, and none is both", "[ruler]") {
    std::set<std::string> all;
    for (const auto* words : {&ruler_adjectives(), &ruler_nouns()}) {
        CHECK(words->size() >= 500);
        for (const std::string& word : *words) {
            CHECK(all.insert(word).second);
            CHECK(std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; }));
        }
    }
}

TEST_CASE("Sentences end where white space follows their end, and are whole", "[ruler]") {
    CHECK(sentences_of("One  is\nshort. \"Is two?\" Yes (it is.) 3.5 and no end") ==
          std::vector<std::string>{"One is short.", "\"Is two?\"", "Yes (it is.)", "3.5 and no end"});
    CHECK(sentences_of(" \n ").empty());
}

TEST_CASE("Essays are read of files, and of no text none", "[ruler]") {
    Corpus corpus;
    const auto path = corpus.write("a.txt", "First one. Second one.");
    CHECK(read_essays({{path, SourceKind::text}}, "a.txt", 1000).sentences.size() == 2);
    const auto blank = corpus.write("b.txt", "  \n");
    CHECK_THROWS_MATCHES(read_essays({{blank, SourceKind::text}}, "b.txt", 1000), Error,
                         IsError(ErrorCode::usage, "--haystack"));
}

TEST_CASE("As many units as fit are found from any first guess", "[ruler]") {
    struct Bytes final : RulerDraw {
        RulerText text(std::int64_t units) const override {
            return {std::string(static_cast<std::size_t>(units), 'x'), "", {}};
        }
        std::int64_t least() const override { return 3; }
        std::int64_t most() const override { return 500; }
    } draw;
    for (const std::int64_t room : {3, 4, 17, 100, 499, 500, 900})
        for (const std::int64_t hint : {0, 3, 16, 17, 18, 450, 10000})
            CHECK(most_units(draw, hint, [&](const RulerText& text) { return std::ssize(text.input) <= room; }) ==
                  std::min<std::int64_t>(room, 500));
    CHECK(most_units(draw, 40, [](const RulerText& text) { return text.input.size() <= 2; }) == -1);
}

TEST_CASE("Made items are full, of their length, and a function of seed, length and number", "[ruler]") {
    for (const RulerTask& task : ruler_tasks()) {
        for (const std::int64_t length : {2048, 4500}) {
            INFO(task.name << " at " << length);
            const auto made = maker(task.name, length);
            const RulerItem item = made.item(7);
            CHECK(item.index == 7);
            CHECK(item.max_length == length);
            const std::int64_t tokens = thirds(ruler_prompt(task, item.input, item.gen_prefix)) + task.answer_tokens;
            CHECK(item.length == tokens);
            CHECK(tokens <= length);
            // A unit is a line at most, and of frequent words one word of each rank that has room for it.
            CHECK(tokens > length - 70);
            CHECK(item.gen_prefix.back() != ' ');
            const RulerItem again = maker(task.name, length).item(7);
            CHECK(again.input == item.input);
            CHECK(again.outputs == item.outputs);
            CHECK(maker(task.name, length).item(8).input != item.input);
            CHECK(maker(task.name, length, 2).item(7).input != item.input);
            CHECK(maker(task.name, length + 1).item(7).outputs != item.outputs);
            if (std::string(task.name) == "ruler_cwe" || std::string(task.name) == "ruler_fwe") continue;
            for (const std::string& output : item.outputs) CHECK(item.input.find(output) != std::string::npos);
        }
    }
}

TEST_CASE("Items are those that Python makes by the same definitions", "[ruler]") {
    std::ifstream file(test::golden_file("ruler_items.json"));
    const auto golden = nlohmann::json::parse(file);
    CHECK(golden.size() == ruler_tasks().size());
    for (const auto& wanted : golden) {
        const std::string task = wanted.at("task");
        INFO(task);
        const RulerItem item =
            maker(task, wanted.at("max_length"), wanted.at("seed").get<std::uint64_t>()).item(wanted.at("index"));
        CHECK(item.input == wanted.at("input"));
        CHECK(item.gen_prefix == wanted.at("gen_prefix"));
        CHECK(item.outputs == wanted.at("outputs").get<std::vector<std::string>>());
        CHECK(item.length == wanted.at("length"));
    }
}

TEST_CASE("Too short a length is refused with what is needed", "[ruler]") {
    for (const RulerTask& task : ruler_tasks()) {
        CHECK_THROWS_MATCHES(maker(task.name, task.answer_tokens + 20), Error,
                             IsError(ErrorCode::limit, "expected a length of at least"));
    }
}

TEST_CASE("Items end with a tokenizer to which any text is one token", "[ruler]") {
    for (const RulerTask& task : ruler_tasks()) {
        INFO(task.name);
        const RulerMaker made(task, 200, 1, essays(), [](const std::string&) { return std::int64_t{1}; });
        CHECK(made.item(1).input.size() <= 200 * 1024);
    }
}

TEST_CASE("A needle says what is asked, once, anywhere in the lines", "[ruler]") {
    std::set<std::int64_t> places;
    for (std::int64_t i = 0; i < 200; ++i) {
        Random random(5, static_cast<std::uint64_t>(i));
        const auto draw = draw_niah({}, nullptr, random);
        const RulerText text = draw->text(9);
        const auto lines = lines_of(text.input);
        REQUIRE(lines.size() == 1 + 10 + 1);
        CHECK(lines.front().starts_with("A special magic number is hidden within the following text."));
        REQUIRE(text.outputs.size() == 1);
        CHECK(text.outputs[0].size() == 7);
        CHECK(text.outputs[0][0] != '0');
        for (std::size_t line = 1; line <= 10; ++line) {
            if (lines[line].find(text.outputs[0]) == std::string::npos) {
                CHECK(lines[line].starts_with("The grass is green."));
                continue;
            }
            CHECK(lines[line].starts_with("One of the special magic numbers for "));
            places.insert(static_cast<std::int64_t>(line));
        }
        CHECK(count(text.input, text.outputs[0]) == 1);
        CHECK(text.gen_prefix.starts_with("The special magic number for "));
        CHECK(text.gen_prefix.ends_with(" mentioned in the provided text is"));
        // The same needle with more hay.
        CHECK(draw->text(20).outputs == text.outputs);
        CHECK(draw->text(20).gen_prefix == text.gen_prefix);
    }
    CHECK(places.size() == 10);  // the begin and the end, too
}

TEST_CASE("Several needles stand at different depths of 39ths between sentences", "[ruler]") {
    NiahShape shape;
    shape.hay = RulerHay::essays;
    shape.values_each = 4;
    for (std::uint64_t i = 0; i < 20; ++i) {
        Random random(6, i);
        const RulerText text = draw_niah(shape, essays(), random)->text(78);
        REQUIRE(text.outputs.size() == 4);
        CHECK(std::set<std::string>(text.outputs.begin(), text.outputs.end()).size() == 4);
        CHECK(text.gen_prefix.ends_with(" are"));
        CHECK(text.input.find("Some special magic numbers are hidden") == 0);
        std::set<std::int64_t> before;
        for (const std::string& output : text.outputs) {
            const std::string part = text.input.substr(0, text.input.find(output));
            const std::int64_t sentences = count(part, "says nothing.");
            CHECK(sentences % 2 == 0);  // 78 sentences: each of the 40 depths is an even number of them
            CHECK(before.insert(sentences).second);
            CHECK(count(text.input, output) == 1);
        }
        CHECK(count(text.input, "says nothing.") == 78);
    }
}

TEST_CASE("Four keys are asked for, each with its own value", "[ruler]") {
    NiahShape shape;
    shape.hay = RulerHay::essays;
    shape.key_count = shape.asked = 4;
    Random random(7, 1);
    const RulerText text = draw_niah(shape, essays(), random)->text(50);
    const std::string asked = text.gen_prefix.substr(std::string("The special magic numbers for ").size());
    const auto keys = lines_of(asked.substr(0, asked.find(" mentioned")), ',');
    REQUIRE(keys.size() == 4);
    CHECK(keys[3].starts_with(" and "));
    for (std::size_t i = 0; i < 4; ++i) {
        const std::string key = keys[i].substr(i == 0 ? 0 : i < 3 ? 1 : 5);
        CHECK(text.input.find("numbers for " + key + " is: " + text.outputs[i] + ".") != std::string::npos);
    }
}

TEST_CASE("Hay of needles has other keys, UUIDs of version 4 where they are asked", "[ruler]") {
    NiahShape shape;
    shape.hay = RulerHay::needles;
    shape.keys = shape.values = RulerWord::uuids;
    Random random(8, 1);
    const RulerText text = draw_niah(shape, nullptr, random)->text(30);
    const auto lines = lines_of(text.input);
    REQUIRE(lines.size() == 1 + 31 + 1);
    std::set<std::string> keys;
    for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
        const std::string begin = "One of the special magic uuids for ";
        REQUIRE(lines[i].starts_with(begin));
        const std::string key = lines[i].substr(begin.size(), 36);
        CHECK(key[14] == '4');
        CHECK(std::string("89ab").find(key[19]) != std::string::npos);
        for (const std::size_t dash : {8, 13, 18, 23}) CHECK(key[dash] == '-');
        CHECK(keys.insert(key).second);
    }
    CHECK(text.gen_prefix.find("The special magic uuid for ") == 0);
}

TEST_CASE("A chain of variables can be followed from its value, and an example stands before it", "[ruler]") {
    TracingShape shape;
    shape.example_lines = 5;
    Random random(9, 1);
    const RulerText text = draw_tracing(shape, random)->text(12);
    REQUIRE(text.outputs.size() == 5);
    std::size_t at = text.input.rfind("Memorize and track");
    REQUIRE(at > 0);
    for (std::size_t i = 0; i < 5; ++i) {
        CHECK(text.outputs[i].size() == 5);
        const std::string statement = "VAR " + text.outputs[i] + " = " + (i == 0 ? "" : "VAR " + text.outputs[i - 1]);
        at = text.input.find(statement, at);
        REQUIRE(at != std::string::npos);  // in their order
    }
    const std::string value = text.gen_prefix.substr(text.gen_prefix.find("the value ") + 10, 5);
    CHECK(text.input.find("VAR " + text.outputs[0] + " = " + value) != std::string::npos);
    CHECK(count(text.input, "The grass is green.") == 5 + 12);
    CHECK(count(text.input, "they are:  ") == 1);
}

TEST_CASE("The common words of a list are those that are asked for", "[ruler]") {
    for (const std::int64_t units : {0, 5, 2000}) {  // the last: more than there are single words
        Random random(10, static_cast<std::uint64_t>(units));
        const RulerText text = draw_common_words({10, 6, 2}, random)->text(units);
        std::map<std::string, int> found;
        std::istringstream words(lines_of(text.input)[1]);
        int number = 0;
        for (std::string label, word; words >> label >> word; ++found[word])
            CHECK(label == std::to_string(++number) + ".");
        CHECK(std::ssize(found) == 10 + units);
        for (const auto& [word, times] : found) {
            const bool common = std::find(text.outputs.begin(), text.outputs.end(), word) != text.outputs.end();
            CHECK(times == (common ? 6 : 2));
        }
    }
}

TEST_CASE("Coded words are as frequent as their ranks say, and a longer text has more of each", "[ruler]") {
    Random random(11, 1);
    const auto draw = draw_frequent_words(30, random);
    std::map<std::string, int> last;
    for (const std::int64_t units : {draw->least(), std::int64_t{400}, std::int64_t{4000}}) {
        const RulerText text = draw->text(units);
        std::map<std::string, int> found;
        std::istringstream words(
            text.input.substr(text.input.find("coded words. ") + 13,
                              text.input.find("\nQuestion") - text.input.find("coded words. ") - 13));
        for (std::string word; words >> word;) ++found[word];
        REQUIRE(text.outputs.size() == 3);
        for (const auto& [word, times] : last) CHECK(found[word] >= times);
        int least = 1 << 30;
        for (const std::string& output : text.outputs) least = std::min(least, found[output]);
        for (const auto& [word, times] : found) {
            const bool asked = std::find(text.outputs.begin(), text.outputs.end(), word) != text.outputs.end();
            if (!asked && word != "...") CHECK(times < least);
        }
        CHECK(found["..."] == static_cast<int>(static_cast<double>(units) * 6 / (3.14159265358979 * 3.14159265358979)));
        last = found;
    }
}

TEST_CASE("Answers are scored by the share of what they contain, letter case aside", "[ruler]") {
    CHECK(ruler_score(" 1234567.", {"1234567"}) == 1);
    CHECK(ruler_score("123456", {"1234567"}) == 0);
    CHECK(ruler_score("abc, DEF and\x01ghi", {"ABC", "def", "GHI", "jkl"}) == 0.75);
    CHECK(ruler_score("\u00c4pfel", {"\u00e4PFEL"}) == 1);
    CHECK(ruler_score("", {"a", "b"}) == 0);
    CHECK(ruler_score("anything", {}) == 0);
}

TEST_CASE("The prefix stands behind the question with the white space that there should be", "[ruler]") {
    const RulerTask &niah = *find_ruler_task("niah_single_1"), &cwe = *find_ruler_task("ruler_cwe");
    CHECK(ruler_prompt(niah, "Q?", "A is") == "Q? A is");
    CHECK(ruler_prompt(niah, "Q?\n", "A is") == "Q?\nA is");
    CHECK(ruler_prompt(niah, "Q?", " A is") == "Q? A is");
    CHECK(ruler_prompt(niah, "Q?", "") == "Q?");
    CHECK(ruler_prompt(cwe, "Q?", "A:") == "Q?\n\nA:");
    CHECK(ruler_prompt(cwe, "Q?", " A:") == "Q? A:");
    CHECK(ruler_prompt(cwe, "", "A:") == "A:");
    CHECK(find_ruler_task("ruler_retrieval") == nullptr);
    CHECK(std::count_if(ruler_tasks().begin(), ruler_tasks().end(), [](const auto& t) { return t.retrieval; }) == 8);
}
