// SPDX-License-Identifier: GPL-3.0-or-later
// lm-eval's tasks from the command line, over small files in the data sets' own columns.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "core/base/io/sha256.h"
#include "core/store/evaluation/evaluation_file.h"
#include "tests/app/expectations.h"
#include "tests/app/files.h"
#include "tests/app/program.h"
#include "tests/app/word_tokenizer.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

fs::path write_lines(const fs::path& path, const std::vector<json>& lines) {
    std::string text;
    for (const json& line : lines) text += line.dump() + "\n";
    fs::create_directories(path.parent_path());
    return write_file(path, text);
}

json question(const std::string& text, const std::vector<std::string>& options, const std::string& answer) {
    json labels = json::array();
    for (std::size_t i = 0; i < options.size(); ++i) labels.push_back(std::string(1, static_cast<char>('A' + i)));
    return {{"question", text}, {"choices", {{"text", options}, {"label", labels}}}, {"answerKey", answer}};
}

/// arc_easy with examples, lambada_openai, wikitext, fda.
void write_data(const fs::path& folder) {
    std::vector<json> asked{
        question("Who created the heaven and the earth?", {"God", "the king of Egypt", "a fish"}, "A"),
        question("What was upon the face of the deep?", {"light", "darkness"}, "B"),
        question("What is the first day?", {"evening", "morning", "night", "both"}, "D")};
    write_lines(folder / "ai2_arc" / "ARC-Easy" / "test.jsonl", asked);
    std::vector<json> examples;
    for (int i = 0; i < 9; ++i)
        examples.push_back(question("What is example " + std::to_string(i) + "?", {"yes", "no"}, i % 2 ? "A" : "B"));
    write_lines(folder / "arc_easy" / "train.jsonl", examples);
    write_lines(folder / "lambada_openai" / "test.jsonl",
                {{{"text", "In the beginning God created the heaven and the earth"}},
                 {{"text", "And God said, Let there be light"}}});
    write_lines(
        folder / "wikitext" / "test.jsonl",
        {{{"page", " = The earth = \n And the earth was without form , and void ; and darkness was upon it . "}}});
    write_lines(folder / "fda" / "validation.jsonl", {{{"text", "And God said, Let there be "}, {"value", "e"}},
                                                      {{"text", "Amen. \n"}, {"value", "no such words"}}});
}

std::vector<json> lines_of(const fs::path& path) {
    std::vector<json> all;
    std::istringstream text(read_file(path));
    for (std::string line; std::getline(text, line);) all.push_back(json::parse(line));
    return all;
}

Outcome evaluate(const std::vector<std::string>& more, const std::string& model = sample().string()) {
    std::vector<std::string> all{"evaluate", model};
    all.insert(all.end(), more.begin(), more.end());
    return run_headscope(all);
}

const json& row_of(const json& document, const std::string& task, const std::string& metric, int model = 0) {
    for (const auto& row : document.at("results"))
        if (row.at("model") == model && row.at("task") == task && row.at("metric") == metric) return row;
    FAIL("no row of " + task + ", " + metric);
    std::abort();
}

}  // namespace

