// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/io/sha256.h"
#include "core/store/evaluation/evaluation_file.h"
#include "expectations.h"
#include "files.h"
#include "program.h"
#include "training_job.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;

namespace {

constexpr const char* kText =
    "In the beginning God created the heaven and the earth. And God said, Let there be light.";

const json* row_of(const json& document, const std::string& metric, std::int64_t length) {
    for (const auto& row : document.at("results"))
        if (row.at("metric") == metric && row.at("length") == length) return &row;
    return nullptr;
}

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

TEST_CASE("evaluate asks trained encoders and translators what they were trained for", "[app][evaluate]") {
    const TemporaryFolder folder;
    const auto trained = [&](const std::string& name, const std::string& preset, const std::string& data,
                             const std::string& objective) {
        const auto job = write_file(folder / (name + ".toml"),
                                    "[model]\npreset = \"" + preset + "\"\n[data]\n" + data +
                                        "\nsequence_length = 24\n[objective]\nkind = \"" + objective +
                                        "\"\n[probe]\nevery = 0\n[sample]\nevery = 0\n[training]\nsteps = 2\nbatch = "
                                        "4\nthreads = 1\n");
        check_success(run_headscope({"train", job.string(), "-o", (folder / name).string()}));
        return (folder / name).string();
    };
    const auto evaluated = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"evaluate", "--json", "--length", "24"};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome outcome = run_headscope(all);
        check_success(outcome);
        return json::parse(outcome.out);
    };
    std::string text;
    for (int i = 0; i < 300; ++i) text += "day " + std::to_string(i * i) + " was long. ";
    write_file(folder / "a.txt", text);

    // The generator's held-out part, or named files.
    const std::string classifier = trained("c", "nano-mhe-encoder", "generator = { name = \"agreement\" }", "classify");
    const json own = evaluated({classifier, "--task", "classify", "--sequences", "9"});
    REQUIRE(row_of(own, "accuracy", 24) != nullptr);
    CHECK(row_of(own, "accuracy", 24)->at("count") == 9);
    CHECK(row_of(own, "matthews", 24) != nullptr);
    write_file(folder / "rte.jsonl",
               "{\"text\": \"a b\", \"label\": 1}\n{\"text\": \"c\", \"pair\": \"d\", \"label\": 0}\n");
    const std::string rte = "rte=" + (folder / "rte.jsonl").string();
    const json named = evaluated({classifier, "--task", "classify", "--data", rte, "-o",
                                  (folder / "a.evaluation.h5").string(), "--items", (folder / "i.jsonl").string()});
    CHECK(row_of(named, "f1", 24)->at("task") == "rte");
    const auto items = store::read_items(folder / "a.evaluation.h5");
    REQUIRE(items.size() == 2);
    CHECK(items[0].gold == 1);
    CHECK(items[1].gold == 0);
    CHECK(items[1].task == "rte");
    check_refusal(run_headscope({"evaluate", classifier, "--task", "classify", "--data", rte, rte}), "found rte twice");
    const auto first_line = [&](const char* file) {
        const std::string lines = read_file(folder / file);
        return json::parse(lines.substr(0, lines.find('\n')));
    };
    CHECK(first_line("i.jsonl").at("gold_class") == "1");
    // With id2label classes have names, in items, their texts, the settings and info.
    const std::vector<std::string> classes{"apart", "alike, all"};
    std::filesystem::path snapshot;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "c" / "snapshots")) {
        if (!std::filesystem::exists(entry.path() / "config.json")) continue;
        snapshot = entry.path();
        json config = json::parse(read_file(snapshot / "config.json"));
        config["id2label"] = {{"0", classes[0]}, {"1", classes[1]}};
        write_file(snapshot / "config.json", config.dump());
    }
    REQUIRE_FALSE(snapshot.empty());
    const json labelled = evaluated({classifier, "--task", "classify", "--data", rte, "-o",
                                     (folder / "b.evaluation.h5").string(), "--items", (folder / "j.jsonl").string()})
                              .at("settings");
    CHECK(labelled.at("class_names") == json{{"0", classes}});
    CHECK(first_line("j.jsonl").at("gold") == 1);
    CHECK(first_line("j.jsonl").at("gold_class") == "alike, all");
    const json texts = json::parse(store::read_item_texts(folder / "b.evaluation.h5", 0));
    CHECK(texts.at("requests").at(1).at("continuation") == "alike, all");
    const Outcome about = run_headscope({"info", snapshot.string(), "--json"});
    check_success(about);
    CHECK(json::parse(about.out).at("classes") == classes);
    // Every form reports cut items. The generator's tokenizer makes one token of each word.
    std::string many;
    for (int i = 0; i < 60; ++i) many += "x ";
    write_file(folder / "long.jsonl",
               "{\"text\": \"" + many + "\", \"label\": 1}\n" + "{\"text\": \"c\", \"pair\": \"d\", \"label\": 0}\n");
    const std::string longer = "long=" + (folder / "long.jsonl").string();
    const json cut =
        evaluated({classifier, "--task", "classify", "--data", longer, "-o", (folder / "cut.evaluation.h5").string()});
    CHECK(row_of(cut, "accuracy", 24)->at("cut") == 1);
    CHECK(row_of(named, "f1", 24)->at("cut") == 0);
    CHECK(store::read_evaluation(folder / "cut.evaluation.h5").results.at(0).cut == 1);
    const Outcome table =
        run_headscope({"evaluate", classifier, "--task", "classify", "--data", longer, "--length", "24"});
    check_success(table);
    CHECK(table.out.find("cut") != std::string::npos);
    write_file(folder / "rte.jsonl", "{\"text\": \"a b\", \"label\": 2}\n");
    check_refusal(run_headscope({"evaluate", classifier, "--task", "classify", "--data", rte}), "rte.jsonl:1");

    const std::string masked = trained("m", "nano-mhe-encoder", "text = [\"a.txt\"]\nvalidation = 0.2", "masked");
    const json held_out = evaluated({masked, "--task", "masked"});
    const json given = evaluated({masked, "--task", "masked", "--data", (folder / "a.txt").string(), "--seed", "3"});
    for (const json* one : {&held_out, &given}) {
        REQUIRE(row_of(*one, "loss", 24) != nullptr);
        CHECK(row_of(*one, "loss", 24)->at("value").get<double>() > 0);
        CHECK(row_of(*one, "accuracy", 24)->at("value").get<double>() <= 1);
    }

    const std::string hashed =
        trained("h", "nano-hashformer-md5-pool", "text = [\"a.txt\"]\nvalidation = 0.2", "shuffle_random");
    const json shuffled = evaluated({hashed, "--task", "shuffle_random"});
    CHECK(row_of(shuffled, "loss", 24)->at("value").get<double>() > 0);
    CHECK(shuffled.at("models").at(0).at("embedding_parameters").get<std::int64_t>() > 0);
    check_refusal(run_headscope({"evaluate", hashed, "--task", "masked"}), "a head for the vocabulary");

    const std::string translator =
        trained("t", "nano-mhe-translation", "generator = { name = \"translation\" }", "translation");
    const json translated = evaluated({translator, "--task", "translation", "--beams", "4", "--sequences", "9"});
    CHECK(row_of(translated, "bleu", 24)->at("count") == 9);
    CHECK(row_of(translated, "loss", 24)->at("value").get<double>() > 0);
    CHECK(translated.at("settings").at("beams") == 4);
    CHECK(translated.at("settings").at("length_penalty_of") == "((5 + length) / 6)^alpha");
    // A snapshot's files agree about the decoder's first token, and what they say of beams is the search.
    const auto last = std::filesystem::canonical(std::filesystem::path(translator) / "snapshots" / "last");
    json generation = json::parse(read_file(last / "generation_config.json"));
    CHECK(generation.at("decoder_start_token_id") ==
          json::parse(read_file(last / "config.json")).at("decoder_start_token_id"));
    const auto copy = folder / "copy";
    std::filesystem::copy(last, copy);
    std::filesystem::remove(copy / "manifest.json");
    generation.update({{"num_beams", 3}, {"length_penalty", 2.0}, {"early_stopping", true}});
    write_file(copy / "generation_config.json", generation.dump());
    const auto asked = write_file(folder / "items.jsonl", R"({"source": "1 2 3", "target": "3 2 1"})");
    const json settings = evaluated({copy.string(), "--task", "translation", "--data", asked.string()}).at("settings");
    CHECK(settings.at("beams") == 3);
    CHECK(settings.at("length_penalty") == 2);
    CHECK(settings.at("length_penalty_of") == "length^alpha");
    CHECK(settings.at("early_stopping") == true);
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

