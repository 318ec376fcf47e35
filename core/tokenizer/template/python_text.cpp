// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/template/python_text.h"

#include <utf8proc.h>

#include <algorithm>

#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer::chat {
namespace {

char32_t simple_upper(char32_t point) {
    return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(point)));
}

void append_upper(std::string& text, char32_t point) {
    if (point == 0xDF)
        text += "SS";
    else
        append_utf8(text, simple_upper(point));
}

void append_lower(std::string& text, char32_t point) {
    char32_t buffer[2];
    for (const char32_t lower : to_lower(point, buffer)) append_utf8(text, lower);
}

bool is_cased(char32_t point) {
    const Category kind = category(point);
    return kind == Category::lu || kind == Category::ll || kind == Category::lt;
}

template <class Work>
void each_character(std::string_view text, const Work& work) {
    for (std::size_t at = 0; at < text.size();) {
        const auto [point, length] = decode_utf8(text, at);
        work(point);
        at += length;
    }
}

std::vector<std::string> split_at_white(std::string_view text, std::int64_t most, bool from_right) {
    std::vector<std::string> parts;
    while (true) {
        text = stripped(text, nullptr, !from_right, from_right);
        if (text.empty()) return parts;
        if (most >= 0 && static_cast<std::int64_t>(parts.size()) == most) break;
        std::size_t at = from_right ? text.size() : 0;
        if (from_right) {
            while (at > 0 && !is_white(decode_utf8(text, previous_utf8(text, at)).point)) at = previous_utf8(text, at);
            parts.emplace_back(text.substr(at));
            text = text.substr(0, at);
        } else {
            while (at < text.size() && !is_white(decode_utf8(text, at).point)) at += utf8_length(text[at]);
            parts.emplace_back(text.substr(0, at));
            text.remove_prefix(at);
        }
    }
    parts.emplace_back(text);
    return parts;
}

}  // namespace

bool is_white(char32_t c) {
    return (c >= 0x9 && c <= 0xD) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::size_t white_begin(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size() && is_white(decode_utf8(text, at).point)) at += utf8_length(text[at]);
    return at;
}

std::size_t white_end(std::string_view text) {
    std::size_t at = text.size();
    while (at > 0 && is_white(decode_utf8(text, previous_utf8(text, at)).point)) at = previous_utf8(text, at);
    return text.size() - at;
}

std::string_view stripped(std::string_view text, const std::string* characters, bool left, bool right) {
    if (!characters) {
        if (left) text.remove_prefix(white_begin(text));
        if (right) text.remove_suffix(white_end(text));
        return text;
    }
    const auto goes = [&](std::size_t at) {
        return characters->find(text.substr(at, utf8_length(text[at]))) != std::string::npos;
    };
    while (left && !text.empty() && goes(0)) text.remove_prefix(utf8_length(text[0]));
    while (right && !text.empty() && goes(previous_utf8(text, text.size())))
        text.remove_suffix(text.size() - previous_utf8(text, text.size()));
    return text;
}

std::string upper(std::string_view text) {
    std::string made;
    each_character(text, [&](char32_t point) { append_upper(made, point); });
    return made;
}

std::string lower(std::string_view text) {
    std::string made;
    each_character(text, [&](char32_t point) { append_lower(made, point); });
    return made;
}

std::string capitalized(std::string_view text) {
    if (text.empty()) return "";
    const std::size_t first = utf8_length(text[0]);
    return upper(text.substr(0, first)) + lower(text.substr(first));
}

std::string titled(std::string_view text) {
    std::string made;
    bool inside = false;
    each_character(text, [&](char32_t point) {
        inside ? append_lower(made, point) : append_upper(made, point);
        inside = is_cased(point);
    });
    return made;
}

bool is_upper(std::string_view text) {
    bool cased = false, right = true;
    each_character(text, [&](char32_t point) {
        cased = cased || is_cased(point);
        right = right && category(point) != Category::ll;
    });
    return cased && right;
}

bool is_lower(std::string_view text) {
    bool cased = false, right = true;
    each_character(text, [&](char32_t point) {
        cased = cased || is_cased(point);
        right = right && category(point) != Category::lu && category(point) != Category::lt;
    });
    return cased && right;
}

std::vector<std::string> split(std::string_view text, const std::string* separator, std::int64_t most,
                               bool from_right) {
    std::vector<std::string> parts;
    if (!separator) {
        parts = split_at_white(text, most, from_right);
    } else {
        if (separator->empty()) refuse("expected a separator of at least one character", "found an empty one");
        // From the right is from the left of the text turned round; rfind may take the square of the length.
        const std::string turned_text = from_right ? std::string(text.rbegin(), text.rend()) : "";
        const std::string turned = from_right ? std::string(separator->rbegin(), separator->rend()) : *separator;
        if (from_right) text = turned_text;
        while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
            const std::size_t at = find_text(text, turned, 0);
            if (at == std::string_view::npos) break;
            parts.emplace_back(text.substr(0, at));
            text.remove_prefix(at + turned.size());
        }
        parts.emplace_back(text);
        if (from_right)
            for (std::string& part : parts) std::reverse(part.begin(), part.end());
    }
    if (from_right) std::reverse(parts.begin(), parts.end());
    return parts;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
    std::vector<std::string> lines;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto [c, length] = decode_utf8(text, at);
        const std::size_t next = at + length + (c == '\r' && at + 1 < text.size() && text[at + 1] == '\n' ? 1 : 0);
        if ((c >= 0xA && c <= 0xD) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029) {
            lines.emplace_back(text.substr(begin, (keep_ends ? next : at) - begin));
            begin = next;
        }
        at = next;
    }
    if (begin < text.size()) lines.emplace_back(text.substr(begin));
    return lines;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view with, std::int64_t most,
                     Budget& budget) {
    std::string made;
    std::size_t from = 0;
    for (std::int64_t done = 0; most < 0 || done < most; ++done) {
        // Nothing is found before and behind every character.
        const std::size_t at = old.empty() ? (done == 0            ? 0
                                              : from < text.size() ? from + utf8_length(text[from])
                                                                   : std::string_view::npos)
                                           : find_text(text, old, from);
        if (at == std::string_view::npos) break;
        budget.bytes(at - from + with.size());
        budget.steps(1);
        made.append(text.substr(from, at - from)).append(with);
        from = at + old.size();
    }
    return made.append(text.substr(from));
}

std::vector<std::string> characters(std::string_view text) {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at]))
        all.emplace_back(text.substr(at, utf8_length(text[at])));
    return all;
}

}  // namespace headscope::tokenizer::chat
