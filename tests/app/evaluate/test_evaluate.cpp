// SPDX-License-Identifier: GPL-3.0-or-later
// `evaluate` on the sample: texts, lengths, positions, generated tasks, times, and refusals.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/io/sha256.h"
#include "core/store/evaluation/evaluation_file.h"
#include "tests/app/evaluate/evaluation_case.h"
#include "tests/app/expectations.h"
#include "tests/app/files.h"
#include "tests/app/program.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;

namespace {

/// Parses CSV without quotes: each row as its cells by column.
std::vector<std::map<std::string, std::string>> csv_rows(const std::string& text) {
    std::vector<std::map<std::string, std::string>> rows;
    std::vector<std::string> columns;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.ends_with('\r')) line.pop_back();
        std::vector<std::string> cells(1);
        for (const char c : line) {
            if (c == ',')
                cells.emplace_back();
            else
                cells.back() += c;
        }
        if (columns.empty()) {
            columns = cells;
            continue;
        }
        auto& row = rows.emplace_back();
        for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i]] = cells.at(i);
    }
    return rows;
}

}  // namespace

TEST_CASE("evaluate scores a text at several lengths, as table, JSON, CSV and HDF5", "[app][evaluate]") {
    const TemporaryFolder folder;
    write_file(folder / "a.txt", kText);
    const std::vector<std::string> common{
        "evaluate", sample().string(),           "--task",   "perplexity,next_token_accuracy",
        "--data",   (folder / "a.txt").string(), "--length", "8,64"};
    const auto with = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all = common;
        all.insert(all.end(), more.begin(), more.end());
        return run_headscope(all);
    };
    const Outcome table = with({});
    check_success(table);
    CHECK(table.out.find("token_perplexity") != std::string::npos);

    const Outcome outcome = with({"--json", "-o", (folder / "a.evaluation.h5").string()});
    check_success(outcome);
    const json document = json::parse(outcome.out);
    CHECK(document.at("models").at(0).at("mixer") == "standard");
    CHECK(document.at("models").at(0).at("layout") == "uniform");
    const json *narrow = row_of(document, "loss", 8), *wide = row_of(document, "loss", 64);
    REQUIRE(narrow != nullptr);
    REQUIRE(wide != nullptr);
    CHECK(narrow->at("count") == wide->at("count"));
    CHECK(wide->at("value").get<double>() < narrow->at("value").get<double>());
    CHECK(row_of(document, "token_perplexity", 64)->at("value").get<double>() ==
          Approx(std::exp(wide->at("value").get<double>())));
    const auto file = store::read_evaluation(folder / "a.evaluation.h5");
    REQUIRE(file.results.size() == document.at("results").size());
    CHECK(file.find(0, "perplexity", "loss", 64)->value == wide->at("value").get<double>());

    check_success(with({"-o", (folder / "a.csv").string()}));
    CHECK(read_file(folder / "a.csv").rfind("name,path,", 0) == 0);

    const json skipped = json::parse(with({"--json", "--skip", "1"}).out);
    CHECK(skipped.at("models").at(0).at("skipped") == "1");
    CHECK(row_of(skipped, "loss", 64)->at("value") != wide->at("value"));
}

