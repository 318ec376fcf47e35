// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/evaluation/harness/harness_metrics.h"
#include "core/evaluation/metrics/python_text.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using evaluation::HarnessItem;
using evaluation::HarnessKind;
using evaluation::HarnessTask;
using evaluation::HarnessValue;
using evaluation::ItemScore;

namespace {

const nlohmann::json& golden() {
    static const auto read = [] {
        std::ifstream file(test::golden_file("harness_metrics.json"));
        return nlohmann::json::parse(file);
    }();
    return read;
}

HarnessTask task_of(HarnessKind kind, const std::vector<std::string>& metrics) {
    HarnessTask task;
    task.kind = kind;
    task.metrics = metrics;
    return task;
}

/// Items of a task and what a model said of them.
struct Asked {
    HarnessTask task;
    std::vector<HarnessItem> items;
    std::vector<ItemScore> scores;

    std::vector<HarnessValue> values(std::int64_t resamples = 0, const Cancellation* cancellation = nullptr) const {
        return evaluation::values_of(task, items, scores, resamples, cancellation);
    }
};

void add(Asked& asked, const HarnessItem& item, const std::vector<double>& loglikelihoods, bool greedy = false,
         const std::string& generated = "") {
    ItemScore score;
    for (const double sum : loglikelihoods) score.requests.push_back({sum, greedy, {}});
    score.generated = generated;
    evaluation::judge(asked.task, item, score);
    asked.items.push_back(item);
    asked.scores.push_back(score);
}

HarnessItem item_with(const std::vector<std::string>& options, std::int64_t gold) {
    HarnessItem item;
    item.gold = gold;
    for (const std::string& option : options) {
        item.requests.push_back({"Q", " " + option});
        item.characters.push_back(evaluation::code_points(option));
    }
    return item;
}

Asked last_words(const nlohmann::json& wanted) {
    Asked asked{task_of(HarnessKind::last_word, {"perplexity", "acc"}), {}, {}};
    for (std::size_t i = 0; i < wanted["loglikelihoods"].size(); ++i)
        add(asked, {}, {wanted["loglikelihoods"][i].get<double>()}, wanted["greedy"][i].get<bool>());
    return asked;
}

/// Error bound of a sum of `terms` terms in any order; null: none.
void check_close(double found, const nlohmann::json& wanted, std::int64_t terms) {
    if (wanted.is_null()) {
        CHECK(std::isnan(found));
        return;
    }
    const double eps = std::numeric_limits<double>::epsilon();
    CHECK(found == Approx(wanted.get<double>()).epsilon(static_cast<double>(terms + 8) * eps).margin(0));
}

void check_values(const Asked& asked, const nlohmann::json& wanted) {
    const auto values = asked.values();
    REQUIRE(values.size() == asked.task.metrics.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        CAPTURE(values[i].metric);
        CHECK(values[i].metric == asked.task.metrics[i]);
        CHECK(values[i].count == std::ssize(asked.items));
        check_close(values[i].value, wanted[values[i].metric][0], values[i].count);
        check_close(values[i].error, wanted[values[i].metric][1], values[i].count);
    }
}

}  // namespace

TEST_CASE("Options are chosen and counted as lm-eval does", "[evaluation]") {
    for (const auto& wanted : golden()["choices"]) {
        Asked asked{task_of(HarnessKind::choices, {"acc", "acc_norm"}), {}, {}};
        for (const auto& row : wanted["items"]) {
            CAPTURE(row.dump());
            add(asked, item_with(row["options"], row["gold"]), row["loglikelihoods"]);
            const ItemScore& score = asked.scores.back();
            const std::vector<std::pair<std::string, double>> metrics = {{"acc", row["acc"]},
                                                                         {"acc_norm", row["acc_norm"]}};
            CHECK(score.metrics == metrics);
            CHECK(score.right == (row["acc"] == 1.0));
            CHECK(score.right == (score.chosen == row["gold"].get<std::int64_t>()));
        }
        check_values(asked, wanted["values"]);
    }
}

TEST_CASE("The first of equal options is chosen, and none of no characters by acc_norm", "[evaluation]") {
    Asked asked{task_of(HarnessKind::choices, {"acc", "acc_norm"}), {}, {}};
    add(asked, item_with({"a", "b", "c"}, 1), {-3, -2, -2});
    CHECK(asked.scores.back().chosen == 1);
    add(asked, item_with({"", "long"}, 0), {0, -40});
    CHECK(asked.scores.back().metrics == std::vector<std::pair<std::string, double>>{{"acc", 1}, {"acc_norm", 0}});
    Asked partial{task_of(HarnessKind::partial, {"acc"}), {}, {}};
    HarnessItem item;
    item.requests = {{"The cup", " is full."}, {"The jug", " is full."}};
    item.gold = 1;
    add(partial, item, {-5, -4.5});
    CHECK(partial.scores.back().chosen == 1);
    CHECK(partial.scores.back().right);
}

