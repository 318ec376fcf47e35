// SPDX-License-Identifier: GPL-3.0-or-later
// SQuAD against transformers' windows, labels and answers, and the official scores (tests/oracle/generate/squad.py).
#include "tests/catch_with_torch.h"

#include <cmath>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include "core/checkpoint/checkpoint.h"
#include "core/data/batch/span_windows.h"
#include "core/data/special_tokens.h"
#include "core/data/tokenizer_choice.h"
#include "core/evaluation/questions.h"
#include "tests/core/base/bytes_read.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using nlohmann::json;
using test::IsError;

namespace {

json golden_squad() {
    std::ifstream file(test::golden_file("squad.json"));
    return json::parse(file);
}

/// The golden model's folder, with its questions as JSON lines of the hub.
class SquadFolder {
public:
    explicit SquadFolder(const json& model) {
        test::TinyCheckpoint checkpoint;
        checkpoint.config = model.at("config");
        checkpoint.tensors = model.at("tensors").get<std::map<std::string, std::vector<std::int64_t>>>();
        checkpoint.write(folder_.path());
        test::write_file(folder_ / "tokenizer.json", model.at("tokenizer").dump());
        test::write_file(folder_ / "tokenizer_config.json",
                         R"({"tokenizer_class": "PreTrainedTokenizerFast", "cls_token": "[CLS]", "sep_token": "[SEP]",)"
                         R"("pad_token": "[PAD]", "model_input_names": ["input_ids", "token_type_ids"]})");
        test::write_file(folder_ / "questions.jsonl", lines(model.at("questions")));
    }
    static std::string lines(const json& questions) {
        std::string all;
        for (const json& one : questions) all += one.dump() + "\n";
        return all;
    }
    evaluation::QuestionItems items(const std::string& task) const {
        const Cancellation never;
        return evaluation::read_question_items((folder_ / "questions.jsonl").string(), task, never);
    }
    const std::filesystem::path& path() const { return folder_.path(); }

private:
    test::TemporaryFolder folder_;
};

std::vector<std::int64_t> numbers(const data::TokenCode& code, const std::string& text) {
    const std::vector<std::int32_t> narrow = code.encode(text, nullptr);
    return {narrow.begin(), narrow.end()};
}

std::map<std::string, double> by_name(const std::vector<evaluation::NamedValue>& values) {
    std::map<std::string, double> all;
    for (const auto& one : values) all[one.metric] = one.value;
    return all;
}

void check_values(const std::map<std::string, double>& found, const json& wanted) {
    CHECK(found.size() == wanted.size());
    for (const auto& [metric, value] : wanted.items()) {
        INFO(metric);
        REQUIRE(found.contains(metric));
        CHECK(found.at(metric) == Approx(value.get<double>()).epsilon(1e-12).margin(1e-12));
    }
}

}  // namespace

