// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/token_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

namespace headscope::figures {
namespace {

std::string hexadecimal(const char* format, unsigned value) {
    std::array<char, 32> buffer{};
    std::snprintf(buffer.data(), buffer.size(), format, value);
    return buffer.data();
}

std::string encoded(utf8proc_int32_t code) {
    std::array<utf8proc_uint8_t, 4> bytes{};
    const auto size = utf8proc_encode_char(code, bytes.data());
    return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(size)};
}

std::string visible(utf8proc_int32_t code) {
    switch (code) {
        case ' ':
            return "␣";
        case '\n':
            return "↵";
        case '\r':
            return "␍";
        case '\t':
            return "⇥";
        default:
            break;
    }
    switch (utf8proc_category(code)) {
        case UTF8PROC_CATEGORY_CC:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_CS:
        case UTF8PROC_CATEGORY_CO:
        case UTF8PROC_CATEGORY_CN:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP:
        case UTF8PROC_CATEGORY_ZS:
            return hexadecimal("‹U+%04X›", static_cast<unsigned>(code));
        default:
            return encoded(code);
    }
}

/// One element a character as it is read: marks stay with their base, so that eliding never splits them. A mark at the
/// start (half a character in a byte-level piece) gets a dotted circle to sit on.
std::vector<std::string> characters(std::string_view piece) {
    std::vector<std::string> all;
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(piece.data());
    std::size_t at = 0;
    while (at < piece.size()) {
        utf8proc_int32_t code = -1;
        const auto size = utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(piece.size() - at), &code);
        if (size <= 0) {
            all.push_back(hexadecimal("‹x%02X›", bytes[at]));
            ++at;
            continue;
        }
        at += static_cast<std::size_t>(size);
        const auto category = utf8proc_category(code);
        const bool mark = category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
                          category == UTF8PROC_CATEGORY_ME || code == 0x200D;
        if (mark && !all.empty()) {
            all.back() += encoded(code);
        } else if (mark && code != 0x200D) {
            all.push_back("◌" + encoded(code));
        } else {
            all.push_back(visible(code));
        }
    }
    return all;
}

}  // namespace

std::string visible_token(std::string_view piece, std::size_t limit) {
    if (piece.empty()) return "∅";
    const auto all = characters(piece);
    std::string text;
    if (all.size() <= std::max<std::size_t>(limit, 2)) {
        for (const auto& character : all) text += character;
        return text;
    }
    const std::size_t tail = (limit - 1) / 3;
    const std::size_t head = limit - 1 - tail;
    for (std::size_t i = 0; i < head; ++i) text += all[i];
    text += "…";
    for (std::size_t i = all.size() - tail; i < all.size(); ++i) text += all[i];
    return text;
}

}  // namespace headscope::figures