TEST_CASE("evaluate asks lm-eval's tasks, item by item", "[app][evaluate][harness]") {
    const TemporaryFolder folder;
    write_data(folder / "data");
    const fs::path items = folder / "items.jsonl", prompts = folder / "prompts.jsonl",
                   file = folder / "a.evaluation.h5";
    const std::string tasks = "arc_easy,lambada_openai,wikitext,fda";
    const Outcome outcome =
        evaluate({sample().string(), "--task", tasks, "--data", (folder / "data").string(), "--items", items.string(),
                  "--prompts", prompts.string(), "-o", file.string(), "--json", "--baselines", "--bootstrap", "2000"});
    check_success(outcome);
    const json document = json::parse(outcome.out);
    const std::vector<json> lines = lines_of(items), asked = lines_of(prompts);
    REQUIRE(lines.size() == 2 * (3 + 2 + 1 + 2));
    REQUIRE(asked.size() == lines.size());

    // The values are those that the items' log-likelihoods make.
    const std::vector<std::size_t> gold{0, 1, 3};
    double right = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        const json& line = lines[i];
        CHECK(line.at("model") == 0);
        CHECK(line.at("task") == "arc_easy");
        CHECK(line.at("item") == i);
        CHECK(line.at("gold") == gold[i]);
        const auto sums = line.at("loglikelihood").get<std::vector<double>>();
        const std::size_t best = static_cast<std::size_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
        CHECK(line.at("acc") == (best == gold[i] ? 1 : 0));
        right += best == gold[i] ? 1 : 0;
        for (const double sum : sums) CHECK(sum < 0);
    }
    CHECK(asked[0].at("context").at(1) == "Question: Who created the heaven and the earth?\nAnswer:");
    CHECK(asked[0].at("continuation").at(1) == " the king of Egypt");
    CHECK_FALSE(lines[0].contains("context"));
    const json& accuracy = row_of(document, "arc_easy", "acc");
    CHECK(accuracy.at("value").get<double>() == Approx(right / 3));
    CHECK(accuracy.at("error").get<double>() == Approx(std::sqrt(right * (3 - right) / 9 / 2)));
    CHECK(accuracy.at("count") == 3);
    CHECK(accuracy.at("shots") == 0);
    CHECK(accuracy.at("length") == 1024);  // the model's positions
    CHECK(row_of(document, "arc_easy", "chance").at("value").get<double>() == Approx((1 / 3. + 1 / 2. + 1 / 4.) / 3));
    CHECK(row_of(document, "arc_easy", "majority").at("value").get<double>() == Approx(1 / 3.));
    const double guessed = (1 / 3. + 1 / 2. + 1 / 4.) / 3;  // more than the majority has
    CHECK(row_of(document, "arc_easy", "acc_chance").at("value").get<double>() ==
          Approx((right / 3 - guessed) / (1 - guessed)));
    const double words =
        lines[3].at("loglikelihood").at(0).get<double>() + lines[4].at("loglikelihood").at(0).get<double>();
    CHECK(row_of(document, "lambada_openai", "perplexity").at("value").get<double>() == Approx(std::exp(-words / 2)));
    CHECK(row_of(document, "lambada_openai", "perplexity").at("error").get<double>() > 0);
    CHECK(asked[4].at("continuation") == json({" light"}));
    const double page = lines[5].at("loglikelihood").at(0).get<double>();
    CHECK(row_of(document, "wikitext", "word_perplexity").at("value").get<double>() == Approx(std::exp(-page / 22)));
    CHECK(lines[6].at("generated").get<std::string>().find('\n') == std::string::npos);
    CHECK(asked[7].at("prompt") == "Amen.");
    CHECK(row_of(document, "fda", "contains").at("count") == 2);

    // The same model twice says the same twice.
    for (std::size_t i = 0; i < lines.size() / 2; ++i) {
        json second = lines[i + lines.size() / 2];
        CHECK(second.at("model") == 1);
        second["model"] = 0;
        CHECK(second == lines[i]);
    }
    const json& files = document.at("settings").at("files");
    REQUIRE(files.size() == 4);
    CHECK(files.at(0).at("sha256") == sha256_hex(read_file(folder / "data" / "ai2_arc" / "ARC-Easy" / "test.jsonl")));

    const auto stored = store::read_evaluation(file);
    CHECK(stored.results.size() == document.at("results").size());
    REQUIRE(stored.item_count == static_cast<std::int64_t>(lines.size()));
    const auto rows = store::read_items(file);
    CHECK(rows[2].gold == 3);
    const json texts = json::parse(store::read_item_texts(file, 1));
    double sum = 0;
    for (const auto& piece : texts.at("requests").at(1).at("pieces")) sum += piece.at(1).get<double>();
    CHECK(sum == Approx(lines[1].at("loglikelihood").at(1).get<double>()).epsilon(1e-5));

    const Outcome table = evaluate({"--task", "arc_easy", "--data", (folder / "data").string(), "--limit", "2"});
    check_success(table);
    CHECK(table.out.find("shots") != std::string::npos);
    CHECK(table.out.find("acc_norm") != std::string::npos);
}

