// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "core/base/json/json.h"
#include "core/workspace/head_sets.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using namespace headscope::workspace;
using headscope::test::IsError;
using nlohmann::json;

namespace {

/// Two layers of three heads.
HeadTable table() {
    HeadTable t;
    t.columns = {"sink"};
    t.values = {0.9, 0.2, 0.3, 0.4, 0.3, 0.0};
    for (std::int32_t row = 0; row < 6; ++row)
        t.rows.push_back({row / 3, row / 3, row % 3, 0, std::to_string(row / 3), {}});
    return t;
}

HeadSets example() {
    HeadSets sets;
    sets.model_sha256 = "abc";
    sets.model_name = "small";
    sets.mark({0, 0, 1}, true);
    sets.mark({1, 1, 2}, true);
    sets.put("sinks", {{0, 0, 0}, {1, 1, 0}});
    sets.put("later, \"odd\"", {});
    sets.set_note({1, 1, 0}, "looks at\ncommas");
    return sets;
}

HeadSets read(const json& document) {
    return HeadSets::from_json(JsonView(document, "session.json"));
}

}  // namespace

TEST_CASE("Sets of heads come from filters and from each other", "[workspace][sets]") {
    const HeadTable t = table();
    const Heads sinks = heads_where("sink > 0.25", t), first = heads_where("layer = 0", t);
    CHECK(sinks == Heads{{0, 0, 0}, {0, 0, 2}, {1, 1, 0}, {1, 1, 1}});
    CHECK(common(sinks, first) == Heads{{0, 0, 0}, {0, 0, 2}});
    CHECK(without(sinks, first) == Heads{{1, 1, 0}, {1, 1, 1}});
    CHECK(united(first, heads_where("sink = 0", t)) == Heads{{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {1, 1, 2}});
    CHECK(rows_of(without(sinks, first), t) == std::vector<std::size_t>{3, 4});
    CHECK_THROWS_MATCHES(heads_where("sinks > 1", t), Error, IsError(ErrorCode::usage));
}

TEST_CASE("Marks, sets and notes are put, renamed and taken away", "[workspace][sets]") {
    HeadSets sets = example();
    CHECK(sets.is_marked({0, 0, 1}));
    sets.mark({0, 0, 1}, false);
    CHECK_FALSE(sets.is_marked({0, 0, 1}));
    sets.put("all", {{0, 0, 0}});
    CHECK(sets.sets_with({0, 0, 0}) == std::vector<std::string>{"all", "sinks"});
    sets.rename("all", "everything");
    CHECK(sets.sets().at("everything") == Heads{{0, 0, 0}});
    CHECK_THROWS_MATCHES(sets.rename("everything", "sinks"), Error, IsError(ErrorCode::usage, "new name"));
    CHECK_THROWS_MATCHES(sets.rename("nobody", "x"), Error, IsError(ErrorCode::usage, "nobody"));
    sets.remove("everything");
    CHECK_THROWS_MATCHES(sets.remove("everything"), Error, IsError(ErrorCode::usage));
    CHECK_THROWS_MATCHES(sets.put("", {}), Error, IsError(ErrorCode::usage, "found nothing"));
    CHECK_THROWS_MATCHES(sets.put("a\nb", {}), Error, IsError(ErrorCode::usage));
    CHECK_THROWS_MATCHES(sets.put(std::string(201, 'x'), {}), Error, IsError(ErrorCode::usage));
    CHECK_THROWS_MATCHES(sets.set_note({0, 0, 0}, "\xFF"), Error, IsError(ErrorCode::usage, "UTF-8"));
    CHECK_THROWS_MATCHES(sets.set_note({0, 0, 0}, std::string(10'001, 'x')), Error, IsError(ErrorCode::usage));
    CHECK(sets.note({1, 1, 0}) == "looks at\ncommas");
    sets.set_note({1, 1, 0}, "");
    CHECK(sets.notes().empty());
    CHECK(HeadSets().empty());
    CHECK_FALSE(sets.empty());
}

TEST_CASE("Sets of heads come back from JSON as they were", "[workspace][sets]") {
    CHECK(read(example().to_json()) == example());
    CHECK(read(json::parse(example().to_json().dump())) == example());
    CHECK(read(HeadSets().to_json()) == HeadSets());
}

TEST_CASE("JSON that is no sets of heads is refused with its place", "[workspace][sets]") {
    const auto refused = [](const char* place, const json& value, ErrorCode code, const std::string& part) {
        json document = example().to_json();
        document[json::json_pointer(place)] = value;
        INFO(document.dump());
        CHECK_THROWS_MATCHES(read(document), Error, IsError(code, part));
    };
    refused("/version", 2, ErrorCode::unsupported, "version 1");
    refused("/version", "1", ErrorCode::format, "session.json: version");
    refused("/colour", 1, ErrorCode::format, "found \"colour\"");
    refused("/marked", 1, ErrorCode::format, "session.json: marked");
    refused("/marked/0", json::array({0, 0}), ErrorCode::format, "[layer, site, head]");
    refused("/marked/0", json::array({0, -1, 0}), ErrorCode::limit, "marked");
    refused("/marked/0", json::array({1, 1, 2}), ErrorCode::format, "each head once");
    refused("/sets/0/name", "sinks", ErrorCode::format, "each name once");
    refused("/sets/0/name", "", ErrorCode::format, "1 to 200 bytes");
    refused("/sets/0/extra", 1, ErrorCode::format, "extra");
    refused("/notes/0/text", "", ErrorCode::format, "expected a text");
    refused("/notes/0/text", std::string(10'001, 'x'), ErrorCode::format, "10 000 bytes");
    json missing = example().to_json();
    missing.erase("sets");
    CHECK_THROWS_MATCHES(read(missing), Error, IsError(ErrorCode::format, "sets"));
    CHECK_THROWS_MATCHES(read(json::array()), Error, IsError(ErrorCode::format));
}

TEST_CASE("Heads with marks or notes are exported as CSV", "[workspace][sets]") {
    CHECK(figures::csv(example().plain_table()) ==
          "layer,site,head,marked,sets,note\r\n"
          "0,0,0,0,sinks,\r\n"
          "0,0,1,1,,\r\n"
          "1,1,0,0,sinks,\"looks at\ncommas\"\r\n"
          "1,1,2,1,,\r\n");
}
