// SPDX-License-Identifier: GPL-3.0-or-later
// Data as they are published: compressed, with columns of other names, nested.
#include <zlib.h>
#include <zstd.h>

#include <catch2/catch.hpp>
#include <functional>

#include "core/base/error.h"
#include "core/data/batch/batch_source.h"
#include "core/data/batch/item_reader.h"
#include "core/data/source/parquet_rows.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/data/corpus.h"

using namespace headscope;
using namespace headscope::test;

namespace {

std::string gzip(const std::string& text) {
    z_stream stream{};
    REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    std::string out(deflateBound(&stream, text.size()) + 64, '\0');
    std::string in = text;
    stream.next_in = reinterpret_cast<Bytef*>(in.data());
    stream.avail_in = static_cast<uInt>(in.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

std::string zstd(const std::string& text) {
    std::string out(ZSTD_compressBound(text.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
    return out;
}

/// Lines of JSON objects, large enough for several pieces.
std::string lines(const std::function<std::string(const std::string& text, int number)>& object) {
    std::string all;
    for (int i = 0; i < 4000; ++i) {
        std::string text;
        for (int j = 0; j < 1 + i % 40; ++j) text += "word" + std::to_string(i * j % 977) + " ";
        all += object(text, i) + "\n";
    }
    return all;
}

std::string plain_lines() {
    return lines([](const std::string& text, int) { return R"({"text": ")" + text + R"("})"; });
}

/// A file's documents and windows as one text.
std::string prepared(const std::string& name, const std::string& content, const std::string& column = "text") {
    Corpus corpus;
    corpus.write(name, content);
    data::DataSettings settings;
    settings.text = {name};
    settings.column = column;
    settings.sequence_length = 64;
    settings.validation = 0;
    const auto set = corpus.prepare(settings);
    const auto source = set->source(data::Split::training, 7);
    std::string all = std::to_string(set->summary().documents) + "\n";
    for (const std::int64_t index : {std::int64_t{0}, std::int64_t{1}, std::int64_t{500}})
        for (const auto id : source->read(index, 2).ids) all += std::to_string(id) + " ";
    return all;
}

}  // namespace

TEST_CASE("Compressed and nested data give the sequences of plain JSON lines", "[data][published]") {
    const std::string plain = plain_lines(), wanted = prepared("a.jsonl", plain);
    const std::size_t half = plain.size() / 2;
    CHECK(prepared("a.jsonl.gz", gzip(plain)) == wanted);
    CHECK(prepared("a.jsonl.gz", gzip(plain.substr(0, half)) + gzip(plain.substr(half))) == wanted);
    CHECK(prepared("a.jsonl.zst", zstd(plain)) == wanted);
    CHECK(prepared("a.json.zst", zstd(plain.substr(0, half)) + zstd(plain.substr(half))) == wanted);
    CHECK(prepared("a.json", plain) == wanted);
    CHECK(prepared("a.json.gz", gzip("\xEF\xBB\xBF" + plain)) == wanted);
    const std::string nested = lines([](const std::string& text, int i) {
        return R"({"id": )" + std::to_string(i) +
               R"(, "more": [{"document": {"text": "no"}}], "document": {"x": {"text": 3}, "text": ")" + text +
               R"("}, "text": 4})";
    });
    CHECK(prepared("a.jsonl", nested, "document.text") == wanted);
    const std::string exact = lines([](const std::string& text, int) {
        return R"({"document": {"text": "no"}, "document.text": ")" + text + R"("})";
    });
    CHECK(prepared("a.jsonl", exact, "document.text") == wanted);
    CHECK(prepared("a.txt.gz", gzip(plain)) == prepared("a.txt", plain));  // one document
}

TEST_CASE("Cut, damaged and foreign files are refused by name", "[data][published]") {
    const auto refused = [](const std::string& name, const std::string& content, const std::string& column,
                            ErrorCode code, const std::string& message) {
        INFO(name);
        CHECK_THROWS_MATCHES(prepared(name, content, column), Error, IsError(code, name));
        CHECK_THROWS_MATCHES(prepared(name, content, column), Error, IsError(code, message));
    };
    const std::string plain = plain_lines();
    const std::string gz = gzip(plain), zst = zstd(plain);
    refused("a.jsonl.gz", gz.substr(0, gz.size() - 4), "text", ErrorCode::format, "whole gzip file");
    refused("a.jsonl.gz", gz.substr(0, gz.size() / 2), "text", ErrorCode::format, "whole gzip file");
    refused("a.jsonl.zst", zst.substr(0, zst.size() / 2), "text", ErrorCode::format, "whole zstd file");
    refused("a.jsonl.gz", plain, "text", ErrorCode::format, "expected a gzip file");
    refused("a.jsonl.zst", plain, "text", ErrorCode::format, "expected a zstd file");
    refused("a.jsonl.zst", zst + "more and more", "text", ErrorCode::format, "expected a zstd file");
    refused("a.parquet", "PAR1", "text", data::parquet_problem().empty() ? ErrorCode::format : ErrorCode::unsupported,
            "found Parquet");
    refused("a.jsonl", plain, "document.text", ErrorCode::format, "line 1, column");
    refused("a.jsonl", plain, "document.text", ErrorCode::format, "\"document.text\"");
    refused("a.jsonl.gz", gzip(R"({"document": {"text": 3}})"), "document.text", ErrorCode::format, "found a number");
}

TEST_CASE("Translations may lie in an object within, by the names of their languages", "[data][published]") {
    Corpus corpus;
    data::ObjectiveSettings objective;
    objective.kind = "translation";
    objective.source = "translation.en";
    objective.target = "translation.de";
    const auto read = [&](const std::string& name, const std::string& content) {
        std::string all;
        data::read_items(
            InputFile(corpus.write(name, content)), data::SourceKind::json_lines, objective,
            [&](const data::TextItem& item) { all += item.text + "|" + item.other + "\n"; }, [](std::uint64_t) {});
        return all;
    };
    const std::string nested = R"({"translation": {"de": "Haus", "en": "house"}})"
                               "\n"
                               R"({"id": 3, "translation": {"en": "tree", "de": "Baum"}})"
                               "\n";
    CHECK(read("a.jsonl", nested) == "house|Haus\ntree|Baum\n");
    CHECK(read("a.jsonl.gz", gzip(nested)) == "house|Haus\ntree|Baum\n");
    CHECK(read("a.jsonl", R"({"translation.en": "a", "translation": {"en": "no", "de": "b"}})") == "a|b\n");
    CHECK_THROWS_MATCHES(read("a.jsonl", R"({"translation": {"en": "a"}})"), Error,
                         IsError(ErrorCode::format, "a.jsonl:1"));
    CHECK_THROWS_MATCHES(read("a.jsonl", R"({"translation": {"en": "a", "de": 3}})"), Error,
                         IsError(ErrorCode::format, "\"translation.de\""));
    CHECK_THROWS_MATCHES(read("a.jsonl", R"({"translation": [{"en": "a", "de": "b"}]})"), Error,
                         IsError(ErrorCode::format, R"(found "translation")"));
}
