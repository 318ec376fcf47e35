// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "core/base/option.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using nlohmann::json;
using test::IsError;

namespace {

Option of_kind(OptionKind kind) {
    Option option;
    option.name = "x";
    option.kind = kind;
    return option;
}

void refuses(const Option& option, const json& value, ErrorCode code, const std::string& text) {
    CHECK_THROWS_MATCHES(checked_value(option, value, "job.toml: x"), Error, IsError(code, "[job.toml: x] " + text));
}

}  // namespace

TEST_CASE("The default's type is the option's kind", "[base][option]") {
    CHECK(Option("a", true).kind == OptionKind::flag);
    CHECK(Option("a", std::int64_t{4}, {}, 0, 64).kind == OptionKind::whole);
    CHECK(Option("a", 0.5).kind == OptionKind::number);
    CHECK(Option("a", "b").kind == OptionKind::text);
    CHECK(Option("a", "b", {"b", "c"}).kind == OptionKind::choice);
    CHECK(number_of(Option("a", std::int64_t{4}).standard) == 4);
    CHECK(json_of(Option("a", "b").standard) == "b");
}

TEST_CASE("Values are brought into their kind's form", "[base][option]") {
    CHECK(checked_value(Option("a", std::int64_t{1}), 5e6, "").is_number_integer());
    CHECK(checked_value(Option("a", 1.0), 2, "").is_number_float());
    CHECK(checked_value(of_kind(OptionKind::paths), "a.txt", "") == json::array({"a.txt"}));
    CHECK(checked_value(of_kind(OptionKind::pair), {1, 2.5}, "") == json::array({1.0, 2.5}));
    CHECK(checked_value(of_kind(OptionKind::share_or_paths), 0.25, "") == 0.25);
    CHECK(checked_value(of_kind(OptionKind::table), {{"a", 1}}, "") == json{{"a", 1}});
}

TEST_CASE("A refusal names place, range and value", "[base][option]") {
    const Option taps("x", std::int64_t{4}, {}, 0, 64);
    refuses(taps, 65, ErrorCode::limit, "expected a whole number from 0 to 64; found 65");
    refuses(taps, 1.5, ErrorCode::format, "expected a whole number from 0 to 64; found 1.5");
    refuses(taps, "many", ErrorCode::format, "expected a whole number from 0 to 64; found \"many\"");
    Option eps("x", 1e-6, {}, 0, 1);
    eps.above = true;
    refuses(eps, 0, ErrorCode::limit, "expected a number above 0 and up to 1; found 0");
    refuses(Option("x", 1.0, {}, 0), -1, ErrorCode::limit, "expected a number from 0; found -1");
    refuses(Option("x", 1.0), nullptr, ErrorCode::format, "expected a number; found null");
    refuses(Option("x", "softmax", {"softmax", "entmax"}), "sofmax", ErrorCode::format,
            "expected one of \"softmax\", \"entmax\" (softmax?); found \"sofmax\"");
    refuses(Option("x", "a"), "\xff", ErrorCode::format, "expected a text in UTF-8; found \\xFF");
    refuses(of_kind(OptionKind::texts), json::array(), ErrorCode::format, "expected at least one entry; found []");
    CHECK_THROWS_MATCHES(checked_value(taps, 65, "x", {ErrorCode::usage, ErrorCode::usage}), Error,
                         IsError(ErrorCode::usage));
}

TEST_CASE("Numbers and choices of a command line are checked as text", "[base][option]") {
    const Option count("pixels", std::int64_t{1024}, {}, 16, 8192);
    CHECK(read_number(count, "64", "--pixels") == 64);
    CHECK(read_number(Option("width", 180.0, {}, 30, 2000), "85.5", "--width") == 85.5);
    for (const char* bad : {"", "15", "64x", " 64", "6.4", "99999999999999999999"})
        CHECK_THROWS_MATCHES(
            read_number(count, bad, "--pixels"), Error,
            IsError(ErrorCode::usage, "[--pixels] expected a whole number from 16 to 8192; found " + std::string(bad)));
    CHECK_THROWS_MATCHES(read_number(Option("w", 1.0, {}, 30, 2000), "nan", "--w"), Error, IsError(ErrorCode::usage));
    CHECK(expected_text(Option("sequence", std::int64_t{0}, {"all"}, 0)) == "a whole number from 0, or \"all\"");
    check_choice({"light", "dark"}, "dark", "--theme");
    CHECK_THROWS_MATCHES(check_choice({"light", "dark"}, "grey", "--theme"), Error,
                         IsError(ErrorCode::usage, "[--theme] expected one of \"light\", \"dark\"; found grey"));
}

TEST_CASE("Bounds are written in digits, or as short as they read back", "[base][option]") {
    CHECK(plain_number(1048576) == "1048576");
    CHECK(plain_number(0.9999999) == "0.9999999");
    CHECK(plain_number(1e12) == "1e+12");
    CHECK(plain_number(-0.25) == "-0.25");
}