TEST_CASE("Windows and labels of questions are transformers'", "[evaluation][squad][golden]") {
    const json model = golden_squad().at("model");
    const SquadFolder folder(model);
    const data::ChosenTokenizer tokenizer = data::tokenizer_at(folder.path());
    const auto items = folder.items(evaluation::kSquad2);
    for (const json& run : model.at("runs")) {
        data::ObjectiveSettings objective;
        objective.kind = "spans";
        objective.stride = run.at("stride");
        const data::ItemForm form{objective, data::TokenCode(tokenizer.tokenizer),
                                  data::special_ids(*tokenizer.tokenizer, tokenizer.files),
                                  data::frame_of(*tokenizer.tokenizer), run.at("length")};
        for (std::size_t q = 0; q < items.questions.size(); ++q) {
            INFO(run.at("length") << " " << items.questions[q].id);
            const data::Question& one = items.questions[q];
            const auto question = numbers(form.code, one.text), context = numbers(form.code, one.context);
            const auto places = data::token_ranges(*tokenizer.tokenizer, one.context, nullptr);
            REQUIRE(places.size() == context.size());
            data::TokenSpan answer{-1, -1};
            if (!one.answers.empty()) {
                const auto begin = static_cast<std::int64_t>(one.begins.front());
                answer = data::answer_tokens(places, {begin, begin + std::ssize(one.answers.front())});
            }
            const json& wanted = run.at("items")[q].at("windows");
            const data::SpanCut cut = data::cut_context(form, std::ssize(question), std::ssize(context));
            REQUIRE(cut.windows() == std::ssize(wanted));
            for (std::int64_t w = 0; w < cut.windows(); ++w) {
                const json& theirs = wanted[static_cast<std::size_t>(w)];
                const auto sequence = data::span_sequence(form, cut, cut.window(w), question, context);
                CHECK(sequence.tokens.ids == theirs.at("ids").get<std::vector<std::int64_t>>());
                CHECK(sequence.tokens.types == theirs.at("types").get<std::vector<std::int64_t>>());
                CHECK(data::answer_in(sequence, cut.window(w), answer) == theirs.at("labels").get<data::TokenSpan>());
            }
        }
    }
}

TEST_CASE("Windows that pass each layer together have the answers of float32", "[evaluation][squad][residence]") {
    const json model = golden_squad().at("model");
    const SquadFolder folder(model);
    const data::ChosenTokenizer tokenizer = data::tokenizer_at(folder.path());
    const auto file = checkpoint::Checkpoint::open(folder.path());
    const auto items = folder.items(evaluation::kSquad2);
    const json& run = model.at("runs").front();
    evaluation::QuestionOptions options;
    options.stride = run.at("stride");
    std::uint64_t read = 0;
    const auto answers = [&](model::Residence residence, std::int64_t group_tokens) {
        const auto built = model::Model::build(*file, checkpoint::LoadAs::float32, nullptr, nullptr, residence);
        evaluation::ScoreOptions score;
        score.batch_tokens = 1;  // each window is a batch
        score.group_tokens = group_tokens;
        const std::uint64_t before = test::bytes_read();
        auto said = evaluation::answer_questions(*built, tokenizer, items, run.at("length"), options, score, {});
        read = test::bytes_read() - before;
        return said;
    };
    const auto expected = answers(model::Residence::float32, 1);
    answers(model::Residence::stream, 1);
    const std::uint64_t alone = read;
    const auto found = answers(model::Residence::stream, 1 << 18);
    CHECK(read < alone);
    REQUIRE(found.size() == expected.size());
    for (std::size_t q = 0; q < found.size(); ++q) {
        CHECK(found[q].text == expected[q].text);
        CHECK((found[q].no_answer == expected[q].no_answer));
        CHECK(found[q].windows == expected[q].windows);
    }
}

TEST_CASE("Answers to questions are transformers', in every batch", "[evaluation][squad][golden]") {
    const json model = golden_squad().at("model");
    const SquadFolder folder(model);
    const data::ChosenTokenizer tokenizer = data::tokenizer_at(folder.path());
    const auto built = model::Model::build(*checkpoint::Checkpoint::open(folder.path()), checkpoint::LoadAs::float32);
    auto items = folder.items(evaluation::kSquad2);
    for (const json& run : model.at("runs")) {
        evaluation::QuestionOptions options;
        options.stride = run.at("stride");
        options.best = run.at("best");
        options.longest = run.at("longest");
        for (const std::int64_t batch_tokens : {std::int64_t{1}, std::int64_t{4096}}) {
            evaluation::ScoreOptions score;
            score.batch_tokens = batch_tokens;
            options.threshold = 1e9;  // every answer is given
            items.task = evaluation::kSquad2;
            const auto given =
                evaluation::answer_questions(*built, tokenizer, items, run.at("length"), options, score, {});
            options.threshold = 0;
            const auto dropped =
                evaluation::answer_questions(*built, tokenizer, items, run.at("length"), options, score, {});
            items.task = evaluation::kSquad;
            const auto first =
                evaluation::answer_questions(*built, tokenizer, items, run.at("length"), options, score, {});
            for (std::size_t q = 0; q < given.size(); ++q) {
                const json& theirs = run.at("items")[q];
                INFO(run.at("length") << " " << items.questions[q].id);
                const bool any = theirs.at("text").is_string();
                const std::string text = any ? theirs.at("text").get<std::string>() : "";
                const auto no_answer = theirs.at("no_answer").get<double>();
                CHECK(given[q].text == text);
                CHECK(first[q].text == (any ? text : "empty"));
                CHECK(dropped[q].text == (no_answer > 0 ? "" : text));
                CHECK_FALSE(first[q].no_answer);
                REQUIRE(given[q].no_answer);
                CHECK(*given[q].no_answer == Approx(no_answer).margin(1e-4));
                CHECK(given[q].windows == std::ssize(theirs.at("windows")));
            }
        }
    }
}

