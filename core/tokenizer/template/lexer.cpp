// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/template/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/tokenizer/template/python_text.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer::chat {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool begins_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

class Lexer {
public:
    Lexer(std::string_view source, std::size_t& at) : source_(source), at_(at) {}

    std::vector<Token> run() {
        // One line feed at the very end is not part of a template.
        if (source_.ends_with("\r\n"))
            source_.remove_suffix(2);
        else if (source_.ends_with('\n') || source_.ends_with('\r'))
            source_.remove_suffix(1);
        while (at_ < source_.size()) take_text();
        add(Kind::end);
        return std::move(tokens_);
    }

private:
    bool here(std::string_view text) const { return source_.substr(at_).starts_with(text); }
    char peek(std::size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
    void add(Kind kind, std::string text = {}) { tokens_.push_back({kind, std::move(text), 0, 0, at_}); }

    bool opens_tag(std::size_t at) const {
        return at + 1 < source_.size() && std::string_view("{%#").find(source_[at + 1]) != std::string_view::npos;
    }

    static std::string line_feeds(std::string_view text) {
        std::string made;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
            made += text[i] == '\r' ? '\n' : text[i];
        }
        return made;
    }

    /// Text up to the next tag, and that tag.
    void take_text() {
        std::size_t tag = source_.find('{', at_);
        while (tag != std::string_view::npos && !opens_tag(tag)) tag = source_.find('{', tag + 1);
        if (tag == std::string_view::npos) {
            add(Kind::data, line_feeds(source_.substr(at_)));
            at_ = source_.size();
            return;
        }
        const char kind = source_[tag + 1];
        std::string_view text = source_.substr(at_, tag - at_);
        const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
        text = before_tag(text, sign, kind != '{');
        if (!text.empty()) add(Kind::data, line_feeds(text));
        at_ = tag + 2 + (sign == '-' || sign == '+' ? 1 : 0);
        if (kind == '#') return take_comment(tag);
        if (kind == '%' && take_raw(tag)) return;
        tokens_.push_back({kind == '{' ? Kind::variable_begin : Kind::block_begin, "", 0, 0, tag});
        take_words(kind == '{');
    }

    /// The part of the text before a tag that stays.
    std::string_view before_tag(std::string_view text, char sign, bool block) const {
        if (sign == '-') return stripped(text, nullptr, false, true);
        if (sign == '+' || !block) return text;
        // A block alone on its line takes the white space before it along.
        const std::size_t feed = text.find_last_of("\n\r");
        const std::size_t line = feed == std::string_view::npos ? 0 : feed + 1;
        if (line == 0 && !line_starting_) return text;
        return stripped(text.substr(line), nullptr, true, false).empty() ? text.substr(0, line) : text;
    }

    /// Behind a closing bracket at at_: "-" takes all white space, a block one line end.
    void after_tag(bool minus, bool plus, bool trims) {
        if (minus) {
            const std::size_t white = white_begin(source_.substr(at_));
            at_ += white;
            line_starting_ = white > 0 && (source_[at_ - 1] == '\n' || source_[at_ - 1] == '\r');
            return;
        }
        line_starting_ = false;
        if (!trims || plus) return;
        const std::size_t before = at_;
        if (here("\r\n"))
            at_ += 2;
        else if (here("\n") || here("\r"))
            ++at_;
        line_starting_ = at_ > before;
    }

    void take_comment(std::size_t tag) {
        const std::size_t end = source_.find("#}", at_);
        if (end == std::string_view::npos) {
            at_ = tag;
            refuse("expected a comment that ends with #}", "found none that does");
        }
        const char sign = end > at_ ? source_[end - 1] : '\0';
        at_ = end + 2;
        after_tag(sign == '-', sign == '+', true);
    }

