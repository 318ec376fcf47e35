// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/json/json_records.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "core/base/io/gzip.h"
#include "core/base/io/sha256.h"
#include "core/base/process/cancellation_scope.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;

namespace {

// Python's gzip.compress(b"one\n", mtime=0).
const std::string packed(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\xcf\x4b\xe5\x02\x00\x9f\xa8\x17\xf8\x04\x00\x00\x00", 24);

/// The records of a file as "LINE n", where n is their key.
std::vector<std::string> records(const std::filesystem::path& path, std::size_t most = 100) {
    std::vector<std::string> all;
    read_json_records(path, "records", [&](const JsonView& record) {
        const std::string where = record.where();
        all.push_back(where.substr(where.rfind(':') + 1) + " " + record.at("n").value().dump());
        return all.size() < most;
    });
    return all;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("All members of gzip are unpacked, and damage is reported", "[base][gzip]") {
    CHECK(decompress_gzip(packed, 4, "x") == "one\n");
    CHECK(decompress_gzip(packed + packed + std::string(7, '\0'), 100, "x") == "one\none\n");
    CHECK_THROWS_MATCHES(decompress_gzip(packed, 3, "x"), Error, test::IsError(ErrorCode::limit, "[x]"));
    CHECK_THROWS_MATCHES(decompress_gzip("", 100, "x"), Error, test::IsError(ErrorCode::format, "too early"));
    CHECK_THROWS_MATCHES(decompress_gzip("plain", 100, "x"), Error, test::IsError(ErrorCode::format, "gzip"));
    CHECK_THROWS_MATCHES(decompress_gzip(packed + "more", 100, "x"), Error, test::IsError(ErrorCode::format, "gzip"));
    for (std::size_t size = 1; size < packed.size(); ++size) {
        INFO(size);
        CHECK_THROWS_MATCHES(decompress_gzip(packed.substr(0, size), 100, "x"), Error,
                             test::IsError(ErrorCode::format, "too early"));
    }
    std::string damaged = packed;
    damaged[17] ^= 1;  // of the checksum
    CHECK_THROWS_MATCHES(decompress_gzip(damaged, 100, "x"), Error, test::IsError(ErrorCode::format, "gzip"));
}

TEST_CASE("Records are the objects of lines, with the line of each", "[base][json]") {
    const test::TemporaryFolder folder;
    const auto file = [&](std::string_view text) { return test::write_file(folder / "a.jsonl", text); };
    CHECK(records(file("{\"n\":1}\n\n \t\n{\"n\":2}\r\n\r\n{\"n\":3}")) == Lines{"1 1", "4 2", "6 3"});
    CHECK(records(file("\xEF\xBB\xBF{\"n\":1}\n")) == Lines{"1 1"});
    // U+2028, U+0085 and form feeds end no line.
    CHECK(records(file("{\"n\":\"\u2028\u0085\"}\n{\"n\":2}\n")) == Lines{"1 \"\u2028\u0085\"", "2 2"});
    CHECK(records(file("{\"n\":1}\n{\"n\":2}\nbroken"), 2) == Lines{"1 1", "2 2"});
    CHECK_THROWS_MATCHES(records(file("{\"n\":1}\nbroken")), Error, test::IsError(ErrorCode::format, "a.jsonl:2"));
    CHECK_THROWS_MATCHES(records(file("{\"n\":1}\n\f\n")), Error, test::IsError(ErrorCode::format, "a.jsonl:2"));
    CHECK_THROWS_MATCHES(records(file("\n[{\"n\":1}]")), Error,
                         test::IsError(ErrorCode::format, "a.jsonl:2] expected an object"));
    CHECK_THROWS_MATCHES(records(file("{\"n\":\"\xFF\"}")), Error, test::IsError(ErrorCode::format, "a.jsonl:1"));
    CHECK_THROWS_MATCHES(records(file("")), Error, test::IsError(ErrorCode::usage, "expected records"));
    CHECK_THROWS_MATCHES(records(file(" \n\r\n")), Error, test::IsError(ErrorCode::usage, "expected records"));
    CHECK_THROWS_MATCHES(records(folder / "none.jsonl"), Error, test::IsError(ErrorCode::io, "none.jsonl"));
}

TEST_CASE("Records are the objects of an array, with the line where each begins", "[base][json]") {
    const test::TemporaryFolder folder;
    const auto file = [&](std::string_view text) { return test::write_file(folder / "a.json", text); };
    CHECK(records(file("\n[ {\"n\":1},\n {\"n\":[{\"a\":\"]},\\\"\"},\n2]} ,{\"n\":3}\n]\n")) ==
          Lines{"2 1", "3 [{\"a\":\"]},\\\"\"},2]", "4 3"});
    CHECK(records(file("[{\"n\":1}, broken"), 1) == Lines{"1 1"});
    CHECK_THROWS_MATCHES(records(file("[]")), Error, test::IsError(ErrorCode::usage, "expected records"));
    CHECK_THROWS_MATCHES(records(file(" \n")), Error, test::IsError(ErrorCode::usage, "expected records"));
    // As to_json of datasets and pandas write it: lines, whatever the name says.
    CHECK(records(file("{\"n\":1}\n{\"n\":2}\n")) == Lines{"1 1", "2 2"});
    // As json.dump with an indent writes one object.
    CHECK(records(file("\n{\n    \"n\": {\n        \"a\": 1\n    }\n}\n")) == Lines{"1 {\"a\":1}"});
    CHECK_THROWS_MATCHES(records(file("{\n\"n\":1")), Error, test::IsError(ErrorCode::format, "a.json:1"));
    CHECK_THROWS_MATCHES(records(file("{\n\"n\":1}\n{\"n\":2}\n")), Error,
                         test::IsError(ErrorCode::format, "a.json:1"));
    CHECK_THROWS_MATCHES(records(file("plain text")), Error, test::IsError(ErrorCode::format, "a.json:1"));
    CHECK_THROWS_MATCHES(records(file("[{\"n\":1},\n2]")), Error,
                         test::IsError(ErrorCode::format, "a.json:2] expected an object"));
    for (const char* broken :
         {"[{\"n\":1},\n]", "[{\"n\":1},\n,{\"n\":1}]", "[{\"n\":1},\n{\"n\":1}}]", "[{\"n\":1},\n}]",
          "[{\"n\":1},\n{\"n\":1}", "[{\"n\":1},\n{\"n\":\"]", "[{\"n\":1}\n] x", "[{\"n\":1},\n"}) {
        INFO(broken);
        CHECK_THROWS_MATCHES(records(file(broken)), Error, test::IsError(ErrorCode::format, "a.json:2"));
    }
}

TEST_CASE("Packed records are read, their file hashed as it is, and reading can be stopped", "[base][json]") {
    const test::TemporaryFolder folder;
    const auto path = test::write_file(folder / "a.jsonl.gz", packed);
    CHECK_THROWS_MATCHES(records(path), Error, test::IsError(ErrorCode::format, "a.jsonl.gz:1"));
    const auto plain = test::write_file(folder / "a.jsonl", "{\"n\":1}\n");
    CHECK(read_json_records(plain, "records", [](const JsonView&) { return true; }) == sha256_hex("{\"n\":1}\n"));
    Cancellation cancellation;
    const CancellationScope scope(cancellation);
    CHECK_THROWS_AS(read_json_records(plain, "records",
                                      [&](const JsonView&) {
                                          cancellation.request();
                                          check_cancellation();
                                          return true;
                                      }),
                    Stopped);
}
