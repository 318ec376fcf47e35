// SPDX-License-Identifier: GPL-3.0-or-later
// Parquet files by pyarrow (tests/oracle/generate/parquet_files.py) against the same rows as JSON lines.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/base/process/cancellation_scope.h"
#include "core/data/batch/batch_source.h"
#include "core/data/batch/item_reader.h"
#include "core/data/source/json_objects.h"
#include "core/data/source/parquet_rows.h"
#include "core/data/source/question_reader.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/data/corpus.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::test;

namespace {

std::filesystem::path golden_rows(const std::string& name) {
    return golden_file("parquet/" + name);
}

/// A file's records, each with its number.
std::string records(const std::filesystem::path& path, const std::vector<std::string>& columns = {}) {
    std::string all;
    data::read_records(
        InputFile(path), data::source_kind(path),
        [&](std::string_view text, std::uint64_t number) {
            all += std::to_string(number) + " " + parse_json(text, "record").dump() + "\n";
        },
        {}, columns);
    return all;
}

/// Documents and windows of a file as one text.
std::string prepared_tokens(const std::string& name, const std::string& column) {
    Corpus corpus;
    data::DataSettings settings;
    settings.text = {golden_rows(name).string()};
    settings.column = column;
    settings.sequence_length = 32;
    settings.validation = 0;
    const auto set = corpus.prepare(settings);
    const auto source = set->source(data::Split::training, 7);
    std::string all = std::to_string(set->summary().documents) + "\n";
    for (const std::int64_t index : {std::int64_t{0}, std::int64_t{1}, std::int64_t{50}})
        for (const auto id : source->read(index, 2).ids) all += std::to_string(id) + " ";
    return all;
}

std::string translations(const std::string& name) {
    data::ObjectiveSettings objective;
    objective.kind = "translation";
    objective.source = "translation.en";
    objective.target = "translation.de";
    const auto path = golden_rows(name);
    std::string all;
    data::read_items(
        InputFile(path), data::source_kind(path), objective,
        [&](const data::TextItem& item) { all += item.text + "|" + item.other + "\n"; }, [](std::uint64_t) {});
    return all;
}

std::string questions(const std::string& name) {
    const auto path = golden_rows(name);
    std::string all;
    data::read_questions(
        InputFile(path), data::source_kind(path),
        [&](const data::Question& question) {
            all += question.id + "|" + question.text + "|" + question.context;
            for (std::size_t i = 0; i < question.answers.size(); ++i)
                all += "|" + question.answers[i] + " " + std::to_string(question.begins[i]);
            all += "\n";
        },
        [](std::uint64_t) {});
    return all;
}

}  // namespace

TEST_CASE("The library that reads Parquet is found and fits", "[data][parquet]") {
    CHECK(data::parquet_problem().empty());
}

TEST_CASE("Parquet's rows are the records of JSON lines", "[data][parquet]") {
    const std::string flat = records(golden_rows("flat.jsonl"));
    CHECK(std::count(flat.begin(), flat.end(), '\n') == 70);
    for (const char* name :
         {"none", "snappy", "gzip", "zstd", "plain", "pages-v2", "delta", "dictionary", "large", "view"}) {
        INFO(name);
        CHECK(records(golden_rows("flat-" + std::string(name) + ".parquet")) == flat);
    }
    for (const char* name : {"nested", "questions", "types"}) {
        INFO(name);
        CHECK(records(golden_rows(name + std::string(".parquet"))) ==
              records(golden_rows(name + std::string(".jsonl"))));
    }
}

TEST_CASE("Only the asked columns of a Parquet file are read", "[data][parquet]") {
    const auto first = [&](const std::vector<std::string>& columns) {
        const std::string all = records(golden_rows("nested.parquet"), columns);
        return all.substr(0, all.find('\n'));
    };
    CHECK(first({"document.text"}) == R"(1 {"document":{"text":"text 0"}})");
    CHECK(first({"document"}) == R"(1 {"document":{"size":0,"text":"text 0"}})");
    CHECK(first({"document.title"}) == R"(1 {"document.title":"title 0"})");
    CHECK(first({"translation.en", "id"}) == R"(1 {"id":0,"translation":{"en":"house 0"}})");
    CHECK(first({"doc"}) == "1 {}");
}

