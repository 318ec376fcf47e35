// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/harness/harness_items.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/io/sha256.h"
#include "core/data/source/parquet_rows.h"
#include "core/evaluation/harness/longbench.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using evaluation::HarnessItem;
using evaluation::HarnessTask;
using evaluation::ItemsOptions;
using Json = nlohmann::json;

namespace {

const std::filesystem::path golden_folder = test::golden_file("harness");

const Json& golden() {
    static const Json all = [] {
        std::ifstream file(golden_folder / "items.json");
        return Json::parse(file);
    }();
    return all;
}

const HarnessTask& task(const std::string& name) {
    const HarnessTask* found = evaluation::find_harness_task(name);
    REQUIRE(found != nullptr);
    return *found;
}

ItemsOptions shots(std::int64_t count, bool first = false, std::uint64_t seed = 1234) {
    ItemsOptions options;
    options.shots = count;
    options.first_shots = first;
    options.seed = seed;
    return options;
}

/// By their names in items.json.
const std::map<std::string, ItemsOptions>& draws() {
    static const std::map<std::string, ItemsOptions> all = {{"0", shots(0)},
                                                            {"1", shots(1)},
                                                            {"5", shots(5)},
                                                            {"1 of seed 7", shots(1, false, 7)},
                                                            {"2 first", shots(2, true)}};
    return all;
}

void check_texts(const HarnessItem& item, const Json& expected, const std::string& draw) {
    const Json& continuations = expected.at("continuations");
    const Json& contexts = expected.at("contexts").at(draw);
    REQUIRE(item.requests.size() == continuations.size());
    for (std::size_t i = 0; i < item.requests.size(); ++i) {
        CHECK(item.requests[i].context == contexts[std::min(i, contexts.size() - 1)].get<std::string>());
        CHECK(item.requests[i].continuation == continuations[i].get<std::string>());
    }
    CHECK(item.gold == expected.value("gold", 0));
    CHECK(item.words == expected.value("words", 0));
    CHECK(item.bytes == expected.value("bytes", 0));
    CHECK(item.characters == expected.value("characters", std::vector<std::int64_t>()));
}

void check_said(const HarnessItem& item, const HarnessTask& of, const Json& expected) {
    CHECK(item.requests.empty());
    CHECK(item.prompt == expected.at("prompt").get<std::string>());
    CHECK(item.answers == expected.at("answers").get<std::vector<std::string>>());
    CHECK(of.answer_tokens == expected.at("tokens").get<std::int64_t>());
    CHECK(of.stops == expected.at("stops").get<std::vector<std::string>>());
}

/// One record as a task's only item.
HarnessItem item_of(const std::string& name, const Json& record) {
    const test::TemporaryFolder folder;
    std::filesystem::create_directory(folder / name);
    test::write_file(folder / name / (task(name).split + ".jsonl"), "\n" + record.dump());
    return evaluation::read_items(folder.path(), task(name), {}).items.at(0);
}

/// The record of a task that is right, with some columns changed; null takes one away.
Json record_of(const std::string& name, const Json& changes) {
    static const std::map<std::string, Json> right = {
        {"arc_easy", Json::parse(R"({"question":"q","choices":{"text":["a","b"],"label":["A","B"]},"answerKey":"B"})")},
        {"openbookqa", Json::parse(R"({"question_stem":"q","choices":{"text":["a"],"label":["A"]},"answerKey":"A"})")},
        {"boolq", {{"passage", "p"}, {"question", "q"}, {"label", 1}}},
        {"copa", {{"premise", "It is."}, {"choice1", "A."}, {"choice2", "B."}, {"question", "cause"}, {"label", 1}}},
        {"hellaswag",
         {{"activity_label", "a"}, {"ctx_a", "b"}, {"ctx_b", "c"}, {"endings", {"d", "e"}}, {"label", "1"}}},
        {"winogrande", {{"sentence", "a _ b"}, {"option1", "c"}, {"option2", "d"}, {"answer", "2"}}},
        {"social_iqa",
         {{"context", "c"}, {"question", "q"}, {"answerA", "a"}, {"answerB", "b"}, {"answerC", "c"}, {"label", "3"}}},
        {"wikitext", {{"page", "p"}}},
        {"fda", {{"text", "t"}, {"value", "v"}}},
        {"based_nq", {{"context", "c"}, {"question", "q"}, {"answers", {"a"}}}}};
    Json record = right.at(name);
    for (const auto& [column, value] : changes.items()) {
        if (value.is_null())
            record.erase(column);
        else
            record[column] = value;
    }
    return record;
}

Json choices(const std::vector<std::string>& texts, const std::vector<std::string>& labels) {
    return {{"choices", {{"text", texts}, {"label", labels}}}};
}

}  // namespace