TEST_CASE("cost --latency times models, as table, JSON and a file that its figure draws", "[app][cost]") {
    const TemporaryFolder folder;
    const std::string model = sample().string(), file = (folder / "a.evaluation.h5").string();
    const Outcome table = run_headscope({"cost", model, "--latency", "--lengths", "8,16", "-o", file});
    check_success(table);
    CHECK(table.out.find("one token") != std::string::npos);
    const auto stored = store::read_evaluation(file);
    REQUIRE(stored.models.size() == 1);
    for (const std::int64_t length : {8, 16}) {
        const auto* median = stored.find(0, "prefill", "seconds", length);
        const auto* high = stored.find(0, "prefill", "seconds_p90", length);
        REQUIRE(median != nullptr);
        REQUIRE(high != nullptr);
        CHECK(median->value > 0);
        CHECK(median->value <= high->value);
        CHECK(median->count >= 5);
        CHECK(stored.find(0, "decode", "seconds", length) != nullptr);
    }
    check_success(run_headscope({"export", file, "--figure", "latency", "-o", (folder / "a.csv").string()}));
    CHECK(read_file(folder / "a.csv").starts_with("model,task,length,seconds"));
    const json document =
        json::parse(run_headscope({"cost", model, model, "--latency", "--lengths", "8", "--json"}).out);
    CHECK(document.at("models").size() == 2);
    CHECK(document.at("settings").at("latency").at("batch") == 1);
    check_usage_error(run_headscope({"cost", "--latency"}));
    check_usage_error(run_headscope({"cost", model, model}));
    check_usage_error(run_headscope({"cost", model, "--latency", "--measure"}));
}