    /// {% raw %} up to {% endraw %}; false, and nothing taken, for another block.
    bool take_raw(std::size_t tag) {
        const std::size_t begin = at_;
        at_ += white_begin(source_.substr(at_));
        if (!here("raw")) return at_ = begin, false;
        at_ += 3;
        at_ += white_begin(source_.substr(at_));
        const bool minus = here("-%}");
        if (!minus && !here("%}")) return at_ = begin, false;
        at_ += minus ? 3 : 2;
        if (minus) at_ += white_begin(source_.substr(at_));
        for (std::size_t open = source_.find("{%", at_); open != std::string_view::npos;
             open = source_.find("{%", open + 2)) {
            const std::size_t text = at_;
            at_ = open + 2;
            const char sign = peek();
            if (sign == '-' || sign == '+') ++at_;
            at_ += white_begin(source_.substr(at_));
            if (here("endraw")) {
                at_ += 6;
                at_ += white_begin(source_.substr(at_));
                const bool ends_minus = here("-%}"), ends_plus = here("+%}");
                if (ends_minus || ends_plus || here("%}")) {
                    at_ += ends_minus || ends_plus ? 3 : 2;
                    line_starting_ = false;
                    const auto inside = before_tag(source_.substr(text, open - text), sign, true);
                    tokens_.push_back({Kind::data, line_feeds(inside), 0, 0, text});
                    after_tag(ends_minus, ends_plus, true);
                    return true;
                }
            }
            at_ = text;
        }
        at_ = tag;
        refuse("expected {% endraw %} after {% raw %}", "found none");
    }

    void take_words(bool variable) {
        const std::size_t tag = at_;
        std::string open;
        while (true) {
            at_ += white_begin(source_.substr(at_));
            if (at_ >= source_.size()) {
                at_ = tag;
                refuse(variable ? "expected }} after {{" : "expected %} after {%", "found the end of the template");
            }
            if (open.empty() && take_closing(variable)) return;
            const char c = peek();
            if (is_digit(c))
                take_number();
            else if (c == '\'' || c == '"')
                take_string(c);
            else if (begins_name(c) || static_cast<unsigned char>(c) >= 0x80)
                take_name();
            else
                take_symbol(open);
        }
    }

    bool take_closing(bool variable) {
        const std::string_view closing = variable ? "}}" : "%}";
        const bool minus = here(variable ? "-}}" : "-%}"), plus = !variable && here("+%}");
        if (!minus && !plus && !here(closing)) return false;
        add(variable ? Kind::variable_end : Kind::block_end);
        at_ += minus || plus ? 3 : 2;
        after_tag(minus, plus, !variable);
        return true;
    }

    void take_symbol(std::string& open) {
        static constexpr std::array<std::string_view, 6> two = {"//", "**", "==", "!=", ">=", "<="};
        static constexpr std::string_view one = "+-/*%~[](){}<>=.:|,;";
        std::string_view symbol = source_.substr(at_, 2);
        if (std::find(two.begin(), two.end(), symbol) == two.end()) symbol = source_.substr(at_, 1);
        if (symbol.size() == 1 && one.find(symbol) == std::string_view::npos)
            refuse("expected an expression", "found \"" + escaped(symbol) + "\"");
        if (symbol == "(" || symbol == "[" || symbol == "{") open += symbol;
        if (symbol == ")" || symbol == "]" || symbol == "}") {
            const char opened = symbol == ")" ? '(' : symbol == "]" ? '[' : '{';
            if (open.empty() || open.back() != opened)
                refuse("expected brackets in pairs", "found \"" + std::string(symbol) + "\"");
            open.pop_back();
        }
        add(Kind::symbol, std::string(symbol));
        at_ += symbol.size();
    }

    void take_name() {
        std::size_t end = at_;
        while (end < source_.size() &&
               (begins_name(source_[end]) || is_digit(source_[end]) ||
                (static_cast<unsigned char>(source_[end]) >= 0x80 && is_word(decode_utf8(source_, end).point))))
            end += utf8_length(source_[end]);
        if (end == at_) {
            const auto length = utf8_length(source_[at_]);
            refuse("expected an expression", "found \"" + escaped(source_.substr(at_, length)) + "\"");
        }
        add(Kind::name, std::string(source_.substr(at_, end - at_)));
        at_ = end;
    }