TEST_CASE("Items are asked as lm-eval asks them, behind the examples that it draws", "[evaluation][harness]") {
    std::set<std::string> seen;
    for (const auto& [name, expected] : golden().items()) {
        const HarnessTask& of = task(name);
        seen.insert(name);
        for (const auto& [draw, options] : draws()) {
            const bool said = of.kind == evaluation::HarnessKind::said;
            if (said ? draw != "0" : !expected.at("items").at(0).at("contexts").contains(draw)) continue;
            const auto read = evaluation::read_items(golden_folder / "data", of, options);
            REQUIRE(read.items.size() == expected.at("items").size());
            CHECK(read.task == &of);
            CHECK(read.files.size() == (options.shots > 0 ? 2 : 1));
            for (std::size_t i = 0; i < read.items.size(); ++i) {
                INFO(name << ", shots " << draw << ", item " << i);
                if (said)
                    check_said(read.items[i], of, expected.at("items")[i]);
                else
                    check_texts(read.items[i], expected.at("items")[i], draw);
            }
        }
    }
    const auto& all = evaluation::harness_tasks();
    CHECK(std::ssize(seen) ==
          std::count_if(all.begin(), all.end(), [](const auto& one) { return !evaluation::is_longbench(one); }));
}

TEST_CASE("Tasks are lm-eval's by data set and metrics, and sets have those of the papers", "[evaluation][harness]") {
    for (const auto& [name, expected] : golden().items()) {
        INFO(name);
        if (!expected.contains("metrics")) continue;  // not in lm-eval
        CHECK(task(name).data_set == expected.at("data_set").get<std::string>());
        CHECK(task(name).configuration == expected.at("configuration").get<std::string>());
        CHECK(task(name).metrics == expected.at("metrics").get<std::vector<std::string>>());
    }
    CHECK(evaluation::find_harness_task("arc") == nullptr);
    std::map<std::string, std::size_t> sizes;
    for (const auto& set : evaluation::task_sets()) {
        for (const std::string& name : set.tasks) task(name);
        CHECK(std::set<std::string>(set.tasks.begin(), set.tasks.end()).size() == set.tasks.size());
        sizes[set.name] = set.tasks.size();
    }
    CHECK(sizes == std::map<std::string, std::size_t>{
                       {"deconattn", 9}, {"natsl", 14}, {"lazy", 9}, {"zero_shot", 13}, {"longbench_e", 11}});
}

TEST_CASE("A split is looked for under the task's name, then under its data set's", "[evaluation][harness]") {
    const test::TemporaryFolder folder;
    const auto missing = [&](const std::string& part) {
        CHECK_THROWS_MATCHES(evaluation::find_data_file(folder.path(), task("boolq"), "validation"), Error,
                             test::IsError(ErrorCode::io, part));
    };
    missing("[" + (folder / "boolq/validation.jsonl").string() + "]");
    missing((folder / "super_glue/boolq/validation.jsonl").string());
    missing((folder / "super_glue/validation.jsonl").string());
    const std::vector<std::string> places = {"super_glue", "super_glue/boolq", "boolq"};
    for (const std::string& place : places) {
        std::filesystem::create_directories(folder / place);
        test::write_file(folder / place / "test.jsonl", "{}");
        std::filesystem::create_directory(folder / place / "validation.jsonl.x");
        for (const char* ending : {".json.gz", ".json", ".jsonl.gz", ".jsonl"}) {
            const auto path = test::write_file(folder / place / ("validation" + std::string(ending)), "{}");
            CHECK(evaluation::find_data_file(folder.path(), task("boolq"), "validation") == path);
        }
    }
}

