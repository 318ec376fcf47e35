// SPDX-License-Identifier: GPL-3.0-or-later
// RULER's items from the command line: made, dumped, and read back.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/app/expectations.h"
#include "tests/app/files.h"
#include "tests/app/program.h"

using namespace headscope::testing;
using nlohmann::json;

TEST_CASE("evaluate makes RULER's items, dumps them, and asks them again from the folder", "[app][evaluate][ruler]") {
    const TemporaryFolder folder;
    std::string essay;
    for (int i = 0; i < 40; ++i) essay += "It is true that day " + std::to_string(i) + " was long. ";
    write_file(folder / "essay.txt", essay);
    const std::string dump = (folder / "items").string();
    const auto evaluate = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"evaluate", sample().string(), "--json", "--task",
                                     "niah_single_1,niah_multikey_1"};
        all.insert(all.end(), more.begin(), more.end());
        return run_headscope(all);
    };
    const std::vector<std::string> made{"--length", "480",        "--sequences",
                                        "2",        "--haystack", (folder / "essay.txt").string()};
    auto dumped = made;
    dumped.insert(dumped.end(), {"--dump", dump});
    const Outcome first = evaluate(dumped);
    check_success(first);
    const json document = json::parse(first.out);
    REQUIRE(document.at("results").size() == 2);
    CHECK(document.at("settings").at("haystack") == (folder / "essay.txt").string());
    for (const auto& row : document.at("results")) {
        CHECK(row.at("metric") == "score");
        CHECK(row.at("length") == 480);
        CHECK(row.at("count") == 2);
    }
    std::istringstream lines(read_file(folder / "items" / "niah_multikey_1" / "test.jsonl"));
    int items = 0;
    for (std::string line; std::getline(lines, line); ++items) {
        const json item = json::parse(line);
        CHECK(item.at("max_length") == 480);
        CHECK(item.at("input").get<std::string>().find(item.at("outputs").at(0).get<std::string>()) !=
              std::string::npos);
        CHECK(item.at("input").get<std::string>().find("It is true that day 0 was long.") != std::string::npos);
        CHECK(item.at("gen_prefix").get<std::string>().ends_with(" is"));
    }
    CHECK(items == 2);
    const Outcome second = evaluate({"--data", dump});
    check_success(second);
    // Items that are read do not say which text hides their needles.
    json read_back = document.at("results");
    for (auto& row : read_back) {
        CHECK(row.at("text") == (row.at("task") == "niah_multikey_1" ? document.at("settings").at("haystack") : ""));
        row["text"] = "";
    }
    CHECK(json::parse(second.out).at("results") == read_back);
    // Once more the same; and nothing is left of what is refused.
    CHECK(json::parse(evaluate(made).out).at("results") == document.at("results"));
    check_refusal(evaluate({"--length", "20", "--dump", (folder / "none").string(), "--haystack",
                            (folder / "essay.txt").string()}),
                  "expected a length of at least");
    check_refusal(evaluate({"--data", (folder / "nowhere").string()}), "test.jsonl");
    check_refusal(evaluate({"--data", dump, "--dump", dump}), "[--dump]");
    check_refusal(evaluate({"--data", dump, "--length", "99"}), "expected a length of the items");
    check_refusal(run_headscope({"evaluate", sample().string(), "--task", "niah_single_1,perplexity", "--data", dump}),
                  "tasks of both kinds");
    check_refusal(run_headscope({"evaluate", sample().string(), "--task", "ruler_vt", "--haystack",
                                 (folder / "essay.txt").string()}),
                  "[--haystack]");
    CHECK(folder.names() == std::vector<std::string>{"essay.txt", "items"});
}