TEST_CASE("evaluate of a model of generated data on no text names the task that fits", "[app][evaluate]") {
    const TemporaryFolder folder;
    write_file(folder / "job.toml", R"([model]
preset = "nano-100k"
hidden_size = 16
intermediate_size = 16
num_attention_heads = 2
[data]
sequence_length = 16
[data.generator]
name = "induction"
symbols = 8
[training]
steps = 2
batch = 2
threads = 1
[evaluation]
every = 0
[probe]
every = 0
)");
    const std::string run = (folder / "run").string();
    check_success(run_headscope({"train", (folder / "job.toml").string(), "-o", run}));
    check_refusal(run_headscope({"evaluate", run, "--task", "perplexity"}), "expected the task induction");
    check_success(run_headscope({"evaluate", run, "--task", "induction", "--sequences", "4"}));
}

TEST_CASE("evaluate of a run reads as long a text as its training did, behind the token that ends texts",
          "[app][evaluate]") {
    const TemporaryFolder folder;
    write_file(folder / "a.txt", kText);
    const std::string job = write_tiny_job(folder.path(), 2).string(), run = (folder / "run").string();
    check_success(run_headscope({"train", job, "-o", run, "--set", "model.max_position_embeddings=128"}));
    const auto evaluated = [&](const std::string& model, const std::vector<std::string>& more) {
        std::vector<std::string> all{"evaluate", model, "--task", "perplexity", "--data", (folder / "a.txt").string(),
                                     "--json"};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome outcome = run_headscope(all);
        check_success(outcome);
        return json::parse(outcome.out);
    };
    const json automatic = evaluated(run, {});
    CHECK(automatic.at("models").at(0).at("training_length") == 32);
    const json* loss = row_of(automatic, "loss", 32);
    REQUIRE(loss != nullptr);
    const std::int64_t tokens = std::string(kText).size();
    CHECK(loss->at("count") == tokens);  // the first one is predicted, too
    CHECK(row_of(evaluated(run, {"--prefix", "256"}), "loss", 32)->at("value") == loss->at("value"));
    CHECK(row_of(evaluated(run, {"--prefix", "none"}), "loss", 32)->at("count") == tokens - 1);
    CHECK(row_of(evaluated(run, {"--length", "128"}), "loss", 128) != nullptr);

    // One of before knows its end token by the tokenizer alone; and what is known of no job is the positions.
    const auto older = folder / "older";
    std::filesystem::copy(std::filesystem::canonical(folder / "run" / "snapshots" / "last"), older);
    std::filesystem::remove(older / "generation_config.json");
    std::filesystem::remove(older / "manifest.json");
    json config = json::parse(read_file(older / "config.json"));
    config.erase("eos_token_id");
    write_file(older / "config.json", config.dump());
    const json before = evaluated(older.string(), {"--length", "32"});
    CHECK(before.at("models").at(0).at("training_length") == 128);
    CHECK(row_of(before, "loss", 32)->at("value") == loss->at("value"));
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

TEST_CASE("cost counts variants of multi-head attention and hash embeddings", "[app][cost]") {
    const TemporaryFolder folder;
    // 6 layers that attend once and 6 that do twice.
    const Outcome both = run_headscope({"cost", "--preset", "mhe-translation-base", "--variants", "--json"});
    check_success(both);
    const json variants = json::parse(both.out).at("variants");
    REQUIRE(variants.size() == 7);
    CHECK(variants.at(0).at("mixer") == "sha");
    CHECK(variants.at(1).at("stack_with_output") == 18 * 4 * 512 * 512);
    CHECK(variants.at(6) == json{{"mixer", "mhe_mul"},
                                 {"complexity", "n"},
                                 {"parameters_formula", "3 d^2 n + 3 d n"},
                                 {"added_formula", "3 n d"},
                                 {"added", 3 * 8 * 64},
                                 {"sublayer", 99840},
                                 {"sublayer_with_output", 361984},
                                 {"stack", 1797120},
                                 {"stack_with_output", 6515712},
                                 {"memory",
                                  {{"weights", 2171904},
                                   {"gradients", 2171904},
                                   {"adam", 2895872},
                                   {"activations", 16777216},
                                   {"total", 24016896}}},
                                 {"saving", variants.at(6).at("saving")}});
    const auto gpt2 = write_file(folder / "config.json", R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12,
        "n_layer": 12, "vocab_size": 50257, "n_positions": 1024})");
    const json decoder = json::parse(run_headscope({"cost", "--config", gpt2.string(), "--variants", "--json"}).out);
    CHECK(decoder.at("variants").at(1).at("stack_with_output") == 28311552);
    // Table 3.13: saving of SHA.
    const json base = json::parse(run_headscope({"cost", "--preset", "mhe-encoder-base", "--variants", "--batch", "32",
                                                 "--length", "512", "--json"})
                                      .out);
    CHECK(base.at("variants").at(0).at("saving").get<double>() == Approx(0.4484).margin(5e-5));
    CHECK(run_headscope({"cost", "--preset", "mhe-encoder-base", "--variants"}).out.find("44.84 %") !=
          std::string::npos);

    // Appendices E and H of "Deconstructing Attention", Table 2 of "Lazy Attention".
    const json shared =
        json::parse(run_headscope({"cost", "--config", gpt2.string(), "--mixers", "static_emb_qk,rnd_emb_qk,lazy",
                                   "--lengths", "100", "--prefetch", "8", "--json"})
                        .out);
    CHECK(shared.at("rows").at(0).at("paper").at("scores_before_saving") == 11.0 * (1e4 * 768 + 100.0 * 768 * 768));
    CHECK(shared.at("rows").at(1).at("paper").at("prefetch_cache_bytes") == 2 * (200 + 8) * 8);
    CHECK(shared.at("formulas").at("lazy").at("normalizers").size() == 4);
    CHECK_FALSE(shared.at("rows").at(2).at("paper").contains("prefetch_cache_bytes"));
    check_usage_error(run_headscope({"cost", "--variants", "--prefetch", "8"}));

    const json embeddings = json::parse(run_headscope({"cost", "--embeddings", "--hidden", "768", "--rows", "50265",
                                                       "--bits", "128", "--group-bits", "10", "--json"})
                                            .out);
    std::map<std::string, std::int64_t> counts;
    for (const json& one : embeddings.at("embeddings"))
        counts[one.at("kind").get<std::string>()] = one.at("parameters").get<std::int64_t>();
    CHECK(counts == std::map<std::string, std::int64_t>{{"table", 38603520},
                                                        {"emb", 38607360},
                                                        {"pool", 797184},
                                                        {"add", 197376},
                                                        {"proj", 99072},
                                                        {"linear", 98304},
                                                        {"characters", 12288000}});
    CHECK(run_headscope({"cost", "--embeddings"}).out.find("(2 T + 1) d") != std::string::npos);
    check_usage_error(run_headscope({"cost", "--embeddings", "--preset", "proformer"}));
    check_usage_error(run_headscope({"cost", "--embeddings", "--variants"}));
    check_usage_error(run_headscope({"cost", "--variants", "--measure"}));
}