TEST_CASE("Answers are scored as the official scripts do", "[evaluation][squad][golden]") {
    const json scores = golden_squad().at("scores");
    const test::TemporaryFolder folder;
    const auto questions = (folder / "dev.jsonl").string();
    test::write_file(questions, SquadFolder::lines(scores.at("items")));
    const Cancellation never;
    const auto second = evaluation::read_question_items(questions, evaluation::kSquad2, never);
    std::vector<evaluation::SaidAnswer> said;
    for (std::size_t i = 0; i < second.questions.size(); ++i)
        said.push_back({scores.at("said")[i].get<std::string>(), scores.at("no_answer")[i].get<double>()});
    std::vector<std::string> ids;
    const auto values = evaluation::score_questions(second, said, 0, [&](const evaluation::AnsweredItem& answered) {
        const json line = json::parse(evaluation::item_line(answered, 0, false));
        ids.push_back(line.at("id"));
        CHECK(line.at("generated") == scores.at("said")[ids.size() - 1]);
        CHECK(line.at("no_answer") == scores.at("no_answer")[ids.size() - 1]);
        CHECK(line.contains("exact"));
    });
    CHECK(ids.size() == second.questions.size());
    check_values(by_name(values), scores.at("squad_v2"));

    // Without no_answer there is no threshold to look for.
    for (auto& one : said) one.no_answer.reset();
    CHECK_FALSE(by_name(evaluation::score_questions(second, said, 0, {})).contains("best_f1"));

    CHECK_THROWS_MATCHES(evaluation::read_question_items(questions, evaluation::kSquad, never), Error,
                         IsError(ErrorCode::usage, "dev.jsonl:"));
    evaluation::QuestionItems first;
    std::vector<evaluation::SaidAnswer> answers;
    first.task = first.name = evaluation::kSquad;
    for (std::size_t i = 0; i < said.size(); ++i) {
        if (second.questions[i].answers.empty()) continue;
        first.questions.push_back(second.questions[i]);
        answers.push_back(said[i]);
    }
    check_values(by_name(evaluation::score_questions(first, answers, 0, {})), scores.at("squad"));
}

