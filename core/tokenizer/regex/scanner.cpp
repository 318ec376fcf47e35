// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/regex/scanner.h"

#include <array>

#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

const std::string_view gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

// The alternatives of Llama 3's and Qwen2's patterns but for the digits that make one number.
constexpr std::string_view llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::uint8_t any_of_three = bit_letter | bit_number | bit_space;

class Cursor {
public:
    explicit Cursor(std::string_view text) : text_(text) {
        for (char32_t c = 0; c < 128; ++c) ascii_[c] = character_bits(c);
    }

    std::uint32_t size() const { return static_cast<std::uint32_t>(text_.size()); }
    bool ends(std::uint32_t at) const { return at >= text_.size(); }
    char byte(std::uint32_t at) const { return at < text_.size() ? text_[at] : '\0'; }

    struct Character {
        std::uint8_t bits = 0;
        std::uint32_t length = 0;  ///< 0 at the end of the text
    };
    Character character(std::uint32_t at) const {
        if (ends(at)) return {};
        const auto lead = static_cast<unsigned char>(text_[at]);
        if (lead < 128) return {ascii_[lead], 1};
        const Decoded c = decode_utf8(text_, at);
        return {character_bits(c.point), c.length};
    }

    /// The end of the run, from `at` on, of characters whose bits in `mask` are some of `wanted` (none when 0).
    std::uint32_t run(std::uint32_t at, std::uint8_t mask, std::uint8_t wanted, std::uint32_t most = ~0u) const {
        for (std::uint32_t count = 0; count < most; ++count) {
            const Character c = character(at);
            if (c.length == 0) break;
            const std::uint8_t found = c.bits & mask;
            if (wanted == 0 ? found != 0 : (found & wanted) == 0) break;
            at += c.length;
        }
        return at;
    }

    /// End of the white space at `at` for \s+(?!\S) or else \s+: a word keeps one space.
    std::uint32_t space(std::uint32_t at) const {
        const std::uint32_t end = run(at, bit_space, bit_space);
        if (ends(end)) return end;
        const auto last = static_cast<std::uint32_t>(previous_utf8(text_, end));
        return last > at ? last : end;
    }

    /// The length of a contraction at `at` ('s 't 're 've 'm 'll 'd), 0 for none. Without case, U+017F is an s.
    std::uint32_t contraction(std::uint32_t at, bool ignore_case) const {
        if (byte(at) != '\'') return 0;
        const auto letter = [&](std::uint32_t i) {
            const char c = byte(at + i);
            return ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
        };
        const char first = letter(1);
        if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
        const char second = letter(2);
        if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l'))
            return 3;
        if (ignore_case && byte(at + 1) == '\xC5' && byte(at + 2) == '\xBF') return 3;
        return 0;
    }

    /// The end of \s*[\r\n]+ at `at`, or `at`.
    std::uint32_t lines(std::uint32_t at) const {
        std::uint32_t end = at;
        for (std::uint32_t i = at;;) {
            const Character c = character(i);
            if ((c.bits & bit_space) == 0) return end;
            i += c.length;
            if (text_[i - 1] == '\r' || text_[i - 1] == '\n') end = i;
        }
    }

private:
    std::string_view text_;
    std::array<std::uint8_t, 128> ascii_{};
};

std::uint32_t gpt2_end(const Cursor& cursor, std::uint32_t at) {
    if (const std::uint32_t length = cursor.contraction(at, false)) return at + length;
    const std::uint32_t begin = cursor.byte(at) == ' ' ? at + 1 : at;
    const Cursor::Character c = cursor.character(begin);
    if (c.length != 0 && (c.bits & bit_space) == 0) {
        const std::uint8_t kind = c.bits & (bit_letter | bit_number);
        return cursor.run(begin + c.length, any_of_three, kind);
    }
    return cursor.space(at);
}

template <std::uint32_t digits>
std::uint32_t llama3_end(const Cursor& cursor, std::uint32_t at) {
    if (const std::uint32_t length = cursor.contraction(at, true)) return at + length;
    const Cursor::Character first = cursor.character(at);
    if ((first.bits & bit_letter) != 0) return cursor.run(at, bit_letter, bit_letter);
    if ((first.bits & bit_number) != 0) return cursor.run(at, bit_number, bit_number, digits);
    const char lead = cursor.byte(at);
    const std::uint32_t second = at + first.length;
    if (lead != '\r' && lead != '\n') {
        const std::uint32_t word = cursor.run(second, bit_letter, bit_letter);
        if (word != second) return word;
    }
    const std::uint32_t begin = lead == ' ' ? second : at;
    std::uint32_t end = cursor.run(begin, any_of_three, 0);
    if (end != begin) {
        while (cursor.byte(end) == '\r' || cursor.byte(end) == '\n') ++end;
        return end;
    }
    const std::uint32_t lines = cursor.lines(at);
    return lines != at ? lines : cursor.space(at);
}

class Scanner final : public Matcher {
public:
    using End = std::uint32_t (*)(const Cursor&, std::uint32_t);
    explicit Scanner(End end) : end_(end) {}

    void each(std::string_view text, SearchWatch&, const TakeMatch& take) const override {
        const Cursor cursor(text);
        for (std::uint32_t at = 0; !cursor.ends(at);) {
            const std::uint32_t end = end_(cursor, at);
            take({at, end});
            at = end;
        }
    }

private:
    End end_;
};

}  // namespace

std::unique_ptr<Matcher> scanner_for(std::string_view pattern) {
    if (pattern == gpt2_pattern) return std::make_unique<Scanner>(gpt2_end);
    if (pattern == llama3_pattern) return std::make_unique<Scanner>(llama3_end<3>);
    if (pattern == qwen2_pattern) return std::make_unique<Scanner>(llama3_end<1>);
    return nullptr;
}

}  // namespace headscope::tokenizer