TEST_CASE("Parquet in parts is refused with the line that turns it into JSON lines", "[evaluation][harness]") {
    const test::TemporaryFolder folder;
    const auto refused = [&](const std::string& name, const std::string& part) {
        CHECK_THROWS_MATCHES(evaluation::read_items(folder.path(), task(name), {}), Error,
                             test::IsError(ErrorCode::unsupported, part));
    };
    std::filesystem::create_directories(folder / "ai2_arc/ARC-Easy");
    test::write_file(folder / "ai2_arc/ARC-Easy/train-00000-of-00002.parquet", "PAR1");
    CHECK_THROWS_MATCHES(evaluation::read_items(folder.path(), task("arc_easy"), {}), Error,
                         test::IsError(ErrorCode::io, "expected the split \"test\""));
    test::write_file(folder / "ai2_arc/ARC-Easy/test-00000-of-00002.parquet", "PAR1");
    refused("arc_easy", "data_files=\"" + (folder / "ai2_arc/ARC-Easy/test-*.parquet").string() +
                            "\")[\"train\"].to_json(\"" + (folder / "ai2_arc/ARC-Easy/test.jsonl").string() + "\")");
    std::filesystem::create_directories(folder / "piqa/data");
    test::write_file(folder / "piqa/data/validation-00001-of-00002.parquet", "PAR1");
    refused("piqa", "to_json(\"" + (folder / "piqa/validation.jsonl").string() + "\")");
    test::write_file(folder / "piqa/validation.jsonl", R"({"goal":"g","sol1":"a","sol2":"b","label":0})");
    CHECK(evaluation::read_items(folder.path(), task("piqa"), {}).items.size() == 1);
}

TEST_CASE("A split may be one Parquet file by the hub's names", "[evaluation][harness]") {
    const auto parquet = test::golden_file("parquet/piqa.parquet");
    const test::TemporaryFolder lines;
    std::filesystem::create_directories(lines / "piqa");
    std::filesystem::copy_file(test::golden_file("parquet/piqa.jsonl"), lines / "piqa/validation.jsonl");
    const auto wanted = evaluation::read_items(lines.path(), task("piqa"), {});
    REQUIRE(wanted.items.size() == 3);
    for (const std::string name : {"piqa/validation.parquet", "piqa/data/validation-00000-of-00001.parquet"}) {
        const test::TemporaryFolder folder;
        std::filesystem::create_directories((folder / name).parent_path());
        std::filesystem::copy_file(parquet, folder / name);
        if (!data::parquet_problem().empty()) {
            CHECK_THROWS_MATCHES(evaluation::read_items(folder.path(), task("piqa"), {}), Error,
                                 test::IsError(ErrorCode::unsupported, "found Parquet"));
            continue;
        }
        const auto read = evaluation::read_items(folder.path(), task("piqa"), {});
        REQUIRE(read.items.size() == wanted.items.size());
        for (std::size_t i = 0; i < read.items.size(); ++i) {
            CHECK((read.items[i].requests == wanted.items[i].requests));
            CHECK(read.items[i].gold == wanted.items[i].gold);
        }
        CHECK(read.items[1].place == (folder / name).string() + ":2");
        CHECK(read.files.at(0).sha256 == sha256_hex(test::read_file(parquet)));
        ItemsOptions two;
        two.limit = 2;
        CHECK(evaluation::read_items(folder.path(), task("piqa"), two).items.size() == 2);
    }
}

