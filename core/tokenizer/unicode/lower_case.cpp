// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/unicode/lower_case.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {
namespace {

bool in_ranges(const std::vector<CodePointRange>& ranges, char32_t point) {
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), point,
                                        [](char32_t wanted, const auto& range) { return wanted < range.first; });
    return after != ranges.begin() && point <= std::prev(after)->last;
}

/// Cased of Unicode 3.13, D135.
bool is_cased(char32_t point) {
    static const auto upper = property_ranges_of("upper"), lower = property_ranges_of("lower");
    return category(point) == Category::lt || in_ranges(upper, point) || in_ranges(lower, point);
}

/// Case_Ignorable of Unicode 3.13, D136: marks and the like, and what stands within words (MidLetter, MidNumLet,
/// Single_Quote).
bool is_case_ignorable(char32_t point) {
    using enum Category;
    constexpr std::u32string_view within =
        U"'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a";
    constexpr std::array kinds = {mn, me, cf, lm, sk};
    return std::find(kinds.begin(), kinds.end(), category(point)) != kinds.end() ||
           within.find(point) != std::u32string_view::npos;
}

}  // namespace

bool ends_word(std::string_view text, std::size_t at) {
    char32_t point = 0;
    bool found = false;
    for (std::size_t i = at; i > 0 && !found;) {
        i = previous_utf8(text, i);
        point = decode_utf8(text, i).point;
        found = !is_case_ignorable(point);
    }
    if (!found || !is_cased(point)) return false;
    for (std::size_t i = at + utf8_length(kCapitalSigma); i < text.size();) {
        const auto next = decode_utf8(text, i);
        if (!is_case_ignorable(next.point)) return !is_cased(next.point);
        i += next.length;
    }
    return true;
}

}  // namespace headscope::tokenizer
