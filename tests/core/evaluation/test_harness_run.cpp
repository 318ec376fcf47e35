// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/evaluation/scripted_model.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/evaluation/harness/longbench.h"
#include "core/evaluation/tasks.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using namespace headscope::evaluation;
using nlohmann::json;

namespace {

constexpr std::int64_t kEnd = 256;
constexpr double kPeak = 3;      ///< logit of what is likely; all others are 0
constexpr float kClose = 1e-5F;  ///< float32 log-softmax of 257 logits, summed over a few tokens

/// Bytes and an end: behind "b" it says "c", behind a space "b", behind a digit the next one; else a space.
test::ScriptedModel spelling() {
    at::Tensor logits = at::zeros({257, 257});
    for (int i = 0; i < 257; ++i) logits[i][' '] = kPeak;
    const auto after = [&](char before, int next) {
        logits[before][' '] = 0.0;
        logits[before][next] = kPeak;
    };
    after('b', 'c');
    after(' ', 'b');
    for (char digit = '1'; digit < '7'; ++digit) after(digit, digit + 1);
    after('7', static_cast<int>(kEnd));
    return test::ScriptedModel(logits);
}

/// Log-likelihood of a number of likely tokens and a number of others.
double sum_of(int likely, int others) {
    const double normaliser = std::log(256 + std::exp(kPeak));
    return likely * (kPeak - normaliser) - others * normaliser;
}

std::shared_ptr<const HarnessItems> items_of(const std::string& task, std::vector<HarnessItem> items) {
    HarnessItems all;
    all.task = find_harness_task(task);
    REQUIRE(all.task != nullptr);
    all.items = std::move(items);
    return std::make_shared<const HarnessItems>(std::move(all));
}

HarnessItem choice(const std::string& context, const std::vector<std::string>& options, std::int64_t gold) {
    HarnessItem item;
    item.place = "test.jsonl:1";
    for (const std::string& option : options) {
        item.requests.push_back({context, " " + option});
        item.characters.push_back(std::ssize(option));
    }
    item.gold = gold;
    return item;
}

HarnessItem question(const std::string& prompt, std::vector<std::string> answers) {
    HarnessItem item;
    item.place = "validation.jsonl:1";
    item.prompt = prompt;
    item.answers = std::move(answers);
    return item;
}

Request request_of(std::vector<std::shared_ptr<const HarnessItems>> tasks) {
    Request request;
    for (const auto& items : tasks) request.tasks.push_back(items->task->name);
    request.said.tokenizer = tokenizer::Tokenizer::bytes();
    request.said.end_tokens = {kEnd};
    request.harness.tasks = std::move(tasks);
    request.harness.tokens.tokenizer = request.said.tokenizer;
    request.harness.tokens.length = 64;
    request.harness.shots = 3;
    request.harness.ids = encode_items(request.harness, request.said, 0, nullptr);
    return request;
}

const store::EvaluationResult& row_of(const std::vector<store::EvaluationResult>& rows, const std::string& task,
                                      const std::string& metric) {
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const auto& one) { return one.task == task && one.metric == metric; });
    REQUIRE(row != rows.end());
    return *row;
}

}  // namespace

