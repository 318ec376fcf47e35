// SPDX-License-Identifier: GPL-3.0-or-later
#include <nlohmann/json.hpp>

#include "core/base/json/json.h"
#include "core/base/json/json_events.h"
#include "core/base/json/json_members.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using namespace headscope::test;

TEST_CASE("A JSON document is read as it is", "[base][json]") {
    const std::string text =
        R"( {"a": [1, -2, 2.5, 18446744073709551615, true, null], "b": {"é\n": "\u20ac"}, "c": []} )";
    const auto document = parse_json(text, "x.json");
    REQUIRE(document == nlohmann::json::parse(text));
    REQUIRE(parse_json("7", "x.json") == 7);
    REQUIRE(parse_json(json_text(document), "x.json") == document);
}

TEST_CASE("What is not strict JSON is refused with its byte", "[base][json]") {
    const auto refused = [](const std::string& text, const std::string& part) {
        INFO(text.substr(0, 100));
        REQUIRE_THROWS_MATCHES(parse_json(text, "x.json"), Error, IsError(ErrorCode::format, part));
    };
    refused("", "byte 0");
    refused("   ", "x.json");
    refused("{\"a\": 1,}", "byte 8");
    refused("{} x", "byte 3");
    refused("{}{}", "byte 2");
    refused(std::string("{}\0", 3), "byte 2] expected JSON; found a NUL");
    refused("\xEF\xBB\xBF{}", "byte order mark");
    refused("{\"a\": \"\xFF\"}", "byte 7] expected valid UTF-8");
    refused("\"\\ud800\"", "surrogate");
    refused("// comment\n{}", "x.json");
    refused("[NaN]", "x.json");
    refused("[Infinity]", "x.json");
    refused("[01]", "x.json");
    refused("[1e999]", "x.json");
    refused("{'a': 1}", "x.json");
    refused("[1", "x.json");
    refused("\"a\nb\"", "x.json");
    refused(std::string(65, '[') + std::string(65, ']'), "64 nested");
    refused(std::string(1'000'000, '['), "64 nested");
    REQUIRE_NOTHROW(parse_json(std::string(64, '[') + std::string(64, ']'), "x.json"));
}

TEST_CASE("What Python writes for numbers that JSON lacks is an object that is no number", "[base][json]") {
    const auto document =
        parse_python_json(R"({"a": [0.0, Infinity], "b": -Infinity, "c": NaN, "d": "NaN, \"Infinity"})", "x");
    REQUIRE(document ==
            nlohmann::json::parse(R"({"a": [0.0, {"__float__": "Infinity"}], "b": {"__float__": "-Infinity"},
                                                  "c": {"__float__": "NaN"}, "d": "NaN, \"Infinity"})"));
    REQUIRE_THROWS_MATCHES(JsonView(document, "x").at("c").number(), Error, IsError(ErrorCode::format, "x: c"));
    for (const char* text : {"[Infinit]", "[NaN 1]", "[InfinityNaN]", "{NaN: 1}", "[-NaN]"})
        REQUIRE_THROWS_MATCHES(parse_python_json(text, "x"), Error, IsError(ErrorCode::format, "x"));
    REQUIRE(parse_python_json("[1]", "x").size() == 1);
}

TEST_CASE("A key twice in one object is refused at every level", "[base][json]") {
    for (const char* text :
         {R"({"a": 1, "a": 1})", R"([{"b": {"a": 1, "c": {}, "\u0061": 2}}])", R"({"": 0, "": 0})"}) {
        REQUIRE_THROWS_MATCHES(parse_json(text, "x.json"), Error, IsError(ErrorCode::format, "again"));
    }
    REQUIRE_NOTHROW(parse_json(R"({"a": {"a": {"a": 1}}, "b": {"a": 1}})", "x.json"));
}

TEST_CASE("A JSON file beyond its limit is refused before it is read", "[base][json]") {
    const TemporaryFolder folder;
    write_file(folder / "a.json", "[1, 2, 3]");
    REQUIRE(read_json_file(folder / "a.json", 9, "list").size() == 3);
    REQUIRE_THROWS_MATCHES(read_json_file(folder / "a.json", 8, "list"), Error, IsError(ErrorCode::limit, "list"));
}