TEST_CASE("evaluate puts examples before items, drawn or the first ones", "[app][evaluate][harness]") {
    const TemporaryFolder folder;
    write_data(folder / "data");
    const auto contexts = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"--task",
                                     "arc_easy",
                                     "--data",
                                     (folder / "data").string(),
                                     "--json",
                                     "--prompts",
                                     (folder / "p.jsonl").string()};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome outcome = evaluate(all);
        check_success(outcome);
        std::vector<std::string> found;
        for (const json& line : lines_of(folder / "p.jsonl")) found.push_back(line.at("context").at(0));
        const json document = json::parse(outcome.out);
        CHECK(row_of(document, "arc_easy", "acc").at("shots") == document.at("settings").at("shots"));
        return found;
    };
    const auto first = contexts({"--shots", "2", "--shots-rule", "first"});
    CHECK(first[1] ==
          "Question: What is example 0?\nAnswer: no\n\nQuestion: What is example 1?\nAnswer: yes\n\n"
          "Question: What was upon the face of the deep?\nAnswer:");
    const auto drawn = contexts({"--shots", "2"});
    CHECK(drawn == contexts({"--shots", "2", "--seed", "1234"}));
    CHECK(drawn != contexts({"--shots", "2", "--seed", "1"}));
    const Outcome cut = evaluate(
        {"--task", "arc_easy", "--data", (folder / "data").string(), "--shots", "9", "--length", "40", "--json"});
    check_success(cut);
    CHECK(row_of(json::parse(cut.out), "arc_easy", "acc").at("length") == 40);
    const auto refused = [&](const std::string& task, const std::string& shots, const std::string& part) {
        check_refusal(evaluate({"--task", task, "--data", (folder / "data").string(), "--shots", shots}), part);
    };
    refused("arc_easy", "10", "10 examples");
    refused("lambada_openai", "1", "lambada_openai");
}

TEST_CASE("evaluate takes options of said answers", "[app][evaluate][harness]") {
    const TemporaryFolder folder;
    write_lines(folder / "data" / "squad_completion" / "validation.jsonl",
                {{{"text", "And God said unto Moses, Go unto"}, {"value", "Pharaoh"}}});
    const auto generated = [&](const std::string& option) {
        std::vector<std::string> all{"--task",  "squad_completion",           "--data", (folder / "data").string(),
                                     "--items", (folder / "i.jsonl").string()};
        if (!option.empty()) all.insert(all.end(), {"--task-option", option});
        check_success(evaluate(all));
        return lines_of(folder / "i.jsonl").at(0).at("generated").get<std::string>();
    };
    const std::string whole = generated(""), some = generated("squad_completion.tokens=3");
    CHECK(some.size() < whole.size());
    CHECK(whole.starts_with(some));
    check_refusal(evaluate({"--task", "squad_completion", "--data", (folder / "data").string(), "--task-option",
                            "squad_completion.words=3"}),
                  "squad_completion.tokens");
}