TEST_CASE("Choices and last words are scored together, judged, and handed out in order", "[evaluation][harness]") {
    auto model = spelling();
    HarnessItem word;
    word.place = "test.jsonl:7";
    word.requests = {{"x", " bc"}};
    auto wanted = request_of({items_of("arc_easy", {choice("Q", {"bc", "b", "xyzxyz"}, 1), choice("Q", {"x", "bc"}, 0)}),
                            items_of("lambada_openai", {word, word})});
    std::vector<json> lines;
    std::vector<store::EvaluatedItem> rows_of_items;
    wanted.on_answer = [&](const AnsweredItem& answered) {
        lines.push_back(json::parse(item_line(answered, 4, true)));
        rows_of_items.push_back(evaluated_item(answered, 4, *wanted.said.tokenizer));
    };
    NoProgress progress;
    const auto rows = run_tasks(model, wanted, {}, 4, progress);
    CHECK(row_of(rows, "arc_easy", "acc").value == 0.5);  // " b" has the fewest tokens to lose on
    CHECK(row_of(rows, "arc_easy", "acc").count == 2);
    CHECK(row_of(rows, "arc_easy", "acc").length == 64);
    CHECK(row_of(rows, "arc_easy", "acc").shots == 3);
    CHECK(row_of(rows, "arc_easy", "acc").model == 4);
    CHECK(row_of(rows, "lambada_openai", "acc").value == 1);
    CHECK(row_of(rows, "lambada_openai", "perplexity").value == Approx(std::exp(-sum_of(3, 0))));

    REQUIRE(lines.size() == 4);
    const json& first = lines[0];
    CHECK(first.at("model") == 4);
    CHECK(first.at("task") == "arc_easy");
    CHECK(first.at("item") == 0);
    CHECK(first.at("gold") == 1);
    CHECK(first.at("acc") == 1);
    CHECK(first.at("tokens") == json({3, 2, 7}));
    CHECK(first.at("greedy") == json({true, true, false}));
    CHECK(first.at("loglikelihood").at(0).get<double>() == Approx(sum_of(3, 0)).margin(kClose));
    CHECK(first.at("loglikelihood").at(2).get<double>() == Approx(sum_of(1, 6)).margin(kClose));
    CHECK(first.at("context").at(2) == "Q");
    CHECK(first.at("continuation").at(2) == " xyzxyz");
    CHECK(lines[1].at("item") == 1);
    CHECK(lines[1].at("acc") == 0);
    CHECK(lines[3].at("task") == "lambada_openai");
    CHECK_FALSE(lines[3].contains("gold"));

    CHECK(rows_of_items[0].gold == 1);
    CHECK(rows_of_items[0].chosen == 1);
    CHECK(rows_of_items[0].right);
    CHECK(rows_of_items[0].shots == 3);
    CHECK(rows_of_items[3].gold == -1);
    CHECK(json::parse(rows_of_items[0].metrics).at("acc") == 1);
    CHECK(json::parse(rows_of_items[3].metrics) == json({{"acc", 1.0}}));  // a perplexity is no mean over items
    const json texts = json::parse(rows_of_items[0].texts);
    const json& pieces = texts.at("requests").at(2).at("pieces");
    REQUIRE(pieces.size() == 7);
    CHECK(pieces.at(0).at(0) == " ");
    CHECK(pieces.at(1).at(0) == "x");
    CHECK(pieces.at(0).at(1).get<double>() == Approx(sum_of(1, 0)).margin(kClose));
    CHECK(pieces.at(1).at(1).get<double>() == Approx(sum_of(0, 1)).margin(kClose));
}

TEST_CASE("Items that lose the begin of their context or prompt are counted", "[evaluation][harness]") {
    auto model = spelling();
    const std::string longer(70, 'Q');
    auto wanted = request_of({items_of("arc_easy", {choice("Q", {"bc", "b"}, 1), choice(longer, {"x", "bc"}, 0)}),
                            items_of("fda", {question("b", {"c"}), question(longer, {"c"}), question(longer, {"c"})})});
    for (const auto& items : wanted.harness.tasks)
        if (items->task->name == std::string("fda")) wanted.harness.tokens.length = items->task->answer_tokens + 8;
    NoProgress progress;
    auto rows = run_tasks(model, wanted, {}, 0, progress);
    CHECK(row_of(rows, "arc_easy", "acc").cut == 1);
    CHECK(row_of(rows, "arc_easy", "acc_norm").cut == 1);
    CHECK(row_of(rows, "fda", "contains").cut == 2);
    wanted.harness.baselines = true;
    wanted.harness.tokens.length = 2048;
    wanted.harness.ids = encode_items(wanted.harness, wanted.said, 0, nullptr);
    rows = run_tasks(model, wanted, {}, 0, progress);
    CHECK(row_of(rows, "arc_easy", "acc").cut == 0);
    CHECK(row_of(rows, "arc_easy", "chance").cut == 0);
    CHECK(row_of(rows, "fda", "contains").cut == 0);
}