TEST_CASE("Two texts have the values of two single runs, and are never averaged", "[app][evaluate]") {
    const TemporaryFolder folder;
    std::string odd;
    for (int i = 0; i < 60; ++i) odd += "Zq" + std::to_string(i * 7919 % 997) + ";";
    write_file(folder / "plain.txt", std::string(kText) + kText);
    write_file(folder / "odd.txt", odd);
    std::filesystem::create_directory(folder / "other");
    write_file(folder / "other" / "odd.txt", odd + odd);
    const auto scores = [&](const std::string& name, const std::vector<std::string>& data) {
        std::vector<std::string> all{"evaluate",
                                     sample().string(),
                                     "--task",
                                     "perplexity,position_perplexity",
                                     "--length",
                                     "32",
                                     "--json",
                                     "-o",
                                     (folder / (name + ".evaluation.h5")).string()};
        for (const std::string& entry : data) all.insert(all.end(), {"--data", entry});
        const Outcome outcome = run_headscope(all);
        check_success(outcome);
        return json::parse(outcome.out).at("results");
    };
    const std::string plain = (folder / "plain.txt").string(), strange = (folder / "odd.txt").string();
    const json one = scores("one", {plain}), two = scores("two", {strange}), both = scores("both", {plain, strange});
    REQUIRE(both.size() == one.size() + two.size());
    // Every row of a single run is a row of both.
    for (const json* single : {&one, &two})
        for (const auto& row : *single) CHECK(std::find(both.begin(), both.end(), row) != both.end());
    CHECK(one.at(0).at("text") == "plain");
    CHECK(two.at(0).at("text") == "odd");
    CHECK(two.at(0).at("subset") == "");
    CHECK(two.at(0).at("data_sha256") == sha256_hex(odd));

    // In figures of one file and of two, and as CSV of evaluate itself.
    const auto table = [&](const std::string& figure, const std::vector<std::string>& names) {
        const std::string csv = (folder / "figure.csv").string();
        std::vector<std::string> all{"export"};
        for (const std::string& name : names) all.push_back((folder / (name + ".evaluation.h5")).string());
        all.insert(all.end(), {"--figure", figure, "-o", csv});
        if (figure == "scaling") all.insert(all.end(), {"--metric", "token_perplexity"});
        check_success(run_headscope(all));
        return csv_rows(read_file(csv));
    };
    const auto value_of = [](const json& rows, const std::string& task, std::int64_t length) {
        for (const auto& row : rows)
            if (row.at("task") == task && row.at("metric") == "token_perplexity" && row.at("length") == length)
                return row.at("value").get<double>();
        return std::nan("");
    };
    for (const std::vector<std::string>& names : {std::vector<std::string>{"both"}, {"one", "two"}}) {
        int found = 0;
        for (const auto& row : table("scaling", names)) {
            if (row.at("task") != "perplexity") continue;
            ++found;
            CHECK(row.at("seeds") == "1");
            const json& single = row.at("text") == "plain" ? one : two;
            CHECK(std::stod(row.at("value")) == value_of(single, "perplexity", 32));
        }
        CHECK(found == 2);
        found = 0;
        for (const auto& row : table("position-perplexity", names)) {
            ++found;
            const json& single = row.at("text") == "plain" ? one : two;
            CHECK(std::stod(row.at("perplexity")) ==
                  value_of(single, "position_perplexity", std::stoll(row.at("position"))));
        }
        CHECK(found == std::count_if(both.begin(), both.end(),
                                     [](const json& row) { return row.at("task") == "position_perplexity"; }));
    }
    // Other content under the same name is another text, and a text scored twice counts once.
    scores("other", {(folder / "other" / "odd.txt").string()});
    int texts = 0;
    for (const auto& row : table("scaling", {"two", "other", "two"})) {
        texts += row.at("task") == "perplexity" ? 1 : 0;
        CHECK(row.at("seeds") == "1");
        CHECK(row.at("text").starts_with("odd "));
    }
    CHECK(texts == 2);
    check_refusal(run_headscope({"evaluate", sample().string(), "--task", "perplexity", "--data", strange, "--data",
                                 (folder / "other" / "odd.txt").string()}),
                  "found odd twice");
    const json named =
        json::parse(run_headscope({"evaluate", sample().string(), "--task", "perplexity", "--json", "--length", "32",
                                   "--data", strange, "--data", "twice=" + (folder / "other" / "odd.txt").string()})
                        .out);
    CHECK(named.at("results").back().at("text") == "twice");
}

TEST_CASE("Settings of evaluations have the residence of the weights", "[app][evaluate]") {
    const TemporaryFolder folder;
    write_file(folder / "a.txt", std::string(kText) + kText);
    for (const char* weights : {"file", "stream", "float32"}) {
        INFO(weights);
        const Outcome outcome = run_headscope({"evaluate", sample().string(), "--task", "perplexity", "--length", "32",
                                               "--data", (folder / "a.txt").string(), "--weights", weights, "--json"});
        check_success(outcome);
        const json settings = json::parse(outcome.out).at("settings");
        CHECK(settings.at("weights") == weights);
        CHECK(settings.at("weights_requested") == weights);
    }
}