TEST_CASE("Files are listed with their hashes, items with their places, and a limit is kept", "[evaluation][harness]") {
    const auto data = golden_folder / "data";
    ItemsOptions options = shots(1);
    options.limit = 2;
    const auto read = evaluation::read_items(data, task("arc_challenge"), options);
    REQUIRE(read.items.size() == 2);
    REQUIRE(read.files.size() == 2);
    CHECK(read.files[0].path == data / "arc_challenge/test.json");
    CHECK(read.files[0].sha256 == sha256_hex(test::read_file(read.files[0].path)));
    CHECK(read.files[1].path == data / "arc_challenge/train.json.gz");
    CHECK(read.files[1].sha256 == sha256_hex(test::read_file(read.files[1].path)));
    CHECK(read.items[1].place == (data / "arc_challenge/test.json").string() + ":2");
    options.limit = 0;
    const auto all = evaluation::read_items(data, task("arc_challenge"), options);
    CHECK(all.items.size() == 5);
    CHECK((all.items[1].requests == read.items[1].requests));
    Cancellation cancellation;
    cancellation.request();
    CHECK_THROWS_AS(evaluation::read_items(data, task("boolq"), {}, &cancellation), Stopped);
}

TEST_CASE("A bad record is refused with its line and column", "[evaluation][harness]") {
    struct Case {
        std::string task;
        Json changes;
        std::string says;
    };
    const std::string unlabelled = "a split without labels?";
    const std::vector<Case> cases = {
        {"boolq", {{"passage", nullptr}}, "passage] expected this key"},
        {"boolq", {{"question", 3}}, "question] expected"},
        {"boolq", {{"label", -1}}, unlabelled},
        {"boolq", {{"label", 2}}, "label] expected a label from 0 to 1; found 2"},
        {"boolq", {{"label", true}}, "label] expected"},
        {"boolq", {{"label", "1"}}, "label] expected"},
        {"boolq", {{"label", nullptr}}, "label] expected"},
        {"arc_easy", {{"answerKey", "C"}}, "answerKey] expected one of the labels \"A\", \"B\"; found \"C\""},
        {"arc_easy", {{"answerKey", " B"}}, "answerKey] expected one of the labels"},
        {"arc_easy", {{"answerKey", ""}}, unlabelled},
        {"arc_easy", {{"answerKey", 1}}, "answerKey] expected"},
        {"arc_easy", {{"choices", {"a", "b"}}}, "choices] expected"},
        {"arc_easy", choices({"a", "b"}, {"A"}), "choices.label] expected 2 labels"},
        {"openbookqa", choices({}, {}), "answerKey] expected one of the labels"},
        {"openbookqa", {{"answerKey", " "}}, unlabelled},
        {"copa", {{"question", "Cause"}}, "question] expected \"cause\" or \"effect\"; found \"Cause\""},
        {"copa", {{"label", -1}}, unlabelled},
        {"hellaswag", {{"label", ""}}, unlabelled},
        {"hellaswag", {{"label", "2"}}, "label] expected a label from 0 to 1"},
        {"hellaswag", {{"label", "x"}}, "label] expected a label that is a number"},
        {"hellaswag", {{"label", "99999999999999999999"}}, "label] expected"},
        {"hellaswag", {{"endings", {"a", 2}}}, "endings[1]] expected"},
        {"winogrande", {{"sentence", "a b"}}, "sentence] expected a sentence with a gap"},
        {"winogrande", {{"answer", "3"}}, "answer] expected \"1\" or \"2\"; found \"3\""},
        {"winogrande", {{"answer", ""}}, unlabelled},
        {"social_iqa", {{"label", "0"}}, "label] expected a label from 1 to 3"},
        {"social_iqa", {{"label", ""}}, unlabelled},
        {"wikitext", {{"page", Json::array()}}, "page] expected"},
        {"fda", {{"value", nullptr}}, "value] expected"},
        {"based_nq", {{"answers", Json::array()}}, "answers] expected at least one answer"},
        {"based_nq", {{"answers", "a"}}, "answers] expected"},
    };
    for (const Case& one : cases) {
        INFO(one.task << " " << one.changes.dump());
        CHECK_NOTHROW(item_of(one.task, record_of(one.task, Json::object())));
        const Json record = record_of(one.task, one.changes);
        CHECK_THROWS_MATCHES(item_of(one.task, record), Error, test::IsError(ErrorCode::format, one.says));
        CHECK_THROWS_MATCHES(item_of(one.task, record), Error,
                             test::IsError(ErrorCode::format, task(one.task).split + ".jsonl:2: "));
    }
}

