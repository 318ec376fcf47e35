// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "core/tokenizer/post_processors/post_processor.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

constexpr char32_t spelled_space = 0x120;  // of the byte-level alphabet

bool is_blank(char32_t c) {
    return c == spelled_space || is_space(c);
}

std::size_t leading_blanks(std::string_view piece) {
    std::size_t count = 0;
    for (std::size_t at = 0; at < piece.size(); ++count) {
        const Decoded c = decode_utf8(piece, at);
        if (!is_blank(c.point)) break;
        at += c.length;
    }
    return count;
}

std::size_t trailing_blanks(std::string_view piece) {
    std::size_t count = 0;
    for (std::size_t end = piece.size(); end > 0; ++count) {
        end = previous_utf8(piece, end);
        if (!is_blank(decode_utf8(piece, end).point)) break;
    }
    return count;
}

// True if at least `count` characters lie before byte `end`.
bool has_characters_before(std::string_view text, std::size_t end, std::size_t count) {
    return end / 4 >= count || count_utf8(text.substr(0, end)) >= count;
}

class ByteLevel final : public PostProcessor {
public:
    explicit ByteLevel(const JsonView& description)
        : add_prefix_space_(description.at("add_prefix_space").boolean()),
          trim_(description.at("trim_offsets").boolean()) {}
    void adjust(TextToken& token) const override {
        if (trim_) trim_offsets(token, add_prefix_space_);
    }
    bool adjusts() const override { return trim_; }

private:
    bool add_prefix_space_;
    bool trim_;
};

}  // namespace

void trim_offsets(TextToken& token, bool add_prefix_space) {
    std::size_t leading = leading_blanks(token.piece);
    const std::size_t trailing = trailing_blanks(token.piece);
    if (leading == 1 && add_prefix_space && (token.is_first || token.begin == 0)) leading = 0;
    for (; leading > 0 && token.begin < token.end; --leading) {
        token.begin += static_cast<std::uint32_t>(utf8_length(token.text[token.begin]));
    }
    if (trailing > 0 && has_characters_before(token.text, token.end, trailing)) {
        for (std::size_t left = trailing; left > 0 && token.end > token.begin; --left) {
            token.end = static_cast<std::uint32_t>(previous_utf8(token.text, token.end));
        }
    }
}

std::unique_ptr<PostProcessor> make_byte_level_processing(const JsonView& description) {
    return std::make_unique<ByteLevel>(description);
}

}  // namespace headscope::tokenizer
