// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/evaluation/scripted_model.h"

#include <cmath>
#include <set>

#include "core/evaluation/tasks.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;

namespace {

constexpr std::int64_t kEnd = 256;

/// Bytes and an end: says "1234567" behind a word, and ends.
test::ScriptedModel counting(std::int64_t max_positions = 0) {
    at::Tensor logits = at::zeros({257, 257});
    for (int i = 0; i < 257; ++i) logits[i][' '] = 1.0;
    logits[' ']['1'] = 2.0;
    for (char digit = '1'; digit < '7'; ++digit) logits[digit][digit + 1] = 2.0;
    logits['7'][kEnd] = 2.0;
    return test::ScriptedModel(logits, max_positions);
}

evaluation::Request request(const std::vector<std::string>& tasks) {
    evaluation::Request request;
    request.tasks = tasks;
    request.items = 3;
    request.said.tokenizer = tokenizer::Tokenizer::bytes();
    request.said.end_tokens = {kEnd};
    data::Essays essays{"made", {}};
    for (int i = 0; i < 50; ++i) essays.sentences.push_back("Nothing is seen in sentence " + std::to_string(i) + ".");
    request.said.essays = std::make_shared<const data::Essays>(essays);
    return request;
}

const data::RulerTask& task(const std::string& name) {
    return *data::find_ruler_task(name);
}

}  // namespace

TEST_CASE("An answer is generated to its end, cut to the model's length, and scored", "[evaluation]") {
    auto model = counting();
    auto wanted = request({"niah_single_1"});
    CHECK(evaluation::generated_answer(model, wanted.said, "The number is", 128, 0, {}).text == " 1234567");
    CHECK(evaluation::generated_answer(model, wanted.said, "The number is", 4, 0, {}).text == " 123");
    auto narrow = counting(200);
    CHECK(evaluation::generated_answer(narrow, wanted.said, std::string(150, 'x') + " is", 128, 200, {}).text ==
          " 1234567");
    CHECK(narrow.longest == 200 - 128);
    CHECK(evaluation::generated_answer(narrow, wanted.said, std::string(150, 'x') + " is", 128, 200, {}).cut);
    CHECK_FALSE(evaluation::generated_answer(narrow, wanted.said, "It is", 128, 200, {}).cut);
    {
        auto long_one = request({"niah_single_1"});
        long_one.said.files["niah_single_1"] = {{std::string(150, 'x'), {"8"}, 64}, {"It is", {"8"}, 64}};
        NoProgress quiet;
        const auto cut = evaluation::run_tasks(narrow, long_one, {}, 0, quiet);
        REQUIRE(cut.size() == 1);
        CHECK(cut[0].cut == 1);
        CHECK(cut[0].count == 2);
    }
    CHECK_THROWS_MATCHES(evaluation::generated_answer(narrow, wanted.said, "x", 128, 128, {}), Error,
                         test::IsError(ErrorCode::limit, "128 tokens of an answer"));

    wanted.said.files["niah_single_1"] = {
        {"It is", {"1234567", "7654321"}, 64}, {"It is", {"2345"}, 64}, {"It is", {"8"}, 1024}};
    std::vector<std::string> lines;
    wanted.on_answer = [&](const evaluation::AnsweredItem& answered) {
        CHECK(answered.score.generated == " 1234567");
        CHECK(answered.length == (lines.size() < 2 ? 64 : 1024));
        lines.push_back(evaluation::item_line(answered, 2, true));
    };
    NoProgress progress;
    const auto rows = evaluation::run_tasks(model, wanted, {}, 2, progress);
    CHECK(lines ==
          std::vector<std::string>{R"({"model":2,"task":"niah_single_1","item":0,"length":64,"prompt":"It is",)"
                                   R"("generated":" 1234567","score":0.5})"
                                   "\n",
                                   R"({"model":2,"task":"niah_single_1","item":1,"length":64,"prompt":"It is",)"
                                   R"("generated":" 1234567","score":1.0})"
                                   "\n",
                                   R"({"model":2,"task":"niah_single_1","item":0,"length":1024,"prompt":"It is",)"
                                   R"("generated":" 1234567","score":0.0})"
                                   "\n"});
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].model == 2);
    CHECK(rows[0].task == "niah_single_1");
    CHECK(rows[0].metric == "score");
    CHECK(rows[0].length == 64);
    CHECK(rows[0].value == 0.75);
    CHECK(rows[0].error == Approx(0.25));  // of 0.5 and 1
    CHECK(rows[0].count == 2);
    CHECK(rows[1].length == 1024);
    CHECK(rows[1].value == 0);
    CHECK(std::isnan(rows[1].error));
}

TEST_CASE("ruler_retrieval is the eight and their mean, each once", "[evaluation]") {
    auto model = counting();
    auto wanted = request({"ruler_retrieval", "niah_single_2"});
    wanted.lengths = {1500};
    std::vector<data::RulerItem> items;
    std::set<std::string> tasks;
    wanted.said.on_item = [&](const std::string& name, const data::RulerItem& item) {
        items.push_back(item);
        tasks.insert(name);
    };
    NoProgress progress;
    const auto rows = evaluation::run_tasks(model, wanted, {}, 0, progress);
    REQUIRE(rows.size() == 9);
    CHECK(items.size() == 8 * 3);
    CHECK(tasks.size() == 8);
    for (const auto& item : items) {
        CHECK(item.length <= 1500);
        CHECK(item.length > 1500 - 130);
    }
    CHECK(rows[8].task == "ruler_retrieval");
    CHECK(rows[8].count == 24);
    CHECK(rows[8].value == 0);
    // No chance involved: the answer counts up.
    for (const auto& row : rows) CHECK(row.length == 1500);
    wanted.seed = 2;
    const auto before = items.front().input;
    items.clear();
    evaluation::run_tasks(model, wanted, {}, 0, progress);
    CHECK(items.front().input != before);
}