TEST_CASE("Perplexity of last words and its bootstrap are lm-eval's", "[evaluation]") {
    for (const auto& wanted : golden()["last_word"]) {
        const Asked asked = last_words(wanted);
        const auto values = asked.values();
        REQUIRE(values.size() == 2);
        CHECK(values[0].metric == "perplexity");
        CHECK(values[0].count == std::ssize(asked.items));
        check_close(values[0].value, wanted["perplexity"], values[0].count);
        CHECK(std::isnan(values[0].error));
        check_close(values[1].value, wanted["acc"][0], values[1].count);
        check_close(values[1].error, wanted["acc"][1], values[1].count);
        for (const auto& [resamples, error] : wanted["errors"].get<std::vector<std::pair<std::int64_t, double>>>()) {
            CAPTURE(resamples);
            check_close(asked.values(resamples)[0].error, error, resamples);
        }
        CHECK(asked.scores[0].metrics[0].second == wanted["loglikelihoods"][0].get<double>());
        CHECK(asked.scores[0].right == wanted["greedy"][0].get<bool>());
        CHECK(asked.scores[0].chosen == -1);
        CHECK(std::isnan(asked.values(1)[0].error));
        Cancellation stop;
        stop.request();
        CHECK_THROWS_AS(asked.values(100000, &stop), Stopped);
    }
    Asked one{task_of(HarnessKind::last_word, {"perplexity", "acc"}), {}, {}};
    add(one, {}, {-std::log(7.0)}, true);
    CHECK(one.values(1000)[0].value == Approx(7));
    CHECK(std::isnan(one.values(1000)[0].error));
}

TEST_CASE("Pages are weighted by their words and bytes", "[evaluation]") {
    const auto& wanted = golden()["pages"];
    Asked asked{task_of(HarnessKind::page, {"word_perplexity", "byte_perplexity", "bits_per_byte"}), {}, {}};
    for (const auto& row : wanted["items"]) {
        HarnessItem item;
        item.words = row["words"];
        item.bytes = row["bytes"];
        add(asked, item, {row["loglikelihood"].get<double>()});
        CHECK(!asked.scores.back().right);
    }
    check_values(asked, wanted["values"]);
    const auto& page = asked.scores[1].metrics;  // of 2 words and 9 bytes
    const double sum = asked.scores[1].requests[0].loglikelihood;
    REQUIRE(page.size() == 3);
    CHECK(page[0].second == Approx(std::exp(-sum / 2)));
    CHECK(page[1].second == Approx(std::exp(-sum / 9)));
    CHECK(page[2].second == Approx(-sum / 9 / std::log(2)));
}

TEST_CASE("A said answer is right if it contains any answer", "[evaluation]") {
    const auto& wanted = golden()["said"];
    Asked asked{task_of(HarnessKind::said, {"contains"}), {}, {}};
    for (const auto& row : wanted["items"]) {
        CAPTURE(row.dump());
        HarnessItem item;
        item.answers = row["answers"];
        add(asked, item, {}, false, row["generated"]);
        CHECK(asked.scores.back().right == (row["contains"] == 1));
    }
    check_values(asked, wanted["values"]);
}

TEST_CASE("Baselines are who guesses and who always says the most frequent answer", "[evaluation]") {
    const HarnessTask task = task_of(HarnessKind::choices, {"acc"});
    const std::vector<HarnessItem> items = {item_with({"a", "b"}, 1), item_with({"a", "b", "c", "d"}, 1),
                                            item_with({"a", "b"}, 0), item_with({"a", "b", "c", "d"}, 3),
                                            item_with({"a", "b"}, 1)};
    const auto values = evaluation::baselines_of(task, items);
    REQUIRE(values.size() == 2);
    CHECK(values[0].metric == "chance");
    CHECK(values[0].value == Approx((3 * 0.5 + 2 * 0.25) / 5));
    CHECK(values[0].error == Approx(std::sqrt(0.4 * 0.6 / 4)));
    CHECK(values[0].count == 5);
    CHECK(values[1].metric == "majority");
    CHECK(values[1].value == Approx(0.6));
    CHECK(values[1].error == Approx(std::sqrt(0.6 * 0.4 / 4)));
    // The same by lm-eval's rule for the one who says "1".
    Asked asked{task, {}, {}};
    for (const HarnessItem& item : items) {
        std::vector<double> sure(item.requests.size(), -9);
        sure[1] = -1;
        add(asked, item, sure);
    }
    CHECK(asked.values()[0].value == Approx(values[1].value));
    CHECK(asked.values()[0].error == Approx(values[1].error));
    CHECK(std::isnan(evaluation::baselines_of(task, {items.data(), 1})[0].error));
    CHECK(evaluation::baselines_of(task_of(HarnessKind::last_word, {"perplexity", "acc"}), items).empty());
}