TEST_CASE("cost lists the lengths that a measured model has no positions for", "[app][cost]") {
    const auto measured = [](const std::string& lengths) {
        const Outcome outcome = run_headscope({"cost", sample().string(), "--measure", "--mixers", "mlp", "--lengths",
                                               lengths, "--threads", "1", "--json"});
        INFO(outcome.err);
        REQUIRE(outcome.status == 0);
        return outcome;
    };
    const Outcome cut = measured("8,1024");  // the sample has 1024 positions, and one more token is decoded
    CHECK(cut.err.find("headscope: the whole model is not measured at 1024 tokens: ") != std::string::npos);
    const json document = json::parse(cut.out);
    CHECK(document.at("whole_model_left_out") == json::array({1024}));
    REQUIRE(document.at("whole_model").size() == 1);
    CHECK(document.at("whole_model").at(0).at("length") == 8);
    const Outcome all = measured("8");
    CHECK(all.err.find("not measured") == std::string::npos);
    CHECK(json::parse(all.out).at("whole_model_left_out") == json::array());
}

TEST_CASE("cost prints the paper's numbers, and measured ones beside them", "[app][cost]") {
    const TemporaryFolder folder;
    const json document = json::parse(
        run_headscope({"cost", "--preset", "deconattn-500m", "--lengths", "2048", "--batch", "3", "--json"}).out);
    REQUIRE(document.at("rows").size() == 30);  // every mixer
    const json& standard = document.at("rows").at(0);
    CHECK(standard.at("mixer") == "standard");
    CHECK(standard.at("paper").at("prefill_flops") == 4.0 * 3 * 2048 * 2048 * 896 + 6.0 * 3 * 2048 * 896 * 896);
    CHECK(standard.at("paper").at("cache_bytes") == 4.0 * 3 * 2048 * 896);
    CHECK(document.at("formulas").at("approximate").at("cache_bytes") == "6 B d + 4 B d^2 / h");

    const Outcome measured = run_headscope({"cost", "--preset", "nano-100k", "--lengths", "32", "--measure", "--mixers",
                                            "standard,mlp", "-o", (folder / "a.csv").string()});
    check_success(measured);
    CHECK(measured.out.find("measured") != std::string::npos);
    CHECK(measured.out.find("Measured on cpu, kernels ") != std::string::npos);
    const std::string csv = read_file(folder / "a.csv");
    CHECK(csv.find("\nmlp,1,32,64,4,1,4,") != std::string::npos);
    CHECK(csv.find(",device,kernels\n") != std::string::npos);
    CHECK(csv.find(",cpu,") != std::string::npos);
    const json here = json::parse(run_headscope({"cost", "--preset", "nano-100k", "--lengths", "32", "--measure",
                                                 "--mixers", "mlp", "--threads", "1", "--json"})
                                      .out);
    CHECK(here.at("setting").at("device") == "cpu");
    CHECK_FALSE(here.at("setting").at("kernels").get<std::string>().empty());
    CHECK(here.at("setting").at("threads") == 1);
    CHECK_FALSE(here.at("setting").contains("on_device"));
    CHECK(here.at("rows").at(0).at("measured").at("prefill_seconds").get<double>() > 0);
    CHECK_FALSE(document.at("setting").contains("device"));  // nothing was measured
    check_refusal(run_headscope({"cost", "--preset", "nano"}), "nano-100k");
    // Formulas need the sizes of a model alone, of whichever family; to be measured it must be one of our stacks.
    const auto gpt2 = write_file(folder / "config.json", R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12,
        "n_layer": 12, "vocab_size": 50257, "n_positions": 1024})");
    const json sizes = json::parse(run_headscope({"cost", "--config", gpt2.string(), "--json"}).out);
    CHECK(sizes.at("setting").at("hidden") == 768);
    CHECK(sizes.at("setting").at("heads") == 12);
    check_refusal(run_headscope({"cost", "--config", gpt2.string(), "--measure", "--lengths", "32"}), "other norms");
    check_refusal(run_headscope({"cost", "--mixers", "standart"}), "non_approximate");
    const json linear = json::parse(run_headscope({"cost", "--mixers", "linear", "--lengths", "8", "--json"}).out);
    CHECK(linear.at("rows").at(0).at("paper").at("cache_bytes").is_null());  // encoders alone have it
    check_usage_error(run_headscope({"cost", sample().string(), "--preset", "nano-100k"}));
}

