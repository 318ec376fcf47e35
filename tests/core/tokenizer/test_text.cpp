// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/tokenizer/aligned_text.h"
#include "core/tokenizer/byte_level.h"
#include "core/tokenizer/normalizers/normal_form.h"
#include "core/tokenizer/regex/matcher.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

using namespace headscope::tokenizer;

namespace {

std::vector<std::pair<std::uint32_t, std::uint32_t>> spans(const AlignedText& text) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
    for (std::size_t at = 0; at < text.size(); at += utf8_length(text.text()[at])) {
        all.emplace_back(text.span(at).begin, text.span(at).end);
    }
    return all;
}

std::string lower(char32_t c) {
    char32_t buffer[2];
    std::string text;
    for (const char32_t each : to_lower(c, buffer)) append_utf8(text, each);
    return text;
}

}  // namespace

TEST_CASE("Ill-formed UTF-8 is repaired as Unicode recommends", "[tokenizer][text]") {
    const std::string bad = "\xEF\xBF\xBD";
    REQUIRE(repaired_utf8("aé中👍") == "aé中👍");
    REQUIRE(repaired_utf8("\xE4\xB8") == bad);  // the beginning of a character: one
    REQUIRE(repaired_utf8("\xE4\xB8z") == bad + "z");
    REQUIRE(repaired_utf8("\xF0\x9F\x91") == bad);
    REQUIRE(repaired_utf8("\xC0\x80") == bad + bad);            // overlong
    REQUIRE(repaired_utf8("\xED\xA0\x80") == bad + bad + bad);  // a surrogate
    REQUIRE(repaired_utf8("\xF4\x90\x80\x80") == bad + bad + bad + bad);
    REQUIRE(repaired_utf8("\x80\xFF") == bad + bad);
}

TEST_CASE("Every byte has its character and back", "[tokenizer][text]") {
    std::string all;
    for (unsigned byte = 0; byte < 256; ++byte) all += byte_spelling(static_cast<unsigned char>(byte));
    const auto bytes = spelled_bytes(all);
    REQUIRE(bytes.has_value());
    for (unsigned byte = 0; byte < 256; ++byte) REQUIRE(static_cast<unsigned char>((*bytes)[byte]) == byte);
    REQUIRE(byte_spelling(' ') == "Ġ");
    REQUIRE(byte_spelling('\n') == "Ċ");
    REQUIRE_FALSE(spelled_bytes("a b").has_value());
}

TEST_CASE("Rewritten text knows where it came from", "[tokenizer][text]") {
    AlignedText text("aéb", 10);
    REQUIRE(spans(text) == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{10, 11}, {11, 13}, {13, 14}});
    text.transform({{U'x', 1}, {U'A', -1}, {U'y', 1}, {U'B', 0}});  // é vanishes behind A
    REQUIRE(text.text() == "xAyB");
    REQUIRE(spans(text) ==
            std::vector<std::pair<std::uint32_t, std::uint32_t>>{{10, 10}, {10, 11}, {11, 13}, {13, 14}});
    AlignedText other("c", 14);
    text.append(other);
    REQUIRE(text.span(4).begin == 14);
    REQUIRE(text.slice(3, 5).text() == "Bc");
    REQUIRE(text.slice(3, 5).span(0, 2).end == 15);
}

TEST_CASE("Normal forms keep their place", "[tokenizer][text]") {
    AlignedText composed("e\u0301x", 0);
    apply_normal_form(composed, false, true);
    REQUIRE(composed.text() == "éx");
    REQUIRE(composed.span(0).end == 1);  // the reference aligns a composite with its first character
    REQUIRE(composed.span(2).begin == 3);

    AlignedText ligature("\uFB01", 0);
    apply_normal_form(ligature, true, true);
    REQUIRE(ligature.text() == "fi");
    REQUIRE(ligature.span(1).end == 3);

    AlignedText hangul("\u1112\u1161\u11AB", 0);
    apply_normal_form(hangul, false, true);
    REQUIRE(hangul.text() == "한");
    apply_normal_form(hangul, false, false);
    REQUIRE(hangul.text() == "\u1112\u1161\u11AB");

    AlignedText order("q\u0307\u0323", 0);  // marks change places
    apply_normal_form(order, false, false);
    REQUIRE(order.text() == "q\u0323\u0307");
}

TEST_CASE("Lower case has no context and two characters at most", "[tokenizer][text]") {
    REQUIRE(lower(U'Σ') == "σ");
    REQUIRE(lower(0x130) == "i\u0307");
    REQUIRE(lower(0x1C89) == "\u1C8A");
    REQUIRE(lower(U'Ā') == "ā");
    REQUIRE(lower(U'ā') == "ā");
    REQUIRE(lower(0x10400) == "\U00010428");
    REQUIRE(lower(U'1') == "1");
}

TEST_CASE("Splits treat their matches as the behavior says", "[tokenizer][text]") {
    const auto split = [](SplitBehavior behavior, bool invert = false) {
        const std::string_view text = "the-final--countdown";
        std::vector<Match> found;
        literal_matcher("-")->find(text, found);
        std::vector<Match> parts;
        split_parts(found, static_cast<std::uint32_t>(text.size()), behavior, invert, parts);
        std::vector<std::string> strings;
        for (const Match& part : parts) strings.emplace_back(text.substr(part.begin, part.end - part.begin));
        return strings;
    };
    using Strings = std::vector<std::string>;
    REQUIRE(split(SplitBehavior::removed) == Strings{"the", "final", "countdown"});
    REQUIRE(split(SplitBehavior::removed, true) == Strings{"-", "-", "-"});
    REQUIRE(split(SplitBehavior::isolated) == Strings{"the", "-", "final", "-", "-", "countdown"});
    REQUIRE(split(SplitBehavior::merged_with_previous) == Strings{"the-", "final-", "-", "countdown"});
    REQUIRE(split(SplitBehavior::merged_with_next) == Strings{"the", "-final", "-", "-countdown"});
    REQUIRE(split(SplitBehavior::contiguous) == Strings{"the", "-", "final", "--", "countdown"});
}