TEST_CASE("Questions come from the hub's lines, the original document and folders of data sets",
          "[evaluation][squad]") {
    const json model = golden_squad().at("model");
    const test::TemporaryFolder folder;
    json paragraphs = json::array();
    for (const json& one : model.at("questions")) {
        json answers = json::array();
        for (std::size_t i = 0; i < one.at("answers").at("text").size(); ++i)
            answers.push_back(
                {{"text", one.at("answers").at("text")[i]}, {"answer_start", one.at("answers").at("answer_start")[i]}});
        json question, paragraph;
        question["id"] = one.at("id");
        question["question"] = one.at("question");
        question["answers"] = answers;
        paragraph["context"] = one.at("context");
        paragraph["qas"] = json::array({question});
        paragraphs.push_back(paragraph);
    }
    json article, document;
    article["paragraphs"] = paragraphs;
    document["version"] = "v2.0";
    document["data"] = json::array({article});
    test::write_file(folder / "dev-v2.0.json", document.dump());
    std::filesystem::create_directories(folder / "squad_v2");
    test::write_file(folder / "squad_v2" / "validation.jsonl", SquadFolder::lines(model.at("questions")));
    const Cancellation never;
    const auto read = [&](const std::string& entry) {
        return evaluation::read_question_items(entry, evaluation::kSquad2, never);
    };
    const auto original = read("dev=" + (folder / "dev-v2.0.json").string());
    const auto hub = read(folder.path().string());
    CHECK(original.name == "dev");
    CHECK(original.text == "dev-v2.0");
    CHECK(hub.name == "squad_v2");
    REQUIRE(original.questions.size() == hub.questions.size());
    for (std::size_t q = 0; q < hub.questions.size(); ++q) {
        const data::Question &one = original.questions[q], &other = hub.questions[q];
        CHECK(one.id == other.id);
        CHECK(one.text == other.text);
        CHECK(one.context == other.context);
        CHECK(one.answers == other.answers);
        CHECK(one.begins == other.begins);
        CHECK_FALSE(one.text.starts_with(' '));
        for (std::size_t i = 0; i < one.answers.size(); ++i)
            CHECK(one.context.substr(one.begins[i], one.answers[i].size()) == one.answers[i]);
    }
    const auto refused = [&](json question, const std::string& part) {
        test::write_file(folder / "bad.jsonl", question.dump() + "\n");
        CHECK_THROWS_MATCHES(read((folder / "bad.jsonl").string()), Error, IsError(ErrorCode::format, part));
    };
    json bad = model.at("questions")[0];
    bad["answers"]["answer_start"][0] = 5000;
    refused(bad, "bad.jsonl:1");
    bad["answers"]["answer_start"] = json::array({1});
    refused(bad, "one for each text");
    bad.erase("context");
    refused(bad, "context");
}

TEST_CASE("Stored answers are matched by id", "[evaluation][squad]") {
    const test::TemporaryFolder folder;
    evaluation::QuestionItems items;
    items.task = items.name = evaluation::kSquad2;
    items.questions = {{"a", "q", "one two", {"one"}, {0}}, {"b", "q", "one two", {}, {}}};
    const auto read = [&](const std::string& content) {
        test::write_file(folder / "said.jsonl", content);
        std::string sha256;
        auto said = evaluation::read_stored_answers(folder / "said.jsonl", items, sha256);
        CHECK(sha256.size() == 64);
        return said;
    };
    const auto lines = read(R"({"id": "b", "generated": "", "no_answer": 2.5})"
                            "\n"
                            R"({"id": "a", "generated": "one"})"
                            "\n");
    CHECK(lines.at(0).text == "one");
    CHECK_FALSE(lines.at(0).no_answer);
    CHECK(lines.at(1).no_answer == 2.5);
    CHECK(read(R"({"b": "two", "a": "one"})").at(1).text == "two");
    // As BERT's and transformers' scripts write predictions.json.
    test::write_file(folder / "predictions.json", json({{"b", "two"}, {"a", "one"}}).dump(4) + "\n");
    std::string sha256;
    CHECK(evaluation::read_stored_answers(folder / "predictions.json", items, sha256).at(1).text == "two");
    const auto refused = [&](const std::string& content, const std::string& part) {
        CHECK_THROWS_MATCHES(read(content), Error, IsError(ErrorCode::usage, part));
    };
    refused(R"({"a": "one"})", "question b");
    refused(R"({"a": "one", "b": "", "c": ""})", "answers of 2 questions");
    refused("{\"id\": \"a\", \"generated\": \"\"}\n{\"id\": \"a\", \"generated\": \"\"}\n", "one answer of question a");
}