TEST_CASE("A page is one item, whatever its windows", "[evaluation][harness]") {
    auto model = spelling();
    HarnessItem page;
    page.place = "test.jsonl:2";
    page.requests = {{"", "bc bc bc bc"}};
    page.words = 4;
    page.bytes = 11;
    auto wanted = request_of({items_of("wikitext", {page})});
    wanted.harness.tokens.length = 4;
    wanted.harness.tokens.prefix = ' ';
    wanted.harness.tokens.prefix_text = " ";
    wanted.harness.ids = encode_items(wanted.harness, wanted.said, 0, nullptr);
    CHECK(wanted.harness.ids.requests.size() == 3);
    std::vector<json> lines, texts;
    wanted.on_answer = [&](const AnsweredItem& answered) {
        lines.push_back(json::parse(item_line(answered, 0, false)));
        texts.push_back(json::parse(evaluated_item(answered, 0, *wanted.said.tokenizer).texts));
    };
    NoProgress progress;
    const auto rows = run_tasks(model, wanted, {}, 0, progress);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].at("tokens") == json({11}));
    CHECK(lines[0].at("loglikelihood").at(0).get<double>() == Approx(sum_of(11, 0)).margin(kClose));
    CHECK_FALSE(lines[0].contains("continuation"));
    std::string spelt;
    for (const auto& piece : texts[0].at("requests").at(0).at("pieces")) spelt += piece.at(0).get<std::string>();
    CHECK(spelt == "bc bc bc bc");
    CHECK(row_of(rows, "wikitext", "word_perplexity").value == Approx(std::exp(-sum_of(11, 0) / 4)));
}

TEST_CASE("An answer ends at a stop's text, and each stop cuts what is left", "[evaluation][harness]") {
    auto model = spelling();
    const auto wanted = request_of({items_of("fda", {question("1", {"3"})})});
    const auto answer = [&](const std::vector<std::string>& stops) {
        return generated_answer(model, wanted.said, "The number is 1", 128, 0, {}, stops).text;
    };
    CHECK(answer({}) == "234567");
    const std::int64_t before = model.passes;
    CHECK(answer({"45"}) == "23");  // two tokens
    CHECK(model.passes == before + 4);
    CHECK(answer({"9", "6", "3"}) == "2");
    CHECK(answer({"3", "2"}).empty());
    CHECK(answer({"8"}) == "234567");
}

TEST_CASE("LongBench has rows by length, and a mean of the tasks for each length that all have",
          "[evaluation][harness]") {
    auto model = spelling();
    std::vector<std::shared_ptr<const HarnessItems>> tasks;
    for (const std::string& name : longbench_set()) {
        // Answers are "234567": the first is right, the second wrong and longer.
        std::vector<HarnessItem> items{question("1", {"234567"}), question("1", {"no"})};
        for (HarnessItem& item : items) item.classes = {"234567"};
        items[0].subset = "0-4k";
        items[1].subset = name == "longbench_lcc_e" ? "0-4k" : "8k+";
        tasks.push_back(items_of(name, std::move(items)));
    }
    auto wanted = request_of(std::move(tasks));
    wanted.harness.tokens.length = 2048;
    NoProgress progress;
    const auto rows = run_tasks(model, wanted, {}, 0, progress);
    const auto value = [&](const std::string& task, const std::string& metric, const std::string& subset) {
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& one) {
            return one.task == task && one.metric == metric && one.subset == subset;
        });
        return row == rows.end() ? -1 : row->value;
    };
    CHECK(value("longbench_qasper_e", "score", "") == 0.5);
    CHECK(value("longbench_qasper_e", "qa_f1_score", "0-4k") == 1);
    CHECK(value("longbench_qasper_e", "score", "8k+") == 0);
    CHECK(value("longbench_qasper_e", "score", "4-8k") == -1);
    CHECK(value("longbench_lcc_e", "code_sim_score", "0-4k") == 0.5);
    CHECK(value("longbench_e", "score", "") == Approx(0.5));
    CHECK(value("longbench_e", "score", "0-4k") == Approx(10.5 / 11));
    CHECK(value("longbench_e", "score", "8k+") == -1);  // lcc has none
    CHECK(row_of(rows, "longbench_e", "score").count == 22);
}