TEST_CASE("Empty texts and labels spelled as numbers are data", "[evaluation][harness]") {
    // lm-eval stops at an empty choice of COPA.
    const HarnessItem copa = item_of("copa", record_of("copa", {{"choice2", ""}, {"premise", ""}}));
    CHECK(copa.requests[1] == evaluation::TextPair{" because", "  "});
    CHECK(copa.gold == 1);
    CHECK(item_of("hellaswag", record_of("hellaswag", {{"label", 1}})).gold == 1);
    CHECK(item_of("arc_easy", record_of("arc_easy", choices({"", ""}, {"A", "B"}))).characters ==
          std::vector<std::int64_t>{0, 0});
    CHECK(item_of("based_nq", record_of("based_nq", {{"question", ""}})).prompt == "c. ");
}

TEST_CASE("Examples that are missing or too few are an error, as are such of tasks that have none",
          "[evaluation][harness]") {
    const test::TemporaryFolder folder;
    const auto read = [&](const std::string& name, const ItemsOptions& options) {
        return evaluation::read_items(folder.path(), task(name), options);
    };
    const auto refused = [&](const std::string& name, const ItemsOptions& options, ErrorCode code,
                             const std::string& part) {
        INFO(name << " " << options.shots);
        CHECK_THROWS_MATCHES(read(name, options), Error, test::IsError(code, part));
    };
    const auto write = [&](const std::string& name, const std::string& split, std::string_view lines) {
        std::filesystem::create_directories(folder / name);
        test::write_file(folder / name / (split + ".jsonl"), lines);
    };
    const std::string item = R"({"passage":"p","question":"q","label":1,"idx":0})",
                      same = R"({"idx":0,"label":1,"question":"q","passage":"p"})",
                      other = R"({"passage":"p","question":"q","label":1,"idx":1})";
    write("boolq", "validation", item);
    refused("boolq", shots(1), ErrorCode::io, "boolq/train.jsonl");
    write("boolq", "train", "\n");
    refused("boolq", shots(1), ErrorCode::usage, "expected examples of boolq");
    write("boolq", "train", other);
    // One more is drawn than is asked for.
    refused("boolq", shots(1), ErrorCode::usage, "expected at least 2 examples for --shots 1");
    CHECK(read("boolq", shots(1, true)).items[0].requests[0].context ==
          "p\nQuestion: q?\nAnswer: yes\n\np\nQuestion: q?\nAnswer:");
    refused("boolq", shots(2, true), ErrorCode::usage, "expected at least 2 examples");
    write("boolq", "train", item + "\n" + same);
    refused("boolq", shots(1), ErrorCode::usage, "beside copies of the item; found 0");
    refused("boolq", shots(1, true), ErrorCode::usage, "beside copies of the item; found 0");
    write("boolq", "train", item + "\n" + same + "\n" + other);
    CHECK(read("boolq", shots(1)).items.size() == 1);
    write("boolq", "train", other + "\n" + other + "\n{\"passage\":\"p\"}");
    refused("boolq", shots(1), ErrorCode::format, "train.jsonl:3: ");

    write("arc_easy", "test", record_of("arc_easy", Json::object()).dump());
    write("arc_easy", "train", record_of("arc_easy", Json::object()).dump());
    CHECK(read("arc_easy", shots(1)).items[0].requests[1].context == "Question: q\nAnswer: b\n\nQuestion: q\nAnswer:");
    refused("arc_easy", shots(2), ErrorCode::usage, "expected at least 2 examples for --shots 2; found 1");

    for (const char* name : {"lambada_openai", "lambada_standard", "wikitext", "fda", "based_drop"})
        refused(name, shots(1), ErrorCode::usage, "expected no examples");
}