TEST_CASE("evaluate says what is wrong with data sets and options, and leaves nothing", "[app][evaluate][harness]") {
    const TemporaryFolder folder;
    const fs::path data = folder / "data";
    write_data(data);
    const auto refused = [&](const std::vector<std::string>& more, const std::string& part) {
        std::vector<std::string> all{"--data",    data.string(),
                                     "-o",        (folder / "a.evaluation.h5").string(),
                                     "--items",   (folder / "i.jsonl").string(),
                                     "--prompts", (folder / "p.jsonl").string()};
        all.insert(all.end(), more.begin(), more.end());
        check_refusal(evaluate(all), part);
    };
    refused({"--task", "arc_esay"}, "arc_easy?");
    refused({"--task", "zero_shots"}, "zero_shot?");
    refused({"--task", "piqa"}, "validation");
    refused({"--task", "arc_easy,perplexity"}, "tasks of both kinds");
    refused({"--task", "arc_easy", "--length", "64,128"}, "[--length]");
    refused({"--task", "arc_easy", "--length", "4096"}, "context length");
    refused({"--task", "arc_easy", "--length", "2"}, "test.jsonl");
    refused({"--task", "arc_easy", "--task-option", "arc_easy.tokens=3"}, "none of arc_easy");
    refused({"--task", "arc_easy", "--data", data.string()}, "one folder");
    write_file(data / "arc_easy" / "test.jsonl", "{\"question\": \"?\"}\n");
    refused({"--task", "arc_easy"}, "test.jsonl:1");
    check_refusal(evaluate({"--task", "arc_easy"}), "[--data]");
    check_refusal(evaluate({"--task", "copy", "--shots", "1"}), "[--shots]");
    check_refusal(evaluate({"--task", "copy", "--items", (folder / "i.jsonl").string()}), "[--items]");
    check_refusal(evaluate({"--task", "copy", "--baselines"}), "[--baselines]");
    const std::vector<std::string> lambada{"--task", "lambada_openai", "--data", data.string()};
    const auto with = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all = lambada;
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    const std::string same = (folder / "i.jsonl").string();
    check_refusal(evaluate(with({"--items", same, "--prompts", same})), "found the same file as --items");
    check_usage_error(evaluate(with({"--shots-rule", "last"})));
    check_usage_error(evaluate(with({"--limit", "-1"})));
    check_refusal(evaluate(with({"--items", (data / "lambada_openai" / "test.jsonl").string()})), "test.jsonl");
    check_refusal(evaluate(lambada, linked_sample(folder / "bare", {"tokenizer.json"}).string()), "tokenizer");
    fs::remove_all(folder / "bare");
    CHECK(folder.names() == std::vector<std::string>{"data"});
}

TEST_CASE("evaluate scores what an encoder-decoder says to a context", "[app][evaluate][harness]") {
    const TemporaryFolder folder;
    write_data(folder / "data");
    const fs::path model = golden_sample(folder / "t5", "t5");
    write_word_tokenizer(model);  // the items have none of its words
    const Outcome outcome = evaluate({"--task", "arc_easy,lambada_openai", "--data", (folder / "data").string(),
                                      "--json", "--items", (folder / "i.jsonl").string()},
                                     model.string());
    check_success(outcome);
    const json document = json::parse(outcome.out);
    CHECK(row_of(document, "arc_easy", "acc").at("count") == 3);
    for (const json& line : lines_of(folder / "i.jsonl"))
        for (const json& sum : line.at("loglikelihood")) CHECK(sum.get<double>() < 0);
}

TEST_CASE("Ctrl-C while items are scored leaves nothing", "[app][evaluate][harness][interrupt]") {
    const TemporaryFolder folder, out;
    std::vector<json> pages;
    std::string page;
    for (int i = 0; i < 900; ++i) page += " In the beginning God created the heaven and the earth .";
    for (int i = 0; i < 40; ++i) pages.push_back({{"page", page + std::to_string(i)}});
    write_lines(folder / "data" / "wikitext" / "test.jsonl", pages);
    Process process(
        {"evaluate", sample().string(), "--task", "wikitext", "--data", (folder / "data").string(), "--items",
         (out / "i.jsonl").string(), "--prompts", (out / "p.jsonl").string(), "-o", (out / "a.evaluation.h5").string()},
        {.seconds = 60});
    while (process.running() && process.messages_so_far().find("items") == std::string::npos)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    REQUIRE(process.running());
    process.signal(SIGINT);
    const Outcome outcome = process.wait();
    CHECK(outcome.status == 130);
    CHECK(outcome.out.empty());
    CHECK(out.names().empty());
}