TEST_CASE("Values are got with their type and place checked", "[base][json]") {
    const auto document = parse_json(
        R"({"n": 8, "f": 2.5, "whole": 3.0, "s": "x", "t": true, "null": null, "list": [1, "a"], "o": {"p": {"q": -1}},
            "big": 18446744073709551615, "huge": 1e300})",
        "c.json");
    const JsonView view(document, "c.json");
    REQUIRE(view.at("n").integer() == 8);
    REQUIRE(view.at("whole").integer() == 3);
    REQUIRE(view.at("n").number() == 8.0);
    REQUIRE(view.at("f").number(0, 3) == 2.5);
    REQUIRE(view.at("s").string() == "x");
    REQUIRE(view.at("t").boolean());
    REQUIRE(view.integer_or("absent", 5) == 5);
    REQUIRE(view.integer_or("null", 5) == 5);
    REQUIRE(view.number_or("f", 1.0) == 2.5);
    REQUIRE(view.boolean_or("absent", true));
    REQUIRE(view.string_or("absent", "d") == "d");
    REQUIRE_FALSE(view.has("null"));
    REQUIRE(view.at("o").at("p").at("q").where() == "c.json: o.p.q");
    REQUIRE(view.keys().size() == 10);
    REQUIRE(require_integer(document, "n", {1, 10}, "c.json") == 8);

    const auto refused = [](const auto& get, ErrorCode code, const std::string& part) {
        REQUIRE_THROWS_MATCHES(get(), Error, IsError(code, part));
    };
    refused([&] { return view.at("f").integer(); }, ErrorCode::format, "[c.json: f] expected a whole number");
    refused([&] { return view.at("t").integer(); }, ErrorCode::format, "found true");
    refused([&] { return view.at("n").integer({9, 20}); }, ErrorCode::limit, "from 9 to 20; found 8");
    refused([&] { return view.at("big").integer(); }, ErrorCode::limit, "found 18446744073709551615");
    refused([&] { return view.at("huge").integer(); }, ErrorCode::format, "1e+300");
    refused([&] { return view.at("o").at("p").at("q").integer({0}); }, ErrorCode::limit,
            "o.p.q] expected a whole number of at least 0");
    refused([&] { return view.at("s").number(); }, ErrorCode::format, "found \"x\"");
    refused([&] { return view.at("f").number(3); }, ErrorCode::limit, "at least 3");
    refused([&] { return view.at("n").boolean(); }, ErrorCode::format, "true or false");
    refused([&] { return view.at("n").string(); }, ErrorCode::format, "a string");
    refused([&] { return view.at("n").at("x"); }, ErrorCode::format, "an object");
    refused([&] { return view.at("absent"); }, ErrorCode::format, "[c.json: absent]");
    refused([&] { return view.at("null"); }, ErrorCode::format, "found null");
    refused([&] { return view.at("list").integers(); }, ErrorCode::format, "list[1]");
    refused([&] { return view.at("list").at(std::size_t{2}); }, ErrorCode::format, "more than 2");
}

TEST_CASE("A table of members reads and writes an object", "[base][json]") {
    std::string name;
    std::int64_t count = 3;
    double share = 0.5;
    bool wide = false;
    std::vector<std::string> words{"kept"};
    nlohmann::json more = nlohmann::json::object();
    const JsonMembers ranged{{"count", &count, {1, 8}}, {"share", &share, {0}}};
    const JsonMembers others = members("wide", &wide, "words", &words, "more", &more, "name", &name);
    const auto read = [&](const char* text) {
        const auto document = parse_json(text, "x");
        check_keys({document, "x"}, others, {"count", "share", "other"});
        read_members({document, "x"}, members("name", &name));
        read_given_members({document, "x"}, ranged);
        read_given_members({document, "x"}, others);
    };
    read(R"({"name": "a", "count": null, "share": 2, "wide": true, "more": {"b": 1}, "other": []})");
    CHECK(name == "a");
    CHECK(count == 3);
    CHECK(share == 2);
    CHECK(wide);
    CHECK(words == std::vector<std::string>{"kept"});
    nlohmann::json written;
    write_members(written, ranged);
    write_members(written, others);
    CHECK(written == nlohmann::json::parse(R"({"name": "a", "count": 3, "share": 2.0, "wide": true, "words": ["kept"],
                                               "more": {"b": 1}})"));
    CHECK_THROWS_MATCHES(read("{}"), Error, IsError(ErrorCode::format, "x: name"));
    CHECK_THROWS_MATCHES(read(R"({"name": 1})"), Error, IsError(ErrorCode::format, "x: name"));
    CHECK_THROWS_MATCHES(read(R"({"name": "a", "count": 9})"), Error, IsError(ErrorCode::limit, "x: count"));
    CHECK_THROWS_MATCHES(read(R"({"name": "a", "share": -1})"), Error, IsError(ErrorCode::limit, "x: share"));
    CHECK_THROWS_MATCHES(read(R"({"name": "a", "nmae": "b"})"), Error, IsError(ErrorCode::format, "x: nmae"));
}
