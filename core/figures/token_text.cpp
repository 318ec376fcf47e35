// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/token_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "core/base/text/text.h"

namespace headscope::figures {
namespace {

constexpr char32_t joiner = 0x200D;

std::string hexadecimal(const char* format, unsigned value) {
    std::array<char, 32> buffer{};
    std::snprintf(buffer.data(), buffer.size(), format, value);
    return buffer.data();
}

bool is_mark(char32_t point) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(point));
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
}

/// Walks a text one seen character at a time: with its marks, and with what a joiner joins to it.
class Characters {
public:
    explicit Characters(std::string_view text) : text_(text) {}
    bool at_end() const { return at_ >= text_.size(); }

    std::string take() {
        char32_t point = 0;
        std::size_t size = decode_utf8(text_.substr(at_), point);
        if (size == 0) return byte_name(static_cast<unsigned char>(text_[at_++]));
        std::string shown = stand_in(point);
        const bool plain = shown.empty();
        if (plain) shown = std::string(is_mark(point) ? "◌" : "").append(text_.substr(at_, size));
        at_ += size;
        // Take at most 16 marks: a hostile text may pile them up.
        for (int more = 0; plain && more < 16; ++more) {
            size = decode_utf8(text_.substr(at_), point);
            if (size == 0 || (point != joiner && !is_mark(point) && !joined_)) break;
            if (joined_ && !stand_in(point).empty()) break;
            joined_ = point == joiner;
            if (joined_ && !joins(at_ + size)) break;
            shown.append(text_.substr(at_, size));
            at_ += size;
        }
        joined_ = false;
        return shown;
    }

private:
    /// Something to see follows the joiner that ends at `at`.
    bool joins(std::size_t at) const {
        char32_t point = 0;
        return at < text_.size() && decode_utf8(text_.substr(at), point) > 0 && point != joiner &&
               stand_in(point).empty();
    }

    std::string_view text_;
    std::size_t at_ = 0;
    bool joined_ = false;  ///< the last one was a joiner
};

}  // namespace

std::string code_point_name(char32_t point) {
    return hexadecimal("‹U+%04X›", static_cast<unsigned>(point));
}

std::string byte_name(unsigned char byte) {
    return hexadecimal("‹x%02X›", byte);
}

std::string stand_in(char32_t point) {
    switch (point) {
        case ' ':
            return "␣";
        case '\t':
            return "⇥";
        case '\n':
            return "↵";
        case '\r':
            return "␍";
        default:
            break;
    }
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(point))) {
        case UTF8PROC_CATEGORY_CC:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_CS:
        case UTF8PROC_CATEGORY_CO:
        case UTF8PROC_CATEGORY_CN:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP:
        case UTF8PROC_CATEGORY_ZS:
            return code_point_name(point);
        default:
            return "";
    }
}

std::string visible_token(std::string_view piece, std::size_t limit) {
    if (piece.empty()) return "∅";
    limit = std::max<std::size_t>(limit, 3);
    // The middle of a very long piece is never read.
    constexpr std::size_t most_bytes = 64;  // of one character, marks included
    if (piece.size() / (2 * most_bytes) > limit) {
        const std::size_t tail = piece.size() - limit * most_bytes;
        return visible_token(std::string(piece.substr(0, limit * most_bytes)) + std::string(piece.substr(tail)), limit);
    }
    std::vector<std::string> all;
    for (Characters characters(piece); !characters.at_end();) all.push_back(characters.take());
    std::string shown;
    const std::size_t tail = all.size() > limit ? (limit - 1) / 3 : 0;
    const std::size_t head = all.size() > limit ? limit - 1 - tail : all.size();
    for (std::size_t i = 0; i < head; ++i) shown += all[i];
    if (all.size() > limit) shown += "…";
    for (std::size_t i = all.size() - tail; i < all.size(); ++i) shown += all[i];
    return shown;
}

}  // namespace headscope::figures