TEST_CASE("Options that a task does not read are refused by their names", "[app][evaluate][options]") {
    const TemporaryFolder folder;
    write_file(folder / "a.txt", kText);
    const std::string text = (folder / "a.txt").string();
    const auto refused = [&](std::vector<std::string> words, const std::string& option) {
        INFO(option);
        const Outcome outcome = run_headscope(words);
        check_usage_error(outcome);
        CHECK(outcome.err.find(option + " has no effect") != std::string::npos);
    };
    const std::string model = sample().string();
    refused({"evaluate", model, "--task", "induction", "--stride", "4"}, "--stride");
    refused({"evaluate", model, "--task", "perplexity", "--data", text, "--seed", "3"}, "--seed");
    refused({"evaluate", model, "--task", "speed", "--tokens", "9"}, "--tokens");
    refused({"tokenize", model, "--plain", "--decode", "5"}, "--plain");
    refused({"generate", model, "--prompt", "a", "--top-k", "5"}, "--top-k");
    refused({"convert", model, (folder / "out").string(), "--seed", "5"}, "--seed");
    refused({"cost", "--variants", "--lengths", "64"}, "--lengths");
    refused({"cost", "--preset", "nano-100k", "--seed", "3"}, "--seed");
    refused({"analyze", model, "--text", "a", "-o", (folder / "a.headscope.h5").string(), "--maps-int16"},
            "--maps-int16");
    const auto file = write_file(folder / "x.headscope.h5", std::string("\x89HDF\r\n\x1a\n", 8));
    refused({"info", file.string(), "--tensors"}, "--tensors");
    check_refusal(run_headscope({"evaluate", model, "--task", "induction", "--task-option", "copy.length=4"}),
                  "one of the tasks asked for");
}

TEST_CASE("evaluate runs generated tasks", "[app][evaluate]") {
    const Outcome outcome = run_headscope({"evaluate", sample().string(), "--task", "induction", "--sequences", "8",
                                           "--length", "32", "--task-option", "induction.symbols=16", "--json"});
    check_success(outcome);
    const json document = json::parse(outcome.out);
    const json* accuracy = row_of(document, "accuracy", 32);
    REQUIRE(accuracy != nullptr);
    CHECK(accuracy->at("task") == "induction");
    CHECK(accuracy->at("value").get<double>() >= 0);
    CHECK(accuracy->at("value").get<double>() <= 1);
}

TEST_CASE("evaluate times passes", "[app][evaluate]") {
    const Outcome outcome =
        run_headscope({"evaluate", sample().string(), "--task", "speed", "--length", "8,16", "--batch", "2", "--json"});
    check_success(outcome);
    const json document = json::parse(outcome.out);
    CHECK(document.at("settings").at("batch") == 2);
    CHECK(document.at("settings").at("threads").get<int>() > 0);
    for (const std::int64_t length : {8, 16}) {
        const json* forward = row_of(document, "forward_ms", length);
        REQUIRE(forward != nullptr);
        CHECK(forward->at("value").get<double>() > 0);
    }
    CHECK(document.at("models").at(0).at("attention_parameters").get<std::int64_t>() > 0);
    CHECK(document.at("models").at(0).at("embedding_parameters").get<std::int64_t>() > 0);
}

