// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/metrics/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "core/tokenizer/template/python_text.h"
#include "core/tokenizer/unicode/lower_case.h"
#include "core/tokenizer/unicode/utf8.h"

// The reference is CPython 3.11, Unicode 14. utf8proc's case of single characters (15) is the same for every code
// point; categories (16) differ for characters that came later, and for U+1171E, which a sigma now looks past.

namespace headscope::evaluation {
namespace {

using tokenizer::append_utf8;
using tokenizer::decode_utf8;

constexpr char32_t kDottedI = 0x130;

struct LongTitle {
    char32_t point;
    std::u32string_view title;
};
#include "core/evaluation/metrics/title_table.inc"

char32_t simple_lower(char32_t point) {
    return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point)));
}

void append_lower(std::string& made, char32_t point) {
    append_utf8(made, simple_lower(point));
    if (point == kDottedI) append_utf8(made, 0x307);
}

/// The text from `from` on, lowered by what stands around it.
void append_lowered(std::string& made, std::string_view text, std::size_t from) {
    for (std::size_t at = from; at < text.size();) {
        const auto [point, length] = decode_utf8(text, at);
        if (point == tokenizer::kCapitalSigma && tokenizer::ends_word(text, at))
            append_utf8(made, tokenizer::kFinalSigma);
        else
            append_lower(made, point);
        at += length;
    }
}

void append_title(std::string& made, char32_t point) {
    const auto* found = std::lower_bound(std::begin(kLongTitles), std::end(kLongTitles), point,
                                         [](const LongTitle& entry, char32_t wanted) { return entry.point < wanted; });
    if (found != std::end(kLongTitles) && found->point == point) {
        for (const char32_t each : found->title) append_utf8(made, each);
        return;
    }
    append_utf8(made, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(point))));
}

/// One text for all that re.IGNORECASE takes for equal: characters of one lower case, or whose lower cases have one
/// upper case (CPython's re/_casefix.py), be it of several characters.
std::string without_case(std::string_view text) {
    std::string made;
    for (std::size_t at = 0; at < text.size();) {
        const auto [point, length] = decode_utf8(text, at);
        const char32_t lower = simple_lower(point);
        switch (lower) {
            case 0x1FD3:
                append_utf8(made, 0x390);
                break;
            case 0x1FE3:
                append_utf8(made, 0x3B0);
                break;
            case 0xFB05:
                append_utf8(made, 0xFB06);
                break;
            default:
                append_utf8(made, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(lower))));
        }
        at += length;
    }
    return made;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
    return tokenizer::chat::stripped(text, nullptr, true, true);
}

std::string_view trimmed_left(std::string_view text) {
    return tokenizer::chat::stripped(text, nullptr, true, false);
}

std::string_view trimmed_right(std::string_view text) {
    return tokenizer::chat::stripped(text, nullptr, false, true);
}

std::string capitalized(std::string_view text) {
    std::string made;
    if (text.empty()) return made;
    const auto first = decode_utf8(text, 0);
    append_title(made, first.point);
    append_lowered(made, text, first.length);
    return made;
}

std::string lowered(std::string_view text) {
    std::string made;
    append_lowered(made, text, 0);
    return made;
}

std::string lowered_first(std::string_view text) {
    std::string made;
    if (text.empty()) return made;
    const auto first = decode_utf8(text, 0);
    append_lower(made, first.point);
    return made.append(text.substr(first.length));
}

std::int64_t code_points(std::string_view text) {
    return static_cast<std::int64_t>(tokenizer::count_utf8(text));
}

bool contains_any_case(std::string_view text, std::string_view part) {
    return tokenizer::find_text(without_case(text), without_case(part), 0) != std::string_view::npos;
}

}  // namespace headscope::evaluation