namespace {

void write_two_words(const std::filesystem::path& path, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += std::string(i % 7 == 0 ? "light" : "dark") + (i % 13 == 0 ? ".\n" : " ");
    write_file(path, text);
}

/// A replay keeps to its minutes; not checked with HEADSCOPE_UNTIMED, for machines with other work.
void check_minutes(const Outcome& outcome, int minutes) {
    if (std::getenv("HEADSCOPE_UNTIMED") == nullptr) CHECK(outcome.seconds < minutes * 60 * kSlowness);
}

/// Replays a paper in six minutes: its report has these parts, and each figure was drawn.
/// Success; so few minutes may bring the warning that most claims stay undecided.
void check_replayed(const Outcome& outcome) {
    INFO(outcome.err);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.status == 0);
    for (const std::string& message : outcome.messages())
        CHECK(message.find("minutes give each run") != std::string::npos);
}

void check_replay(const std::string& paper, const std::vector<std::string>& parts,
                  const std::vector<std::string>& figures) {
    const TemporaryFolder folder;
    write_two_words(folder / "text.txt", 40'000);
    Settings settings;
    settings.seconds = 900;
    const Outcome outcome = run_headscope({"reproduce", paper, "-o", (folder / "replay").string(), "--minutes", "6",
                                           "--data", (folder / "text.txt").string()},
                                          settings);
    check_replayed(outcome);
    check_minutes(outcome, 6);
    const std::string report = read_file(folder / "replay" / "report.md");
    CHECK(report.find("Which of its claims held here") != std::string::npos);
    for (const std::string& words : parts) CHECK(report.find(words) != std::string::npos);
    for (const char* words : {"Failed: ", "could not be drawn", "could not be timed"})
        CHECK(report.find(words) == std::string::npos);
    for (const std::string& name : figures)
        CHECK(std::filesystem::exists(folder / "replay" / "figures" / (name + ".csv")));
}

}  // namespace