TEST_CASE("evaluate says what cannot be", "[app][evaluate]") {
    const TemporaryFolder folder;
    write_file(folder / "a.txt", kText);
    const auto evaluate = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"evaluate", sample().string()};
        all.insert(all.end(), more.begin(), more.end());
        return run_headscope(all);
    };
    const std::string text = (folder / "a.txt").string();
    check_refusal(evaluate({"--task", "perplexty", "--data", text}), "perplexity?");
    check_refusal(evaluate({"--task", "perplexity"}), "expected text to score");
    check_refusal(evaluate({"--task", "perplexity", "--data", text, "--length", "100000"}), "context length");
    check_refusal(evaluate({"--task", "perplexity", "--data", text, "--skip", "99"}), "[--skip]");
    check_refusal(evaluate({"--task", "copy", "--task-option", "copy.symbls=4"}), "symbls");
    check_refusal(evaluate({"--task", "masked", "--data", text}), "found a decoder");
    check_refusal(evaluate({"--task", "shuffle_random", "--data", text}), "found a decoder");
    check_refusal(evaluate({"--task", "classify", "--data", "rte=" + text}), "expected a head for 2 classes");
    check_refusal(evaluate({"--task", "translation", "--data", text}), "found a decoder");
    check_refusal(evaluate({"--task", "translation,perplexity", "--data", text}), "one after the other");
    check_refusal(evaluate({"--task", "perplexity", "--data", text, "--beams", "4"}), "the task translation");
    check_refusal(evaluate({"--task", "perplexity", "--data", text, "--batch", "4"}), "the task speed");
    check_usage_error(evaluate({"--task", "perplexity", "--data", text, "--length", "0"}));
    check_usage_error(evaluate({"--task", "perplexity", "--data", text, "-o", (folder / "a.txt.pdf").string()}));
    check_usage_error(evaluate({"--data", text}));
    CHECK(folder.names() == std::vector<std::string>{"a.txt"});
}

TEST_CASE("evaluate measures perplexity by position, and its figure draws it", "[app][evaluate]") {
    const TemporaryFolder folder;
    std::string text;
    for (int i = 0; i < 40; ++i) text += kText;
    write_file(folder / "a.txt", text);
    const std::string scores = (folder / "a.evaluation.h5").string();
    const Outcome outcome = run_headscope({"evaluate", sample().string(), "--task", "position_perplexity", "--data",
                                           (folder / "a.txt").string(), "--length", "64", "--task-option",
                                           "position_perplexity.bucket=16", "--json", "-o", scores});
    check_success(outcome);
    const json results = json::parse(outcome.out).at("results");
    REQUIRE(results.size() == 4);
    CHECK(results.at(0).at("length") == 16);
    CHECK(results.at(3).at("length") == 64);
    CHECK(results.at(0).at("count").get<int>() % 15 == 0);
    CHECK(results.at(3).at("value").get<double>() < results.at(0).at("value").get<double>());  // the text repeats
    check_success(run_headscope(
        {"export", scores, "--figure", "position-perplexity", "--smooth", "1", "-o", (folder / "a.csv").string()}));
    CHECK(read_file(folder / "a.csv").starts_with("model,mixer,layout"));
    check_success(run_headscope({"export", scores, "--figure", "position-perplexity", "--names", "kept\\, long", "-o",
                                 (folder / "named.csv").string()}));
    CHECK(read_file(folder / "named.csv").find("\r\n\"kept, long\",") != std::string::npos);
    check_refusal(run_headscope({"export", scores, "--figure", "position-perplexity", "--names", "a,b", "-o",
                                 (folder / "b.csv").string()}),
                  "expected a name for each model");
    check_refusal(run_headscope({"export", scores, "--figure", "ruler", "-o", (folder / "b.csv").string()}),
                  "ruler_retrieval");
}

TEST_CASE("list tasks names the tasks of texts and of generators", "[app][evaluate]") {
    const json tasks = json::parse(run_headscope({"list", "tasks", "--json"}).out);
    std::vector<std::string> names;
    for (const auto& task : tasks) names.push_back(task.at("name"));
    for (const char* wanted : {"perplexity", "next_token_accuracy", "mqar", "copy", "induction", "needle",
                               "position_perplexity", "niah_single_1", "ruler_retrieval", "ruler-niah", "masked",
                               "shuffle_random", "classify", "translation", "speed", "squad", "squad_v2"})
        CHECK(std::find(names.begin(), names.end(), wanted) != names.end());
}