TEST_CASE("Training reads Parquet as it reads JSON lines", "[data][parquet]") {
    const std::string flat = prepared_tokens("flat.jsonl", "text");
    for (const char* name : {"flat-snappy.parquet", "flat-zstd.parquet", "flat-dictionary.parquet"})
        CHECK(prepared_tokens(name, "text") == flat);
    CHECK(prepared_tokens("nested.parquet", "document.text") == prepared_tokens("nested.jsonl", "document.text"));
    CHECK(prepared_tokens("nested.parquet", "document.title") == prepared_tokens("nested.jsonl", "document.title"));
    CHECK(translations("nested.parquet") == translations("nested.jsonl"));
    CHECK(translations("nested.parquet").starts_with("house 0|Haus 0\n"));
    CHECK(questions("questions.parquet") == questions("questions.jsonl"));
}

TEST_CASE("Cut and damaged Parquet files are refused by name", "[data][parquet]") {
    const TemporaryFolder folder;
    const auto refused = [&](const std::string& bytes, const std::string& message) {
        const auto path = write_file(folder / "a.parquet", bytes);
        CHECK_THROWS_MATCHES(records(path), Error, IsError(ErrorCode::format, "a.parquet"));
        CHECK_THROWS_MATCHES(records(path), Error, IsError(ErrorCode::format, message));
    };
    const std::string whole = "expected a whole Parquet file", bytes = read_file(golden_rows("flat-snappy.parquet"));
    refused("", whole);
    refused("PAR1", whole);
    refused(std::string(5000, 'x'), whole);
    for (const std::size_t left : {std::size_t{8}, bytes.size() / 2, bytes.size() - 8, bytes.size() - 1})
        refused(bytes.substr(0, left), whole);
    std::string damaged = bytes;  // the first page's text
    std::fill_n(damaged.begin() + 60, 200, '\xff');
    refused(damaged, whole);
    damaged = bytes;  // the footer's length
    damaged[bytes.size() - 5] = '\x7f';
    refused(damaged, whole);
    damaged = read_file(golden_rows("flat-pages-v2.parquet"));  // a checksum of its own finds one byte
    damaged[damaged.size() / 4] = static_cast<char>(damaged[damaged.size() / 4] ^ 1);
    refused(damaged, whole);
}

TEST_CASE("Missing columns and those of other types are refused with their row", "[data][parquet]") {
    const auto text_of = [](const std::string& name, const std::string& column) {
        Collector collector;
        data::read_parts(
            InputFile(golden_rows(name)), data::SourceKind::parquet, collector, [](std::uint64_t) {}, column);
        return collector.documents.size();
    };
    CHECK(text_of("nested.parquet", "document.text") == 40);
    CHECK_THROWS_MATCHES(text_of("nested.parquet", "text"), Error, IsError(ErrorCode::format, "nested.parquet, row 1"));
    CHECK_THROWS_MATCHES(text_of("nested.parquet", "document.size"), Error,
                         IsError(ErrorCode::format, "expected a string for \"document.size\"; found a number"));
    CHECK_THROWS_MATCHES(text_of("types.parquet", "time"), Error,
                         IsError(ErrorCode::unsupported, "found column time of type timestamp[ms]"));
    CHECK_THROWS_MATCHES(text_of("types.parquet", "bytes"), Error, IsError(ErrorCode::unsupported, "binary"));
    CHECK_THROWS_MATCHES(text_of("types.parquet", "list"), Error, IsError(ErrorCode::format, "found an array"));
}

TEST_CASE("Reading Parquet ends where its consumer throws and when it is stopped", "[data][parquet]") {
    const InputFile file(golden_rows("flat-none.parquet"));
    int rows = 0;
    const auto take = [&](std::string_view, std::uint64_t number) {
        if (number == 31) throw Error(ErrorCode::usage, "row 31", "expected less", "found more");
        ++rows;
    };
    CHECK_THROWS_MATCHES(data::read_parquet_rows(file, take, {}, {}), Error, IsError(ErrorCode::usage, "row 31"));
    CHECK(rows == 30);
    Cancellation cancellation;
    const CancellationScope scope(cancellation);
    const auto stop = [&](std::string_view, std::uint64_t) { cancellation.request(); };
    CHECK_THROWS_AS(data::read_parquet_rows(file, stop, {}, {}), Stopped);
    CHECK_THROWS_AS(data::read_parquet_rows(file, stop, {}, {}), Stopped);
}
