// SPDX-License-Identifier: GPL-3.0-or-later
// Pairs as training and evaluation read them, against the tokenizers library (tests/oracle/generate/truncation.py).
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/data/batch/item_source.h"
#include "core/data/batch/objective_reader.h"
#include "core/data/batch/truncation.h"
#include "core/data/special_tokens.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/data/corpus.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using nlohmann::json;
using test::IsError;
using Ids = std::vector<std::int64_t>;

namespace {

json golden() {
    std::ifstream file(test::golden_file("tokenizer/truncation.json"));
    return json::parse(file);
}

data::ChosenTokenizer tokenizer_with(const json& document, const json& settings) {
    return data::tokenizer_from(document.dump(), settings.dump(), "test");
}

data::DataSettings classes_of(std::int64_t length) {
    data::DataSettings settings;
    settings.objective.kind = "classify";
    settings.sequence_length = length;
    return settings;
}

data::DataBatch read(const data::ChosenTokenizer& tokenizer, const std::vector<data::TextItem>& items,
                     std::int64_t length) {
    const data::ObjectiveReader reader(classes_of(length), tokenizer);
    const auto source = reader.source(
        data::made_items([&](std::int64_t i) { return items[static_cast<std::size_t>(i)]; }, reader.code()));
    return source->read(0, std::ssize(items));
}

}  // namespace

TEST_CASE("Two texts are cut as longest_first cuts them, in every room", "[data][pairs]") {
    const json data = golden();
    for (const json& one : data.at("lengths")) {
        const auto numbers = one.get<Ids>();
        INFO(one.dump());
        const auto [first, second] = data::longest_first(numbers[0], numbers[1], numbers[2]);
        CHECK(first == numbers[3]);
        CHECK(second == numbers[4]);
    }
}

TEST_CASE("Pairs have the library's ids and types, cut on the side that the files name", "[data][pairs]") {
    const json data = golden();
    for (const json& one : data.at("pairs")) {
        INFO(one.dump());
        const bool pair = one.at("pair").is_string();
        const data::TextItem item{one.at("text"), pair ? one.at("pair").get<std::string>() : "", pair, 0};
        const json typed = {{"tokenizer_class", "BertTokenizer"}, {"truncation_side", one.at("side")}};
        const auto batch = read(tokenizer_with(data.at("tokenizer"), typed), {item}, one.at("length"));
        CHECK(batch.ids == one.at("ids").get<Ids>());
        CHECK((pair ? batch.types : Ids(batch.ids.size(), 0)) == one.at("types").get<Ids>());
        const std::size_t whole = (item.text.size() + 1) / 2 + (item.other.size() + 1) / 2 + (pair ? 3 : 2);
        CHECK(batch.cut == (batch.ids.size() < whole ? 1 : 0));
        // The same side, as tokenizer.json has it; without a class that gives types there are none.
        json document = data.at("tokenizer");
        document["truncation"] = {{"direction", one.at("side") == "left" ? "Left" : "Right"},
                                  {"max_length", 3},
                                  {"strategy", "OnlyFirst"},
                                  {"stride", 0}};
        const auto plain = read(tokenizer_with(document, json::object()), {item}, one.at("length"));
        CHECK(plain.ids == batch.ids);
        CHECK(plain.types.empty());
    }
}

TEST_CASE("A batch of texts and pairs is padded with type 0, and counts what was cut", "[data][pairs]") {
    const auto tokenizer = tokenizer_with(golden().at("tokenizer"), {{"model_input_names", {"token_type_ids"}}});
    const auto batch =
        read(tokenizer, {{"a b", "c", true, 0}, {"a", "", false, 1}, {"a b c d e f g", "", false, 1}}, 7);
    CHECK(batch.ids == Ids{2, 5, 6, 3, 7, 3, 0, 2, 5, 3, 0, 0, 0, 0, 2, 5, 6, 7, 8, 9, 3});
    CHECK(batch.types == Ids{0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    CHECK(batch.lengths == Ids{6, 3, 7});
    CHECK(batch.cut == 1);
}

TEST_CASE("A template may put the second text first; one that repeats a text is refused", "[data][pairs]") {
    json document = golden().at("tokenizer");
    const auto text = [](const char* name, int type) { return json{{"Sequence", {{"id", name}, {"type_id", type}}}}; };
    const json end = {{"SpecialToken", {{"id", "[SEP]"}, {"type_id", 3}}}};
    document["post_processor"]["pair"] = {text("B", 2), end, text("A", 1)};
    const json typed = {{"model_input_names", {"input_ids", "token_type_ids"}}};
    const auto batch = read(tokenizer_with(document, typed), {{"a b c", "d e", true, 0}}, 5);
    CHECK(batch.ids == Ids{8, 9, 3, 5, 6});
    CHECK(batch.types == Ids{2, 2, 3, 1, 1});
    document["post_processor"]["pair"] = {text("A", 0), text("B", 1), text("A", 0)};
    CHECK_THROWS_MATCHES(read(tokenizer_with(document, typed), {{"a", "b", true, 0}}, 5), Error,
                         IsError(ErrorCode::usage, "whose post_processor repeats a text"));
}

TEST_CASE("A truncation side that is none is refused by its key", "[data][pairs]") {
    CHECK_THROWS_MATCHES(data::keeps_the_end({{"tokenizer_config.json", R"({"truncation_side": "middle"})"}}), Error,
                         IsError(ErrorCode::format, "tokenizer_config.json: truncation_side] expected right or left"));
    CHECK_FALSE(data::keeps_the_end({{"tokenizer_config.json", "{}"}, {"tokenizer.json", R"({"truncation": null})"}}));
}

TEST_CASE("Stored items keep the end of a text where the files say so", "[data][pairs]") {
    const json data = golden();
    for (const char* side : {"right", "left"}) {
        test::Corpus corpus;
        corpus.write("t/tokenizer.json", data.at("tokenizer").dump());
        corpus.write("t/tokenizer_config.json",
                     json{{"tokenizer_class", "BertTokenizer"}, {"truncation_side", side}}.dump());
        corpus.write("a.jsonl", R"({"text": "a b c d e f g h i", "pair": "j k l m n o p q r", "label": 1})");
        auto settings = classes_of(10);
        settings.text = {"a.jsonl"};
        settings.tokenizer = "t";
        settings.validation = 0;
        const auto set = corpus.prepare(settings);
        const auto batch = set->source(data::Split::training, 1)->read(0, 1);
        const auto wanted = std::string(side) == "left" ? Ids{2, 11, 12, 13, 3, 19, 20, 21, 22, 3}
                                                        : Ids{2, 5, 6, 7, 3, 14, 15, 16, 17, 3};
        CHECK(batch.ids == wanted);
        CHECK(batch.types == Ids{0, 0, 0, 0, 0, 1, 1, 1, 1, 1});
    }
}
