// SPDX-License-Identifier: GPL-3.0-or-later
// LongBench's prompts and scores against lm-eval's (tests/oracle/generate/longbench.py), its files and its rows by
// length.
#include <catch2/catch.hpp>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/evaluation/harness/harness_metrics.h"
#include "core/evaluation/harness/longbench.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::evaluation;

namespace {

const nlohmann::json& golden() {
    static const auto read = [] {
        std::ifstream file(test::golden_file("longbench.json"));
        return nlohmann::json::parse(file);
    }();
    return read;
}

const HarnessTask& longbench(const std::string& name) {
    const HarnessTask* task = find_harness_task("longbench_" + name);
    REQUIRE(task != nullptr);
    return *task;
}

/// A task of that metric.
std::string task_of(const std::string& metric) {
    return metric == "qa_f1_score"            ? "qasper"
           : metric == "rouge_score"          ? "gov_report_e"
           : metric == "classification_score" ? "trec"
                                              : "lcc_e";
}

}  // namespace

TEST_CASE("LongBench's tasks are lm-eval's, with their prompts", "[evaluation][harness]") {
    std::size_t count = 0;
    for (const HarnessTask& task : harness_tasks()) count += is_longbench(task) ? 1 : 0;
    CHECK(count == golden().at("tasks").size());
    for (const auto& [name, expected] : golden().at("tasks").items()) {
        INFO(name);
        const HarnessTask& task = longbench(name);
        CHECK(task.kind == HarnessKind::said);
        CHECK(task.configuration == expected.at("configuration").get<std::string>());
        CHECK(task.split == expected.at("split").get<std::string>());
        CHECK(task.answer_tokens == expected.at("tokens").get<std::int64_t>());
        CHECK(task.stops == expected.at("stops").get<std::vector<std::string>>());
        CHECK(task.metrics == expected.at("metrics").get<std::vector<std::string>>());
        const HarnessItem item = longbench_item(task, {golden().at("item"), "item"});
        CHECK(item.prompt == expected.at("prompt").get<std::string>());
        CHECK(item.subset == "4-8k");
        CHECK(item.classes.empty());
        // lm-eval's copy calls the column otherwise.
        nlohmann::json other = golden().at("item");
        other["question"] = other["input"];
        other.erase("input");
        other["length"] = 3999;
        CHECK(longbench_item(task, {other, "item"}).prompt == item.prompt);
        CHECK(longbench_item(task, {other, "item"}).subset == "0-4k");
    }
    std::set<std::string> set;
    for (const std::string& name : longbench_set()) set.insert(name);
    CHECK(set.size() == 11);
}

TEST_CASE("LongBench's scores are lm-eval's, answer by answer", "[evaluation][harness]") {
    std::map<std::string, std::size_t> seen;
    for (const auto& one : golden().at("scores")) {
        const auto metric = one.at("metric").get<std::string>();
        const HarnessTask& task = longbench(task_of(metric));
        HarnessItem item;
        item.answers = one.at("answers").get<std::vector<std::string>>();
        if (!one.at("classes").is_null()) item.classes = one.at("classes").get<std::vector<std::string>>();
        ItemScore score;
        score.generated = one.at("said").get<std::string>();
        judge(task, item, score);
        INFO(one.dump());
        REQUIRE(score.metrics.size() == 2);
        CHECK(score.metrics[0].first == "score");
        CHECK(score.metrics[1].first == metric);
        CHECK(score.metrics[0].second == Approx(one.at("score").get<double>()).margin(1e-12));
        CHECK(score.metrics[1].second == score.metrics[0].second);
        ++seen[metric];
    }
    CHECK(seen.size() == 4);
}

TEST_CASE("LongBench's files lie where its archive has them", "[evaluation][harness]") {
    const test::TemporaryFolder folder;
    const HarnessTask& task = longbench("trec_e");
    CHECK_THROWS_AS(find_data_file(folder.path(), task, "test"), Error);
    for (const char* place : {"LongBench", "LongBench/data", "longbench_trec_e"}) {
        const auto file = folder / place / (std::string(place) == "longbench_trec_e" ? "test.jsonl" : "trec_e.jsonl");
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << golden().at("item").dump() << "\n";
        CHECK(find_data_file(folder.path(), task, "test") == file);
    }
    const HarnessItems items = read_items(folder.path(), task, {});
    REQUIRE(items.items.size() == 1);
    CHECK(items.items[0].answers == std::vector<std::string>{"x"});
}

TEST_CASE("LongBench by THUDM's rules has its prompts and scores, answer by answer", "[evaluation][harness]") {
    std::ifstream file(test::golden_file("longbench_thudm.json"));
    const auto theirs = nlohmann::json::parse(file);
    CHECK(theirs.at("tasks").size() == longbench_set().size());
    for (const auto& [name, expected] : theirs.at("tasks").items()) {
        INFO(name);
        for (const char* end : {"", "_e"}) {
            const HarnessTask task = with_thudm_rules(longbench(name + end));
            CHECK(longbench_item(task, {theirs.at("item"), "item"}).prompt == expected.at("prompt").get<std::string>());
            CHECK(longbench_item(task, {theirs.at("item"), "item"}).subset == "8k+");
            CHECK(task.answer_tokens == expected.at("tokens").get<std::int64_t>());
            CHECK(task.stops.empty());
            CHECK(ends_at_line(task) == (name == "samsum"));
            CHECK_FALSE(ends_at_line(longbench(name + end)));
        }
    }
    std::size_t other_scores = 0;
    for (const auto& one : theirs.at("scores")) {
        const HarnessTask& plain = longbench(one.at("task").get<std::string>() + "_e");
        HarnessItem item;
        item.answers = one.at("answers").get<std::vector<std::string>>();
        if (!one.at("classes").is_null()) item.classes = one.at("classes").get<std::vector<std::string>>();
        const auto said = one.at("said").get<std::string>();
        INFO(one.dump());
        const double score = longbench_score(with_thudm_rules(plain), item, said);
        CHECK(score == Approx(one.at("score").get<double>()).margin(1e-12));
        other_scores += longbench_score(plain, item, said) == Approx(score).margin(1e-12) ? 0 : 1;
    }
    CHECK(other_scores > 10);  // lm-eval's rules are others
}