TEST_CASE("An accuracy over chance is 0 for the better guesser and 1 for no error", "[evaluation]") {
    using evaluation::HarnessValue;
    const std::vector<HarnessValue> guesses{{"chance", 0.25, 0, 100}, {"majority", 0.4, 0, 100}};
    const auto adjusted = [&](double acc) {
        const std::vector<HarnessValue> values{{"acc", acc, 0.03, 100}, {"acc_norm", 0.9, 0.03, 100}};
        const auto value = evaluation::chance_adjusted(values, guesses);
        REQUIRE(value);
        CHECK(value->metric == "acc_chance");
        CHECK(value->error == Approx(0.05));
        CHECK(value->count == 100);
        return value->value;
    };
    CHECK(adjusted(0.4) == Approx(0).margin(1e-15));
    CHECK(adjusted(1) == 1);
    CHECK(adjusted(0.55) == Approx(0.25));
    CHECK(adjusted(0.25) == Approx(-0.25));
    const std::vector<HarnessValue> acc{{"acc", 1, 0, 5}}, said{{"contains", 1, 0, 5}};
    CHECK_FALSE(evaluation::chance_adjusted(said, guesses));
    CHECK_FALSE(evaluation::chance_adjusted(acc, {}));
    const std::vector<HarnessValue> one_class{{"chance", 0.5, 0, 5}, {"majority", 1, 0, 5}};
    CHECK_FALSE(evaluation::chance_adjusted(acc, one_class));
}

TEST_CASE("A guesser gives each token of the vocabulary one probability", "[evaluation]") {
    // By hand: words of 1, 2 and 1 tokens, a vocabulary of 10; two of the three words are the same.
    Asked words{task_of(HarnessKind::last_word, {"perplexity", "acc"}), {}, {}};
    for (const auto& [word, tokens] : {std::pair{" a", 1}, {" b", 2}, {" a", 1}}) {
        HarnessItem item;
        item.requests.push_back({"Q", word});
        add(words, item, {-3.0});
        words.scores.back().requests.front().each.resize(static_cast<std::size_t>(tokens));
    }
    const auto values = evaluation::guesses_of(words.task, words.items, words.scores, 10);
    REQUIRE(values.size() == 3);
    CHECK(values[0].metric == "chance");
    CHECK(values[0].value == Approx((0.1 + 0.01 + 0.1) / 3));
    CHECK(values[1].metric == "majority");
    CHECK(values[1].value == Approx(2 / 3.0));
    CHECK(values[2].metric == "chance_perplexity");
    CHECK(values[2].value == Approx(std::pow(10, 4 / 3.0)));

    // Two pages: 6 tokens, 4 words, 20 bytes in all.
    Asked pages{task_of(HarnessKind::page, {"word_perplexity", "byte_perplexity", "bits_per_byte"}), {}, {}};
    for (const auto& [tokens, count, bytes] : {std::tuple{4, 3, 12}, {2, 1, 8}}) {
        HarnessItem item;
        item.words = count;
        item.bytes = bytes;
        add(pages, item, {-3.0});
        pages.scores.back().requests.front().each.resize(static_cast<std::size_t>(tokens));
    }
    const auto of_pages = evaluation::guesses_of(pages.task, pages.items, pages.scores, 10);
    REQUIRE(of_pages.size() == 3);
    CHECK(of_pages[0].metric == "chance_word_perplexity");
    CHECK(of_pages[0].value == Approx(std::pow(10, 6 / 4.0)));
    CHECK(of_pages[1].value == Approx(std::pow(10, 6 / 20.0)));
    CHECK(of_pages[2].value == Approx(6 / 20.0 * std::log2(10)));
    CHECK(evaluation::guesses_of(task_of(HarnessKind::choices, {"acc"}), pages.items, pages.scores, 10).empty());
}

TEST_CASE("Of no items there is no value", "[evaluation]") {
    using Metrics = std::vector<std::string>;
    for (const auto& [kind, metrics] : {std::pair{HarnessKind::choices, Metrics{"acc", "acc_norm"}},
                                        {HarnessKind::last_word, Metrics{"perplexity", "acc"}},
                                        {HarnessKind::page, Metrics{"word_perplexity", "bits_per_byte"}}}) {
        const Asked none{task_of(kind, metrics), {}, {}};
        const auto values = none.values(1000);
        REQUIRE(values.size() == 2);
        for (const HarnessValue& value : values) {
            CHECK(std::isnan(value.value));
            CHECK(std::isnan(value.error));
            CHECK(value.count == 0);
        }
    }
    const auto baselines = evaluation::baselines_of(task_of(HarnessKind::choices, {"acc"}), {});
    REQUIRE(baselines.size() == 2);
    CHECK(std::isnan(baselines[0].value));
    CHECK(std::isnan(baselines[1].value));
}
