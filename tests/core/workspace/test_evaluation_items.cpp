// SPDX-License-Identifier: GPL-3.0-or-later
// Items of evaluations as a list shows them.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/base/error.h"
#include "core/workspace/evaluation_items.h"

using namespace headscope;
using namespace headscope::workspace;

namespace {

store::EvaluatedItem item(std::int64_t model, const char* task, std::int64_t number, std::int64_t chosen, bool right,
                          std::int64_t length = 64) {
    store::EvaluatedItem one;
    one.model = model;
    one.task = task;
    one.length = length;
    one.item = number;
    one.gold = 1;
    one.chosen = chosen;
    one.right = right;
    return one;
}

/// Two models on copa, the second at another length and without item 2, one of them on fda too.
const std::vector<store::EvaluatedItem> kItems{item(0, "copa", 0, 1, true),       item(0, "copa", 1, 0, false),
                                               item(0, "copa", 2, 0, false),      item(0, "copa", 3, 2, false),
                                               item(1, "copa", 0, 1, true, 128),  item(1, "copa", 1, 1, true, 128),
                                               item(1, "copa", 3, 0, false, 128), item(1, "fda", 0, -1, false)};

std::vector<std::int64_t> rows(const ItemsRequest& wish) {
    std::vector<std::int64_t> all;
    for (const auto& one : shown_items(kItems, wish)) all.push_back(one.row);
    return all;
}

}  // namespace

TEST_CASE("Items are counted by model, task and length", "[items]") {
    const auto groups = item_groups(kItems);
    REQUIRE(groups.size() == 3);
    CHECK(groups[0].key == ItemsKey{0, "copa", 64, 0});
    CHECK(groups[0].count == 4);
    CHECK(groups[0].wrong == 3);
    CHECK(groups[1].key == ItemsKey{1, "copa", 128, 0});
    CHECK(groups[1].wrong == 1);
    CHECK(groups[2].key == ItemsKey{1, "fda", 64, 0});
    CHECK(items_of_others(groups, groups[0].key) == std::vector<ItemsKey>{groups[1].key});
    CHECK(items_of_others(groups, groups[2].key).empty());
    CHECK(item_groups({}).empty());
    // Items of its own length first.
    auto more = groups;
    more.push_back({{2, "copa", 64, 0}, 1, 1});
    more.push_back({{3, "copa", 64, 5}, 1, 1});
    CHECK(items_of_others(more, groups[0].key) == std::vector<ItemsKey>{{2, "copa", 64, 0}, groups[1].key});
}

TEST_CASE("A list shows all items, wrong ones, or those that models disagree about", "[items]") {
    const ItemsKey first{0, "copa", 64, 0}, second{1, "copa", 128, 0};
    CHECK(rows({first, {}, false, false}) == std::vector<std::int64_t>{0, 1, 2, 3});
    CHECK(rows({first, {}, true, false}) == std::vector<std::int64_t>{1, 2, 3});
    CHECK(rows({second, {}, true, false}) == std::vector<std::int64_t>{6});
    CHECK(rows({first, second, false, true}) == std::vector<std::int64_t>{1, 3});  // both wrong, in other ways
    CHECK(rows({second, first, true, true}) == std::vector<std::int64_t>{6});
    CHECK(rows({first, {}, false, true}).empty());  // with no partner
    CHECK(rows({{0, "fda", 64, 0}, {}, false, false}).empty());
    const auto shown = shown_items(kItems, {first, second, false, false});
    CHECK(shown == std::vector<ShownItem>{{0, 4}, {1, 5}, {2, -1}, {3, 6}});
}

TEST_CASE("Texts of an item are read, and what they lack is not made up", "[items]") {
    const ItemTexts options = parse_item_texts(
        R"({"requests": [{"context": "Ça va", "continuation": " été", "loglikelihood": -6.0, "greedy": true,
            "pieces": [[" é", -2.5], ["té", -3.5]]},
            {"context": "Ça va", "continuation": " ", "loglikelihood": null, "pieces": [[" ", null]]}]})",
        "item 3");
    CHECK_FALSE(options.said);
    REQUIRE(options.requests.size() == 2);
    CHECK(options.one_context());
    CHECK(options.requests[0].pieces == std::vector<std::pair<std::string, double>>{{" é", -2.5}, {"té", -3.5}});
    CHECK(options.requests[0].greedy);
    CHECK(options.requests[0].per_character() == -2);  // three letters, whatever their bytes
    CHECK(std::isnan(options.requests[1].per_character()));
    CHECK(std::isnan(options.requests[1].loglikelihood));
    CHECK(std::isnan(options.requests[1].pieces.front().second));
    const ItemTexts partial = parse_item_texts(
        R"({"requests": [{"context": "a", "continuation": " x"}, {"context": "b", "continuation": " x"}]})", "item 1");
    CHECK_FALSE(partial.one_context());
    CHECK(partial.requests[1].pieces.empty());
    const ItemTexts said = parse_item_texts(R"({"prompt": "p", "generated": "", "answers": ["a", "b"]})", "item 2");
    CHECK(said.said);
    CHECK(said.answers == std::vector<std::string>{"a", "b"});
    CHECK(said.one_context());
    CHECK_FALSE(parse_item_texts("{}", "item 4").said);
}

TEST_CASE("First words are the item's, behind its examples, and end between characters", "[items]") {
    ItemTexts texts;
    CHECK(texts.first_words(10).empty());
    texts.requests.resize(1);
    texts.requests[0].continuation = " page";
    CHECK(texts.first_words(10) == " page");
    texts.requests[0].context = "Q: one\nA: 1\n\nQ: two\nA:";
    CHECK(texts.first_words(100) == "Q: two\nA:");
    texts.requests[0].context = "ab\n\n";
    CHECK(texts.first_words(100) == "ab\n\n");
    texts.requests[0].context = "aéb";
    CHECK(texts.first_words(4) == "aéb");
    CHECK(texts.first_words(3) == "aé…");
    CHECK(texts.first_words(2) == "a…");
    texts.said = true;
    texts.prompt = "one\n\ntwo";
    CHECK(texts.first_words(4) == "one\n…");
}

TEST_CASE("Texts of another kind are refused where they are wrong", "[items]") {
    const auto refused = [](const char* text) {
        try {
            parse_item_texts(text, "row 7");
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK(refused("[]").find("[row 7] expected") != std::string::npos);
    CHECK(refused("{\"requests\": 3}").find("row 7: requests") != std::string::npos);
    CHECK(refused("{\"requests\": [{\"context\": 1}]}").find("requests[0].context") != std::string::npos);
    CHECK(refused("{\"requests\": [{\"pieces\": [[\"a\"]]}]}").find("log-likelihood") != std::string::npos);
    CHECK(refused("{\"answers\": [1]}").find("answers") != std::string::npos);
    CHECK_FALSE(refused("not json").empty());
}
