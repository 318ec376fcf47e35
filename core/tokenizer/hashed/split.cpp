// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/hashed/split.h"

#include <array>
#include <string>

#include "core/base/progress.h"
#include "core/tokenizer/unicode/lower_case.h"
#include "core/tokenizer/unicode/text_check.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {
namespace {

enum class Kind : std::uint8_t { space, word, other };

Kind computed_kind(char32_t c) {
    // Beyond ASCII the property White_Space is what Python's \s is; of ASCII that has four more.
    const std::uint8_t bits = character_bits(c);
    if ((bits & bit_space) != 0 || (c >= 0x1C && c <= 0x1F)) return Kind::space;
    return (bits & (bit_letter | bit_number)) != 0 || c == U'_' ? Kind::word : Kind::other;
}

Kind kind_of(char32_t c) {
    static const std::array<Kind, 128> ascii = [] {
        std::array<Kind, 128> kinds{};
        for (char32_t point = 0; point < 128; ++point) kinds[point] = computed_kind(point);
        return kinds;
    }();
    return c < 128 ? ascii[c] : computed_kind(c);
}

/// Gathers characters to words.
class Gatherer {
public:
    explicit Gatherer(const std::function<void(const SplitWord&)>& take) : take_(take) {}

    void add(char32_t lower, std::uint32_t begin, std::uint32_t end) {
        const Kind kind = kind_of(lower);
        if (kind != kind_) finish();
        kind_ = kind;
        if (kind == Kind::space) return;
        if (piece_.empty()) begin_ = begin;
        end_ = end;
        if (lower < 128)
            piece_.push_back(static_cast<char>(lower));
        else
            append_utf8(piece_, lower);
    }
    void finish() {
        if (piece_.empty()) return;
        take_({piece_, begin_, end_});
        piece_.clear();
    }

private:
    const std::function<void(const SplitWord&)>& take_;
    std::string piece_;
    std::uint32_t begin_ = 0, end_ = 0;
    Kind kind_ = Kind::space;
};

}  // namespace

void split_words(std::string_view text, const std::function<void(const SplitWord&)>& take,
                 const Cancellation* cancellation) {
    check_text(text);
    constexpr std::size_t bytes_per_check = 1 << 20;
    std::size_t next_check = 0;
    Gatherer words(take);
    for (std::size_t at = 0; at < text.size();) {
        if (cancellation != nullptr && at >= next_check) {
            cancellation->check();
            next_check += bytes_per_check;
        }
        const auto [point, length] = decode_utf8(text, at);
        const auto begin = static_cast<std::uint32_t>(at), end = begin + length;
        if (point == kCapitalSigma && ends_word(text, at)) {
            words.add(kFinalSigma, begin, end);
        } else {
            char32_t buffer[2];
            for (const char32_t lower : to_lower(point, buffer)) words.add(lower, begin, end);
        }
        at = end;
    }
    words.finish();
}

}  // namespace headscope::tokenizer
