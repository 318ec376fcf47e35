// SPDX-License-Identifier: GPL-3.0-or-later
#include <utility>

#include "core/tokenizer/pre_tokenizers/pre_tokenizer.h"
#include "core/tokenizer/regex/pattern_field.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

bool is_numeric(char32_t c) {
    return (character_bits(c) & bit_numeric) != 0;
}
bool is_punctuation(char32_t c) {
    return (character_bits(c) & bit_punctuation) != 0;
}

/// Everything that splits by what one matcher finds.
class Split final : public PreTokenizer {
public:
    Split(std::unique_ptr<Matcher> matcher, SplitBehavior behavior, bool invert = false)
        : matcher_(std::move(matcher)), behavior_(behavior), invert_(invert) {}
    void apply(Pieces& pieces) const override { pieces.split(*matcher_, behavior_, invert_); }

private:
    std::unique_ptr<Matcher> matcher_;
    SplitBehavior behavior_;
    bool invert_;
};

/// White space goes, each punctuation mark is a piece.
class BertPreTokenizer final : public PreTokenizer {
public:
    void apply(Pieces& pieces) const override {
        pieces.split([](std::string_view piece, Pieces::Parts& parts) {
            std::uint32_t begin = 0;
            for (std::uint32_t at = 0; at < piece.size();) {
                const Decoded c = decode_utf8(piece, at);
                const std::uint8_t bits = character_bits(c.point);
                const std::uint32_t end = at + c.length;
                if ((bits & (bit_space | bit_punctuation)) != 0) {
                    parts.add(begin, at);
                    if ((bits & bit_space) == 0) parts.add(at, end);
                    begin = end;
                }
                at = end;
            }
            parts.add(begin, static_cast<std::uint32_t>(piece.size()));
        });
    }
};

/// \w+|[^\w\s]+, white space goes.
class Whitespace final : public PreTokenizer {
public:
    void apply(Pieces& pieces) const override {
        pieces.split([](std::string_view piece, Pieces::Parts& parts) {
            std::uint32_t begin = 0;
            int last = 0;  // 0 space, 1 word, 2 other
            for (std::uint32_t at = 0; at < piece.size();) {
                const Decoded c = decode_utf8(piece, at);
                const std::uint8_t bits = character_bits(c.point);
                const int kind = (bits & bit_word) != 0 ? 1 : (bits & bit_space) != 0 ? 0 : 2;
                if (kind != last) {
                    if (last != 0) parts.add(begin, at);
                    begin = at;
                    last = kind;
                }
                at += c.length;
            }
            if (last != 0) parts.add(begin, static_cast<std::uint32_t>(piece.size()));
        });
    }
};

class FixedLength final : public PreTokenizer {
public:
    explicit FixedLength(std::int64_t length) : length_(length) {}
    void apply(Pieces& pieces) const override {
        pieces.split([this](std::string_view piece, Pieces::Parts& parts) {
            std::uint32_t begin = 0;
            std::int64_t count = 0;
            for (std::uint32_t at = 0; at < piece.size();) {
                at += static_cast<std::uint32_t>(utf8_length(piece[at]));
                if (++count < length_ && at < piece.size()) continue;
                parts.add(begin, at);
                begin = at;
                count = 0;
            }
        });
    }

private:
    std::int64_t length_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_split(const JsonView& description) {
    return std::make_unique<Split>(pattern_field(description.at("pattern")), behavior_field(description.at("behavior")),
                                   description.at("invert").boolean());
}

std::unique_ptr<PreTokenizer> make_punctuation(const JsonView& description) {
    const auto behavior = description.find("behavior");
    return std::make_unique<Split>(character_matcher(is_punctuation),
                                   behavior ? behavior_field(*behavior) : SplitBehavior::isolated);
}

std::unique_ptr<PreTokenizer> make_digits(const JsonView& description) {
    const bool individual = description.at("individual_digits").boolean();
    return std::make_unique<Split>(character_matcher(is_numeric),
                                   individual ? SplitBehavior::isolated : SplitBehavior::contiguous);
}

std::unique_ptr<PreTokenizer> make_character_delimiter(const JsonView& description) {
    return std::make_unique<Split>(character_matcher(character_field(description.at("delimiter"))),
                                   SplitBehavior::removed);
}

std::unique_ptr<PreTokenizer> make_fixed_length(const JsonView& description) {
    return std::make_unique<FixedLength>(description.integer_or("length", 5, {1, 1'000'000'000}));
}

std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer() {
    return std::make_unique<BertPreTokenizer>();
}
std::unique_ptr<PreTokenizer> make_whitespace() {
    return std::make_unique<Whitespace>();
}
std::unique_ptr<PreTokenizer> make_whitespace_split() {
    return std::make_unique<Split>(character_matcher(is_space), SplitBehavior::removed);
}

}  // namespace headscope::tokenizer
