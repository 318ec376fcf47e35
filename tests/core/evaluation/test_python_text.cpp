// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/evaluation/metrics/python_text.h"
#include "core/tokenizer/unicode/utf8.h"
#include "tests/oracle/golden.h"

using namespace headscope;

namespace {

const nlohmann::json& golden() {
    static const auto read = [] {
        std::ifstream file(test::golden_file("python_text.json"));
        return nlohmann::json::parse(file);
    }();
    return read;
}

std::vector<std::string> characters(const std::string& text) {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size(); at += all.back().size())
        all.push_back(text.substr(at, tokenizer::utf8_length(text[at])));
    return all;
}

template <class Work>
void each_code_point(const Work& work) {
    for (char32_t c = 0; c < 0x110000; ++c)
        if (c < 0xD800 || c > 0xDFFF) work(c);
}

/// Code points of which a change of case makes something else than golden.json says.
std::vector<std::uint32_t> differing(const nlohmann::json& changed, std::string (*work)(std::string_view)) {
    std::map<std::string, std::string> wanted;
    const auto from = characters(changed["from"]), to = characters(changed["to"]);
    REQUIRE(from.size() == to.size());
    REQUIRE(from.size() > 1000);
    for (std::size_t i = 0; i < from.size(); ++i) wanted[from[i]] = to[i];
    for (const auto& pair : changed["longer"]) wanted[pair[0]] = pair[1];
    std::vector<std::uint32_t> wrong;
    each_code_point([&](char32_t c) {
        const std::string text = tokenizer::to_utf8(c);
        const auto found = wanted.find(text);
        if (work(text) != (found == wanted.end() ? text : found->second)) wrong.push_back(c);
    });
    return wrong;
}

}  // namespace

TEST_CASE("Case of every character is CPython's", "[evaluation]") {
    CHECK(differing(golden()["lower"], evaluation::lowered) == std::vector<std::uint32_t>{});
    CHECK(differing(golden()["lower"], evaluation::lowered_first) == std::vector<std::uint32_t>{});
    CHECK(differing(golden()["title"], evaluation::capitalized) == std::vector<std::uint32_t>{});
}

TEST_CASE("A capital sigma is final behind a letter and before none", "[evaluation]") {
    const std::string final = "\u03c2";
    std::vector<std::uint32_t> wrong;
    std::map<int, int> seen;
    const auto& runs = golden()["sigma"];
    std::size_t run = 0;
    each_code_point([&](char32_t c) {
        if (run + 1 < runs.size() && runs[run + 1][0].get<char32_t>() <= c) ++run;
        const int kind = runs[run][1].get<int>();
        ++seen[kind];
        // Characters newer than CPython's Unicode; a mark of a changed category.
        if (kind == 0 || c == 0x1171E) return;
        const std::string text = tokenizer::to_utf8(c);
        const bool alone = evaluation::lowered(text + "\u03a3").ends_with(final);
        const bool behind = evaluation::lowered("A" + text + "\u03a3").ends_with(final);
        const bool before = evaluation::lowered("A\u03a3" + text).starts_with("a" + final);
        const bool cased = kind == 2, ignorable = kind == 3;
        if (alone != cased || behind != (cased || ignorable) || before == cased) wrong.push_back(c);
    });
    CHECK(seen.size() == 4);
    CHECK(wrong == std::vector<std::uint32_t>{});
}

TEST_CASE("White space is str.strip's", "[evaluation]") {
    const std::set<char32_t> white = golden()["white"].get<std::set<char32_t>>();
    std::vector<std::uint32_t> wrong;
    each_code_point([&](char32_t c) {
        const std::string one = tokenizer::to_utf8(c), text = one + "a" + one + "b" + one;
        const bool goes = white.contains(c);
        if (evaluation::trimmed(text) != (goes ? "a" + one + "b" : text) ||
            evaluation::trimmed_left(text) != (goes ? text.substr(one.size()) : text) ||
            evaluation::trimmed_right(text) != (goes ? text.substr(0, text.size() - one.size()) : text))
            wrong.push_back(c);
    });
    CHECK(wrong == std::vector<std::uint32_t>{});
    CHECK(evaluation::trimmed("\u3000 \n").empty());
    CHECK(evaluation::trimmed_left("").empty());
}

TEST_CASE("Words change case as CPython's do", "[evaluation]") {
    for (const auto& wanted : golden()["words"]) {
        const std::string text = wanted["text"];
        CAPTURE(text);
        CHECK(evaluation::capitalized(text) == wanted["capitalize"].get<std::string>());
        CHECK(evaluation::lowered(text) == wanted["lower"].get<std::string>());
        CHECK(evaluation::lowered_first(text) == wanted["lower_first"].get<std::string>());
        CHECK(evaluation::code_points(text) == wanted["characters"].get<std::int64_t>());
    }
}

TEST_CASE("A text is found letter case aside as by re.IGNORECASE", "[evaluation]") {
    for (const auto& wanted : golden()["contains"]) {
        CAPTURE(wanted.dump());
        CHECK(evaluation::contains_any_case(wanted[0].get<std::string>(), wanted[1].get<std::string>()) ==
              wanted[2].get<bool>());
    }
    // For every class: each member finds each, and none is found outside.
    const auto classes = golden()["ignore_case"].get<std::vector<std::string>>();
    REQUIRE(classes.size() > 1000);
    std::vector<std::string> wrong;
    std::string before;
    for (const std::string& one : classes) {
        const auto members = characters(one);
        for (const std::string& member : members) {
            if (evaluation::contains_any_case(before, member)) wrong.push_back(member);
            for (const std::string& other : members)
                if (!evaluation::contains_any_case("x-" + other + "-x", "-" + member + "-")) wrong.push_back(member);
        }
        before += one;
    }
    CHECK(wrong == std::vector<std::string>{});
}