    void take_number() {
        std::string digits;
        std::size_t end = at_;
        const auto run = [&](const auto& takes) {
            while (end < source_.size() && (takes(source_[end]) || (source_[end] == '_' && end + 1 < source_.size() &&
                                                                    takes(source_[end + 1])))) {
                if (source_[end] != '_') digits += source_[end];
                ++end;
            }
        };
        const auto hexadecimal = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); };
        const char letter = peek() == '0' ? static_cast<char>(peek(1) | 0x20) : '\0';
        int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
        bool real = false;
        if (base != 10) {
            end += 2;
            run([&](char c) { return base == 16 ? hexadecimal(c) : c >= '0' && c < '0' + base; });
        } else {
            run(is_digit);
            if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
                real = true;
                digits += '.';
                ++end;
                run(is_digit);
            }
            const std::size_t sign = end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-');
            if (end + 1 + sign < source_.size() && (source_[end] | 0x20) == 'e' && is_digit(source_[end + 1 + sign])) {
                real = true;
                digits += source_.substr(end, 1 + sign);
                end += 1 + sign;
                run(is_digit);
            }
        }
        add(real ? Kind::real : Kind::integer, digits);
        Token& token = tokens_.back();
        const char *first = digits.data(), *last = digits.data() + digits.size();
        if (real) {
            token.real = std::strtod(digits.c_str(), nullptr);
        } else if (const auto [stop, error] = std::from_chars(first, last, token.integer, base);
                   error != std::errc() || stop != last) {
            refuse(ErrorCode::limit, "expected a whole number below 2^63", "found \"" + escaped(digits, 40) + '"');
        }
        at_ = end;
    }

    void take_string(char quote) {
        const std::size_t begin = at_;
        std::size_t end = at_ + 1;
        while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
        if (end >= source_.size()) refuse("expected a string that ends", "found none that does");
        add(Kind::string, unescaped(line_feeds(source_.substr(begin + 1, end - begin - 1))));
        at_ = end + 1;
    }

    static std::string unescaped(std::string_view text) {
        std::string made;
        for (std::size_t i = 0; i < text.size();) {
            if (text[i] != '\\') {
                made += text[i++];
                continue;
            }
            const char c = text[i + 1];  // there is one: the string did not end here
            constexpr std::string_view letters = "\\'\"abfnrtv", meant = "\\'\"\a\b\f\n\r\t\v";
            const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
            if (const std::size_t known = letters.find(c); known != std::string_view::npos) {
                made += meant[known];
                i += 2;
            } else if (digits > 0) {
                append_point(made, text.substr(i + 2, digits), digits, 16);
                i += 2 + digits;
            } else if (c >= '0' && c <= '7') {
                std::size_t size = 1;
                while (size < 3 && i + 1 + size < text.size() && text[i + 1 + size] >= '0' && text[i + 1 + size] <= '7')
                    ++size;
                append_point(made, text.substr(i + 1, size), size, 8);
                i += 1 + size;
            } else if (c == '\n') {
                i += 2;
            } else if (c == 'N') {
                refuse(ErrorCode::unsupported, "expected characters by number (\\u)", "found one by name (\\N)");
            } else {
                made += '\\';  // as it stands, with what follows
                ++i;
                if (static_cast<unsigned char>(c) < 0x80) made += text[i++];
            }
        }
        return made;
    }

    static void append_point(std::string& made, std::string_view digits, std::size_t size, int base) {
        std::uint32_t point = 0;
        const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), point, base);
        if (digits.size() != size || error != std::errc() || stop != digits.data() + digits.size() ||
            point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
            refuse("expected the number of a character", "found \"" + escaped(digits) + '"');
        append_utf8(made, point);
    }

    std::string_view source_;
    std::size_t& at_;
    bool line_starting_ = true;
    std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> cut(std::string_view source, std::size_t& at) {
    at = 0;
    return Lexer(source, at).run();
}

std::string place(std::string_view source, std::size_t at) {
    std::size_t line = 1, begin = 0;
    at = std::min(at, source.size());
    for (std::size_t i = 0; i < at; ++i) {
        const bool inside = source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n';
        if ((source[i] == '\n' || source[i] == '\r') && !inside) {
            ++line;
            begin = i + 1;
        }
    }
    return "line " + std::to_string(line) + ", column " +
           std::to_string(count_utf8(source.substr(begin, at - begin)) + 1);
}

}  // namespace headscope::tokenizer::chat