TEST_CASE("A replay that goes on refuses fewer minutes, and other seeds, than its plan has", "[app][reproduce]") {
    const TemporaryFolder folder;
    write_file(folder / "plan.json", R"({"paper": "lazy", "minutes": 40, "seeds": 2, "threads": 1, "data": []})");
    const auto resumed = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"reproduce", "lazy", "-o", folder.path().string(), "--resume"};
        all.insert(all.end(), more.begin(), more.end());
        return run_headscope(all);
    };
    check_refusal(resumed({"--minutes", "39"}), "expected at least what the plan in ");
    check_refusal(resumed({"--seeds", "3"}), "expected what the plan in ");
    check_refusal(resumed({"--threads", "2"}), "expected what the plan in ");
    CHECK(folder.names() == std::vector<std::string>{"plan.json"});
}

TEST_CASE("A reproduction ends within its minutes with a report, and goes on after a stop", "[.slow][app][deconattn]") {
    const TemporaryFolder folder;
    write_two_words(folder / "text.txt", 20'000);
    Settings settings;
    settings.seconds = 900;
    const std::vector<std::string> words{"reproduce", "deconattn", "-o",     (folder / "replay").string(),
                                         "--minutes", "4",         "--data", (folder / "text.txt").string()};
    {
        Process process(words, settings);
        for (int i = 0; i < 1200 && !std::filesystem::exists(folder / "replay" / "plan.json"); ++i) ::usleep(100'000);
        ::sleep(5);
        process.signal(SIGINT);
        CHECK(process.wait().status == 130);
    }
    CHECK(run_headscope(words, settings).status == 1);  // not without --resume
    std::vector<std::string> again = words;
    again.emplace_back("--resume");
    const Outcome outcome = run_headscope(again, settings);
    check_replayed(outcome);
    check_minutes(outcome, 4);
    const std::string report = read_file(folder / "replay" / "report.md");
    CHECK(report.find("Which of its claims held here") != std::string::npos);
    CHECK(report.find("| hybrid | Approximate |") != std::string::npos);
    // Needs no training.
    CHECK(report.find("| All models have the same number of parameters | **held** |") != std::string::npos);
    CHECK(std::filesystem::exists(folder / "replay" / "figures" / "context-perplexity.csv"));
}

TEST_CASE("A replay stopped before its plan resumes with its minutes and text", "[app][reproduce]") {
    const TemporaryFolder folder;
    write_two_words(folder / "text.txt", 20'000);
    const auto replay = folder / "replay";
    Settings settings;
    settings.seconds = 120;
    Process process(
        {"reproduce", "deconattn", "-o", replay.string(), "--minutes", "3", "--data", (folder / "text.txt").string()},
        settings);
    for (int i = 0; i < 600 && !std::filesystem::exists(replay / "log.txt"); ++i) ::usleep(100'000);
    process.signal(SIGINT);
    const Outcome outcome = process.wait();
    CHECK(outcome.status == 130);
    REQUIRE_FALSE(std::filesystem::exists(replay / "plan.json"));
    INFO(outcome.out);
    for (const std::string words : {"--resume --minutes 3", "--data ", "/text.txt"})
        CHECK(outcome.out.find(words) != std::string::npos);
}

TEST_CASE("NAtS-L's reproduction ends within its minutes with a report", "[.slow][app][natsl]") {
    check_replay("natsl", {"## Retrieval", "## Latency", "## Token types"},
                 {"position-perplexity", "recall", "latency", "token-types-hybrid", "loss"});
}

TEST_CASE("Lazy Attention's reproduction ends within its minutes with a report", "[.slow][app][lazy]") {
    check_replay(
        "lazy",
        {"## Perplexity", "## Seven formulations", "## Lazy Attention by layer", "Not tried in so few minutes: RetNet"},
        {"context-perplexity", "mass", "bias", "offsets", "thumbnails", "released", "loss"});
}

TEST_CASE("The reproduction of the thesis's chapter 3 ends within its minutes with a report",
          "[.slow][app][thesis-mhe]") {
    check_replay("thesis-mhe",
                 {"## Encoders (Table 3.1)", "## Decoders (Table 3.2)", "## Encoder-decoders (Table 3.3)"},
                 {"retention-encoder", "retention-decoder", "retention-translation", "loss-encoder", "cost-sublayer",
                  "cost-stacks", "head-embeddings-mul", "head-embeddings-add", "attention-mul"});
}

TEST_CASE("The reproduction of the thesis's chapter 2 ends within its minutes with a report",
          "[.slow][app][thesis-hash]") {
    check_replay("thesis-hash",
                 {"## Memory and performance (Tables 2.1 and 2.2)", "## Speed (Table 2.3)", "| ProFormer |"},
                 {"retention-encoder", "loss-encoder", "hash"});
}
