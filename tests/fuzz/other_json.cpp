// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/other_json.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <set>

namespace headscope::fuzz {
namespace {

struct Refused {};

class Reader {
public:
    explicit Reader(std::string_view text) : text_(text) {}

    OtherJson document() {
        OtherJson root = value(0);
        space();
        if (at_ != text_.size()) throw Refused();
        return root;
    }

private:
    char peek() const {
        if (at_ == text_.size()) throw Refused();
        return text_[at_];
    }
    char next() {
        const char c = peek();
        ++at_;
        return c;
    }
    bool take(char c) {
        if (at_ == text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void need(char c) {
        if (!take(c)) throw Refused();
    }
    void word(std::string_view letters) {
        for (const char c : letters) need(c);
    }
    void space() {
        while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    }

    OtherJson value(int depth) {
        space();
        switch (peek()) {
            case '{':
                return {object(depth + 1)};
            case '[':
                return {array(depth + 1)};
            case '"':
                return {string()};
            case 't':
                return word("true"), OtherJson{true};
            case 'f':
                return word("false"), OtherJson{false};
            case 'n':
                return word("null"), OtherJson{nullptr};
            default:
                return number();
        }
    }

    OtherJson::Object object(int depth) {
        if (depth > 64) throw Refused();
        OtherJson::Object entries;
        std::set<std::string> keys;
        need('{');
        space();
        if (take('}')) return entries;
        do {
            space();
            std::string key = string();
            if (!keys.insert(key).second) throw Refused();
            space();
            need(':');
            entries.push_back({std::move(key), value(depth)});
            space();
        } while (take(','));
        need('}');
        return entries;
    }

    OtherJson::Array array(int depth) {
        if (depth > 64) throw Refused();
        OtherJson::Array elements;
        need('[');
        space();
        if (take(']')) return elements;
        do {
            elements.push_back(value(depth));
            space();
        } while (take(','));
        need(']');
        return elements;
    }

    unsigned hexadecimal() {
        unsigned unit = 0;
        for (int i = 0; i < 4; ++i) {
            const char c = next();
            const std::size_t digit = std::string_view("0123456789abcdefABCDEF").find(c);
            if (digit == std::string_view::npos) throw Refused();
            unit = unit * 16 + static_cast<unsigned>(digit < 16 ? digit : digit - 6);
        }
        return unit;
    }

    static void append(std::string& text, unsigned point) {
        const auto add = [&](unsigned byte) { text += static_cast<char>(byte); };
        if (point < 0x80) return add(point);
        if (point < 0x800) return add(0xC0 | point >> 6), add(0x80 | (point & 63));
        if (point < 0x10000) {
            return add(0xE0 | point >> 12), add(0x80 | (point >> 6 & 63)), add(0x80 | (point & 63));
        }
        add(0xF0 | point >> 18), add(0x80 | (point >> 12 & 63)), add(0x80 | (point >> 6 & 63)),
            add(0x80 | (point & 63));
    }

    void escape(std::string& text) {
        const char c = next();
        const std::size_t simple = std::string_view("\"\\/bfnrt").find(c);
        if (simple != std::string_view::npos) {
            text += "\"\\/\b\f\n\r\t"[simple];
            return;
        }
        if (c != 'u') throw Refused();
        const unsigned first = hexadecimal();
        if (first < 0xD800 || first > 0xDFFF) return append(text, first);
        if (first > 0xDBFF) throw Refused();
        word("\\u");
        const unsigned second = hexadecimal();
        if (second < 0xDC00 || second > 0xDFFF) throw Refused();
        append(text, 0x10000 + (first - 0xD800) * 0x400 + (second - 0xDC00));
    }

    std::string string() {
        std::string text;
        need('"');
        for (;;) {
            const char c = next();
            if (c == '"') return text;
            if (static_cast<unsigned char>(c) < 0x20) throw Refused();
            if (c == '\\') {
                escape(text);
            } else {
                text += c;
            }
        }
    }

    void digits() {
        if (peek() < '0' || peek() > '9') throw Refused();
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    }

    OtherJson number() {
        const std::size_t begin = at_;
        const bool negative = take('-');
        bool whole = true;
        if (!take('0')) digits();
        if (take('.')) {
            whole = false;
            digits();
        }
        if (take('e') || take('E')) {
            whole = false;
            if (!take('+')) take('-');
            digits();
        }
        const std::string spelled(text_.substr(begin, at_ - begin));
        errno = 0;
        if (whole && !negative) {
            const std::uint64_t integer = std::strtoull(spelled.c_str(), nullptr, 10);
            if (errno == 0) return {integer};
        } else if (whole) {
            const std::int64_t integer = std::strtoll(spelled.c_str(), nullptr, 10);
            if (errno == 0) return {integer};
        }
        const double real = std::strtod(spelled.c_str(), nullptr);
        if (!std::isfinite(real)) throw Refused();
        return {real};
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

const OtherJson* OtherJson::find(std::string_view key) const {
    if (const Object* entries = object()) {
        for (const auto& [name, entry] : *entries) {
            if (name == key) return &entry;
        }
    }
    return nullptr;
}

std::optional<OtherJson> other_json(std::string_view text) {
    if (!other_utf8(text)) return std::nullopt;
    try {
        return Reader(text).document();
    } catch (const Refused&) {
        return std::nullopt;
    }
}

bool other_utf8(std::string_view text) {
    const auto in = [&](std::size_t at, unsigned lowest, unsigned highest) {
        return at < text.size() && static_cast<unsigned char>(text[at]) >= lowest &&
               static_cast<unsigned char>(text[at]) <= highest;
    };
    const auto tail = [&](std::size_t at, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            if (!in(at + i, 0x80, 0xBF)) return false;
        }
        return true;
    };
    for (std::size_t i = 0; i < text.size();) {
        if (in(i, 0x00, 0x7F)) {
            i += 1;
        } else if (in(i, 0xC2, 0xDF) && tail(i + 1, 1)) {
            i += 2;
        } else if ((in(i, 0xE0, 0xE0) && in(i + 1, 0xA0, 0xBF) && tail(i + 2, 1)) ||
                   (in(i, 0xE1, 0xEC) && tail(i + 1, 2)) ||
                   (in(i, 0xED, 0xED) && in(i + 1, 0x80, 0x9F) && tail(i + 2, 1)) ||
                   (in(i, 0xEE, 0xEF) && tail(i + 1, 2))) {
            i += 3;
        } else if ((in(i, 0xF0, 0xF0) && in(i + 1, 0x90, 0xBF) && tail(i + 2, 2)) ||
                   (in(i, 0xF1, 0xF3) && tail(i + 1, 3)) ||
                   (in(i, 0xF4, 0xF4) && in(i + 1, 0x80, 0x8F) && tail(i + 2, 2))) {
            i += 4;
        } else {
            return false;
        }
    }
    return true;
}

}  // namespace headscope::fuzz
