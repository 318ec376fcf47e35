// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "tests/core/base/error_matcher.h"
#include "tests/core/data/corpus.h"

using namespace headscope;
using namespace headscope::test;

namespace {

std::vector<std::string> read(const std::string& content) {
    TemporaryFolder folder;
    return collected(write_file(folder / "a.jsonl", content), data::SourceKind::json_lines).documents;
}

}  // namespace

TEST_CASE("each line's \"text\" is a document, whatever else is in it", "[data]") {
    using Texts = std::vector<std::string>;
    CHECK(read("") == Texts{});
    CHECK(read("{\"text\": \"a\"}\n{\"id\": 1, \"text\": \"b\\u00e9\\n\", \"x\": {\"text\": 3}}") ==
          Texts{"a", "b\xC3\xA9\n"});
}

TEST_CASE("JSONL skips blank lines, a byte order mark and carriage returns", "[data]") {
    CHECK(read("\xEF\xBB\xBF{\"text\":\"a\"}\r\n\r\n  \n{\"text\":\"\"}\n{\"text\":\"c\"}") ==
          std::vector<std::string>{"a", "", "c"});
}

TEST_CASE("a line that is no JSON, or has no text, is refused with file, line and column", "[data]") {
    const std::string good = "{\"text\": \"a\"}\n";
    const auto refuses = [&](const std::string& line, const std::string& what) {
        CHECK_THROWS_MATCHES(read(good + line + "\n" + good), Error, IsError(ErrorCode::format, what));
    };
    refuses("{\"text\": \"a\",}", "a.jsonl, line 2, column 14] expected JSON");
    refuses("{\"text\": \"\xC3\xA9\xC3\xA9\" x}", "line 2, column 15]");
    refuses("nonsense", "line 2, column 2]");
    refuses("[1]", "line 2, column 1] expected an object with a \"text\"; found an array");
    refuses("\"a\"", "expected an object with a \"text\"; found a string");
    refuses("{\"txt\": \"a\"}", "expected an object with a \"text\"; found none in it");
    refuses("{\"text\": null}", "expected a string for \"text\"; found null");
    refuses("{\"text\": [\"a\"]}", "expected a string for \"text\"; found an array");
    refuses("{\"text\": \"a\", \"text\": \"b\"}", "expected one \"text\" in an object");
    refuses("{\"text\": \"a\xFF\"}", "line 2, column 12] expected valid UTF-8");
    refuses("{\"text\": \"a\"} {\"text\": \"b\"}", "line 2, column 15]");
    CHECK_THROWS_MATCHES(read("{\"text\": \"cut"), Error, IsError(ErrorCode::format, "line 1"));
}

TEST_CASE("lines longer than what is read at once stay whole", "[data]") {
    const std::string text(700'000, 'x');
    const auto documents = read("{\"text\": \"" + text + "\"}\n{\"text\": \"y\"}\n");
    REQUIRE(documents.size() == 2);
    CHECK(documents[0] == text);
    CHECK(documents[1] == "y");
}

TEST_CASE("An array's objects are the documents of the same lines", "[data][json]") {
    const TemporaryFolder folder;
    const auto array = [&](const std::string& content) {
        return collected(write_file(folder / "a.json", content), data::SourceKind::json_array).documents;
    };
    using Texts = std::vector<std::string>;
    CHECK(array("[]") == Texts{});
    CHECK(array("\xEF\xBB\xBF [ {\"text\": \"a]},\\\"\"} ,\n{\"id\": [1, {\"x\": 2}],\n \"text\": \"b\"}\n]\n") ==
          Texts{"a]},\"", "b"});
    // Longer than what is read at once.
    const std::string text(700'000, 'x');
    CHECK(array("[{\"text\": \"" + text + "\"}, {\"text\": \"y\"}]") == Texts{text, "y"});

    const auto refuses = [&](const std::string& content, const std::string& what) {
        INFO(content);
        CHECK_THROWS_MATCHES(array(content), Error, IsError(ErrorCode::format, what));
    };
    refuses("[{\"text\": \"a\"},\n]", "line 2] expected an object");
    refuses("[{\"text\": \"a\"}\n{\"text\": \"b\"}]", "line 2, column 1] expected JSON");
    refuses("[{\"text\": \"a\"},\n{\"text\": \"b\"}", "line 2] expected the end of the array");
    refuses("[{\"text\": \"a\"}] x", "expected nothing behind the array");
    refuses("[{\"text\": \"a\"},\n{\"t\": 1}]", "line 2, column 8] expected an object with a \"text\"");
    refuses("[\"a\", \"b\"]", "line 1, column 3] expected an object with a \"text\"; found a string");
    refuses("[{\"text\": \"a\"},\n {\"x\": 1,\n  \"text\": 3}]", "line 3, column 11] expected a string");
}

TEST_CASE("A .json file is looked into, and plain text under that name is refused", "[data][json]") {
    const TemporaryFolder folder;
    const auto kind = [&](const std::string& content) {
        return data::source_kind(write_file(folder / "a.json", content));
    };
    CHECK(kind("{\"text\": \"a\"}\n{\"text\": \"b\"}\n") == data::SourceKind::json_lines);
    CHECK(kind("\xEF\xBB\xBF\n  {\"text\": \"a\"}\r\nwhatever") == data::SourceKind::json_lines);
    CHECK(kind(" \n[\n{\"text\": \"a\"}]") == data::SourceKind::json_array);
    for (const char* other :
         {"", " \n", "plain text", "{\n\"text\": \"a\"\n}", "{text}\n", "3\n", "{\"a\": 1} {\"a\": 2}"}) {
        INFO(other);
        CHECK_THROWS_MATCHES(kind(other), Error, IsError(ErrorCode::format, "a.json] expected an array of objects"));
    }
    CHECK(data::source_kind(write_file(folder / "a.txt", "{\"text\": \"a\"}\n")) == data::SourceKind::text);
}