TEST_CASE("evaluate scores stored answers without a model", "[app][evaluate][harness]") {
    const TemporaryFolder folder;
    const auto item = [](const std::string& answer, int words) {
        json line{{"input", "Who?"}, {"context", "Long."}, {"length", words}, {"all_classes", nullptr}};
        line["answers"] = json::array({answer});
        return line;
    };
    const auto said = [](const char* column, const char* text) {
        json line = json::object();
        line[column] = text;
        return line;
    };
    write_lines(folder / "data" / "LongBench" / "qasper_e.jsonl", {item("the cat", 100), item("a dog", 9000)});
    const std::string data = (folder / "data").string(), file = (folder / "said.jsonl").string();
    write_lines(file, {said("pred", "The cat."), said("generated", "cats")});
    const std::vector<std::string> words{"evaluate",           "--predictions", file, "--task",
                                         "longbench_qasper_e", "--data",        data, "--json"};
    const Outcome outcome = run_headscope(words);
    check_success(outcome);
    const json document = json::parse(outcome.out);
    CHECK(document.at("models").at(0).at("name") == "said");
    std::map<std::string, double> scores;
    for (const json& row : document.at("results"))
        if (row.at("metric") == "score") scores[row.at("subset").get<std::string>()] = row.at("value").get<double>();
    CHECK(scores == std::map<std::string, double>{{"", 0.5}, {"0-4k", 1}, {"8k+", 0}});
    CHECK(document.at("settings").at("limit") == 0);
    std::vector<std::string> ruled = words;
    ruled.insert(ruled.end(), {"--task-option", "longbench.rules=thudm"});
    const json by_thudm = json::parse(run_headscope(ruled).out);
    CHECK(by_thudm.at("results").size() == document.at("results").size());
    ruled.back() = "longbench.rules=mine";
    check_refusal(run_headscope(ruled), "expected longbench.rules=lm-eval or longbench.rules=thudm");
    // A folder as LongBench's pred.py fills it: one model, and the mean of the eleven tasks.
    const std::vector<std::string> eleven{"2wikimqa",   "hotpotqa", "multifieldqa_en", "qasper", "multi_news",
                                          "gov_report", "trec",     "triviaqa",        "samsum", "lcc",
                                          "repobench-p"};
    for (const std::string& task : eleven) {
        json one = item("the cat", 100);
        if (task == "trec") one["all_classes"] = json::array({"the cat", "a dog"});
        write_lines(folder / "data" / "LongBench" / (task + "_e.jsonl"), {one});
        write_lines(folder / "mine" / (task + ".jsonl"), {said("pred", task < "m" ? "the cat" : "birds")});
    }
    const std::string answers = (folder / "mine").string(), saved = (folder / "mine.evaluation.h5").string();
    const std::vector<std::string> of_folder{"evaluate", "--predictions", answers, "--task", "longbench_e", "--data",
                                             data,       "--json",        "-o",    saved};
    const Outcome all = run_headscope(of_folder);
    check_success(all);
    const json whole = json::parse(all.out);
    CHECK(whole.at("models").at(0).at("name") == "mine");
    std::map<std::string, double> means;
    for (const json& row : whole.at("results"))
        if (row.at("task") == "longbench_e") means[row.at("subset").get<std::string>()] = row.at("value").get<double>();
    REQUIRE(means.size() == 2);  // all lengths, and below 4000 words
    // 2wikimqa, hotpotqa, gov_report and lcc are right.
    CHECK(means.at("") == Approx(4.0 / 11));
    CHECK(means.at("0-4k") == Approx(4.0 / 11));
    CHECK(store::read_items(saved).size() == 11);
    CHECK(json::parse(store::read_items(saved).at(0).metrics).at("score") == 1);
    std::filesystem::remove(folder / "mine" / "lcc.jsonl");
    check_refusal(run_headscope(of_folder), "longbench_lcc_e.jsonl");
    check_usage_error(run_headscope({"evaluate", "--predictions", answers, "--data", data}));

    write_lines(folder / "data" / "LongBench" / "qasper_e.jsonl", {item("the cat", 100), item("a dog", 9000)});
    write_lines(file, {said("pred", "The cat."), said("pred", "cats"), said("pred", "one more")});
    check_refusal(run_headscope(words), "2 items");
    check_usage_error(
        run_headscope({"evaluate", sample().string(), "--predictions", file, "--task", "fda", "--data", data}));
    check_usage_error(run_headscope({"evaluate", "--task", "fda", "--data", data}));
}

TEST_CASE("list tasks names lm-eval's and their sets", "[app][evaluate][harness]") {
    const json tasks = json::parse(run_headscope({"list", "tasks", "--json"}).out);
    std::vector<std::string> names;
    for (const auto& task : tasks) names.push_back(task.at("name"));
    for (const char* wanted :
         {"arc_easy", "wikitext", "squad_completion", "deconattn", "natsl", "lazy", "zero_shot", "longbench_e"})
        CHECK(std::count(names.begin(), names.end(), wanted) == 1);
}
