// SPDX-License-Identifier: GPL-3.0-or-later
// Values as text: str(), repr(), json.dumps() of Python.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/tokenizer/template/python_text.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer::chat {
namespace {

std::string hexadecimal(const char* format, unsigned value) {
    std::array<char, 16> buffer{};
    std::snprintf(buffer.data(), buffer.size(), format, value);
    return buffer.data();
}

bool is_printable(char32_t point) {
    if (point == ' ') return true;
    switch (category(point)) {
        case Category::cc:
        case Category::cf:
        case Category::cs:
        case Category::co:
        case Category::cn:
        case Category::zl:
        case Category::zp:
        case Category::zs:
            return false;
        default:
            return true;
    }
}

class JsonWriter {
public:
    JsonWriter(const JsonStyle& style, Budget& budget) : style_(style), budget_(budget) {}

    std::string finish(const Value& value) {
        write(value, 0);
        return std::move(text_);
    }

private:
    void append(const std::string& part) {
        budget_.bytes(part.size());
        text_ += part;
    }

    void write(const Value& value, int level) {
        budget_.steps(1);
        if (const auto* text = value.string()) return append(escaped_string(*text));
        if (value.list()) {
            const auto& items = value.list()->items;
            return write_all(items.size(), "[]", level, [&](std::size_t i) { write(items[i], level + 1); });
        }
        if (value.dict()) {
            std::vector<std::pair<std::string, const Value*>> entries;
            for (const auto& [key, item] : value.dict()->entries) entries.emplace_back(key_text(key), &item);
            budget_.steps(entries.size());
            if (style_.sort_keys)
                std::stable_sort(entries.begin(), entries.end(),
                                 [](const auto& a, const auto& b) { return a.first < b.first; });
            return write_all(entries.size(), "{}", level, [&](std::size_t i) {
                append(escaped_string(entries[i].first) + style_.key_separator);
                write(*entries[i].second, level + 1);
            });
        }
        append(scalar(value));
    }

    template <class One>
    void write_all(std::size_t count, const char* brackets, int level, const One& one) {
        if (count == 0) return append(brackets);
        append({brackets[0]});
        for (std::size_t i = 0; i < count; ++i) {
            if (i > 0) append(style_.item_separator);
            break_line(level + 1);
            one(i);
        }
        break_line(level);
        append({brackets[1]});
    }

    void break_line(int level) {
        if (!style_.lines) return;
        append("\n");
        for (int i = 0; i < level; ++i) append(style_.indent);
    }

    static std::string scalar(const Value& value) {
        if (value.is_none()) return "null";
        if (const auto* flag = value.get<bool>()) return *flag ? "true" : "false";
        if (const auto* whole = value.get<std::int64_t>()) return std::to_string(*whole);
        const auto* real = value.get<double>();
        if (!real) refuse("expected something that JSON can hold", "found " + value.described());
        if (std::isnan(*real)) return "NaN";
        if (std::isinf(*real)) return *real > 0 ? "Infinity" : "-Infinity";
        return float_text(*real);
    }

    static std::string key_text(const Value& key) { return key.string() ? *key.string() : scalar(key); }

    std::string escaped_string(std::string_view text) const {
        std::string made = "\"";
        for (std::size_t at = 0; at < text.size();) {
            const auto [point, length] = decode_utf8(text, at);
            const std::string_view here = text.substr(at, length);
            at += length;
            constexpr std::string_view plain = "\"\\\n\r\t\b\f", letters = "\"\\nrtbf";
            const std::size_t known = point < 0x80 ? plain.find(static_cast<char>(point)) : std::string_view::npos;
            if (known != std::string_view::npos) {
                made += '\\';
                made += letters[known];
            } else if (style_.ascii && point > 0xFFFF) {
                made += hexadecimal("\\u%04x", 0xD800U + ((static_cast<unsigned>(point) - 0x10000U) >> 10U));
                made += hexadecimal("\\u%04x", 0xDC00U + (static_cast<unsigned>(point) & 0x3FFU));
            } else if (point < 0x20 || (style_.ascii && point > 0x7E)) {
                made += hexadecimal("\\u%04x", static_cast<unsigned>(point));
            } else {
                made += here;
            }
        }
        return made += '"';
    }

    const JsonStyle& style_;
    Budget& budget_;
    std::string text_;
};

void append_code(std::string& text, const Value& value, Budget& budget) {
    budget.steps(1);
    const std::size_t before = text.size();
    if (value.list()) {
        const auto& items = value.list()->items;
        text += value.list()->tuple ? '(' : '[';
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (i > 0) text += ", ";
            append_code(text, items[i], budget);
        }
        if (value.list()->tuple && items.size() == 1) text += ',';
        text += value.list()->tuple ? ')' : ']';
        return budget.bytes(2 + 2 * items.size());
    }
    if (value.dict()) {
        text += '{';
        for (const auto& [key, item] : value.dict()->entries) {
            if (text.back() != '{') text += ", ";
            append_code(text, key, budget);
            text += ": ";
            append_code(text, item, budget);
        }
        text += '}';
        return budget.bytes(2 + 4 * value.dict()->entries.size());
    }
    if (value.string())
        text += chat::quoted(*value.string());
    else if (value.is_undefined())
        text += "Undefined";
    else
        text += plain_text(value, budget);
    budget.bytes(text.size() - before);
}

}  // namespace

std::string float_text(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    // The shortest digits that give the number back; Python writes an exponent below 1e-4 and from 1e16 on.
    std::array<char, 400> buffer{};
    const double size = std::fabs(value);
    const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                   plain ? std::chars_format::fixed : std::chars_format::scientific)
                         .ptr;
    std::string text(buffer.data(), end);
    if (plain && text.find('.') == std::string::npos) text += ".0";
    return text;
}

std::string quoted(std::string_view text) {
    const bool twice = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
    const char quote = twice ? '"' : '\'';
    std::string made(1, quote);
    for (std::size_t at = 0; at < text.size();) {
        const auto [point, length] = decode_utf8(text, at);
        const auto number = static_cast<unsigned>(point);
        if (point == '\n')
            made += "\\n";
        else if (point == '\r')
            made += "\\r";
        else if (point == '\t')
            made += "\\t";
        else if (point == '\\' || point == static_cast<char32_t>(quote))
            made += {'\\', static_cast<char>(point)};
        else if (is_printable(point))
            made += text.substr(at, length);
        else
            made += hexadecimal(point < 0x100 ? "\\x%02x" : point < 0x10000 ? "\\u%04x" : "\\U%08x", number);
        at += length;
    }
    return made += quote;
}

std::string plain_text(const Value& value, Budget& budget) {
    if (value.string()) {
        budget.bytes(value.string()->size());
        return *value.string();
    }
    if (value.is_undefined()) return "";
    if (value.is_none()) return "None";
    if (const auto* flag = value.get<bool>()) return *flag ? "True" : "False";
    if (const auto* whole = value.get<std::int64_t>()) return std::to_string(*whole);
    if (const auto* real = value.get<double>()) return float_text(*real);
    if (!value.list() && !value.dict()) refuse("expected something with a text of its own", "found " + value.kind());
    std::string text;
    append_code(text, value, budget);
    return text;
}

std::string code_text(const Value& value, Budget& budget) {
    std::string text;
    append_code(text, value, budget);
    return text;
}

std::string json_text(const Value& value, const JsonStyle& style, Budget& budget) {
    return JsonWriter(style, budget).finish(value);
}

}  // namespace headscope::tokenizer::chat