TEST_CASE("Items that were dumped are read back as they were asked", "[evaluation]") {
    const test::TemporaryFolder folder;
    const auto wanted = request({});
    for (const data::RulerTask& one : data::ruler_tasks()) {
        INFO(one.name);
        const auto maker = evaluation::ruler_maker(wanted.said, one, 3000, 4);
        std::string lines;
        std::vector<data::RulerItem> made;
        for (std::int64_t i = 0; i < 3; ++i) {
            made.push_back(maker.item(i));
            lines += evaluation::ruler_item_line(made.back());
        }
        std::filesystem::create_directory(folder / one.name);
        test::write_file(evaluation::ruler_items_file(folder.path(), one.name), lines);
        const auto read = evaluation::read_ruler_items(folder.path(), one, std::nullopt);
        REQUIRE(read.size() == 3);
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(read[i].prompt == data::ruler_prompt(one, made[i].input, made[i].gen_prefix));
            CHECK(read[i].outputs == made[i].outputs);
            CHECK(read[i].max_length == 3000);
            CHECK(std::ssize(evaluation::prompt_ids(wanted.said, read[i].prompt)) + one.answer_tokens ==
                  made[i].length);
        }
    }
}

TEST_CASE("NVIDIA's columns are read, and a bad file is refused with its line", "[evaluation]") {
    const test::TemporaryFolder folder;
    std::filesystem::create_directory(folder / "niah_single_1");
    const auto file = evaluation::ruler_items_file(folder.path(), "niah_single_1");
    const auto read = [&](std::optional<std::int64_t> length) {
        return evaluation::read_ruler_items(folder.path(), task("niah_single_1"), length);
    };
    CHECK_THROWS_MATCHES(read({}), Error, test::IsError(ErrorCode::io, "test.jsonl"));
    test::write_file(file, "\n");
    CHECK_THROWS_MATCHES(read({}), Error, test::IsError(ErrorCode::usage, "expected items"));
    test::write_file(file, R"({"input": "Q?", "outputs": ["a"], "answer_prefix": " It is", "length": 77})"
                           "\n\n");
    const auto items = read(64);
    REQUIRE(items.size() == 1);
    CHECK(items[0].prompt == "Q? It is");
    CHECK(items[0].max_length == 64);
    CHECK_THROWS_MATCHES(read({}), Error, test::IsError(ErrorCode::format, "max_length"));
    test::write_file(file, R"({"input": "Q?", "outputs": ["a"], "max_length": 8})"
                           "\n[1]\n");
    CHECK_THROWS_MATCHES(read({}), Error, test::IsError(ErrorCode::format, "test.jsonl:2"));
    test::write_file(file, R"({"input": "Q?", "outputs": [], "max_length": 8})");
    CHECK_THROWS_MATCHES(read({}), Error, test::IsError(ErrorCode::format, "outputs"));
}

TEST_CASE("RULER's tasks refuse models without a tokenizer and lengths that hold no item", "[evaluation]") {
    auto model = counting();
    NoProgress progress;
    const auto refused = [&](const evaluation::Request& wrong, ErrorCode code, const std::string& part) {
        CHECK_THROWS_MATCHES(evaluation::run_tasks(model, wrong, {}, 0, progress), Error, test::IsError(code, part));
    };
    auto wanted = request({"ruler_vt"});
    wanted.lengths = {100};
    refused(wanted, ErrorCode::limit, "expected a length of at least");
    wanted.lengths = {0};
    refused(wanted, ErrorCode::limit, "context length");
    wanted.said.tokenizer = nullptr;
    refused(wanted, ErrorCode::usage, "expected a checkpoint with a tokenizer");
    CHECK_THROWS_MATCHES(evaluation::find_task("ruler_retreival"), Error,
                         test::IsError(ErrorCode::usage, "ruler_retrieval?"));
}

TEST_CASE("A prompt may be cut in the middle, and an answer end with a line but not begin with its end",
          "[evaluation]") {
    const auto said = request({"niah_single_1"}).said;
    for (const std::int64_t most : {20, 21}) {  // 21 / 2 tokens of each side
        auto model = counting();
        const auto answer = evaluation::whole_answer(model, said, std::string(150, 'x') + " is", 128, most, false, {});
        CHECK(answer.text == " 1234567");
        CHECK(answer.cut);
        CHECK(model.longest == 20);
    }
    auto whole = counting();
    CHECK_FALSE(evaluation::whole_answer(whole, said, "It is", 128, 5, false, {}).cut);
    CHECK(whole.longest == 5);
    at::Tensor logits = at::zeros({257, 257});
    logits['s']['\n'] = 3.0;
    logits['s'][kEnd] = 2.0;
    logits['s'][' '] = 1.0;
    logits['\n'][kEnd] = 1.0;
    logits[' ']['1'] = 1.0;
    logits['1']['\n'] = 1.0;
    test::ScriptedModel model(logits);
    CHECK(evaluation::whole_answer(model, said, "It is", 8, 0, true, {}).text == " 1\n");
    CHECK(evaluation::whole_answer(model, said, "It is", 8, 0, false, {}).text == "\n");
}