TEST_CASE("Said answers are right if they contain one of several, and are read behind the cut prompt",
          "[evaluation][harness]") {
    auto model = spelling();
    auto wanted =
        request_of({items_of("fda", {question(std::string(200, 'x') + "1", {"no", "345"}), question("1", {"8"})})});
    std::vector<json> lines;
    std::vector<store::EvaluatedItem> items;
    wanted.on_answer = [&](const AnsweredItem& answered) {
        lines.push_back(json::parse(item_line(answered, 0, true)));
        items.push_back(evaluated_item(answered, 0, *wanted.said.tokenizer));
    };
    NoProgress progress;
    const auto rows = run_tasks(model, wanted, {}, 0, progress);
    CHECK(model.longest == 64 - 48);
    CHECK(row_of(rows, "fda", "contains").value == 0.5);
    CHECK(row_of(rows, "fda", "contains").error == Approx(0.5));  // of 1 and 0
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].at("generated") == "234567");
    CHECK(lines[0].at("contains") == 1);
    CHECK(lines[1].at("contains") == 0);
    CHECK(lines[1].at("prompt") == "1");
    CHECK_FALSE(lines[0].contains("gold"));
    CHECK(items[0].right);
    CHECK_FALSE(items[1].right);
    CHECK(json::parse(items[1].texts) == json({{"prompt", "1"}, {"generated", "234567"}, {"answers", {"8"}}}));
}

TEST_CASE("Tasks on data sets: options, sets, and what cannot be", "[evaluation][harness]") {
    const HarnessTask& squad = *find_harness_task("squad_completion");
    const HarnessTask published = with_options(squad, {{"tokens", 48}});
    CHECK(published.answer_tokens == 48);
    CHECK(published.stops == std::vector<std::string>{"\n"});
    CHECK(squad.answer_tokens == 256);
    CHECK_THROWS_MATCHES(with_options(squad, {{"tokens", 0}}), Error, test::IsError(ErrorCode::usage, "tokens"));
    CHECK_THROWS_MATCHES(with_options(squad, {{"stops", 1}}), Error,
                         test::IsError(ErrorCode::usage, "squad_completion.tokens"));
    CHECK_THROWS_MATCHES(with_options(*find_harness_task("copa"), {{"tokens", 4}}), Error,
                         test::IsError(ErrorCode::usage, "none of copa"));

    for (const TaskSet& set : task_sets()) {
        CHECK(expanded_tasks({set.name}) == set.tasks);
        for (const std::string& name : set.tasks) CHECK_FALSE(find_task(name).kind->is_set());
    }
    CHECK(expanded_tasks({"copy", "arc_easy", "copy"}) == std::vector<std::string>{"copy", "arc_easy"});
    CHECK_THROWS_MATCHES(expanded_tasks({"zero_shots"}), Error, test::IsError(ErrorCode::usage, "zero_shot?"));

    auto model = spelling();
    NoProgress progress;
    Request wanted;
    wanted.tasks = {"arc_easy"};
    CHECK_THROWS_MATCHES(run_tasks(model, wanted, {}, 0, progress), Error, test::IsError(ErrorCode::usage, "--data"));

    wanted = request_of({items_of("arc_easy", {choice("Question", {"bc", "b"}, 0)})});
    CHECK_NOTHROW(encode_items(wanted.harness, wanted.said, 10, nullptr));
    CHECK_THROWS_MATCHES(encode_items(wanted.harness, wanted.said, 9, nullptr), Error,
                         test::IsError(ErrorCode::limit, "at most 9 tokens"));
    const auto mute = items_of("fda", {question("", {"8"})});
    CHECK_THROWS_MATCHES(request_of({mute}), Error, test::IsError(ErrorCode::usage, "validation.jsonl:1"));
    Cancellation cancellation;
    cancellation.request();
    CHECK_THROWS_AS(encode_items(wanted.harness, wanted.said, 0, &cancellation), Stopped);
}

TEST_CASE("A model whose logits are no numbers is refused with the item", "[evaluation][harness]") {
    test::ScriptedModel model(at::zeros({257, 257}).fill_(std::nan("")));
    auto wanted = request_of({items_of("arc_easy", {choice("Q", {"bc", "b"}, 0)})});
    NoProgress progress;
    CHECK_THROWS_MATCHES(run_tasks(model, wanted, {}, 0, progress), Error, test::IsError(ErrorCode::limit));
}
