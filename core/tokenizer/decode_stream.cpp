// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/decode_stream.h"

#include <algorithm>
#include <string_view>

#include "core/tokenizer/tokenizer.h"

namespace headscope::tokenizer {

namespace {

// Enough for decoders to see what comes before a token.
constexpr std::size_t tokens_before = 8;
// A character has at most four bytes; a token that still makes none of what is held back leaves it as it is.
constexpr std::size_t most_held_back = 8;
// Tokens are forgotten from the first number on, and from the second on wherever that cuts.
constexpr std::size_t many_tokens = 4 * tokens_before, most_tokens = 16 * tokens_before;
constexpr std::string_view replacement = "\xEF\xBF\xBD";

}  // namespace

DecodeStream::DecodeStream(const Tokenizer& tokenizer, std::span<const std::int32_t> before, bool skip_special_tokens)
    : tokenizer_(tokenizer), skip_special_tokens_(skip_special_tokens) {
    // Not from within a character: decoders that fall back to bytes read all of its neighbours as none then.
    for (std::size_t kept = std::min(before.size(), tokens_before);; ++kept) {
        ids_.assign(before.end() - static_cast<std::ptrdiff_t>(kept), before.end());
        shown_ = decoded(0);
        if (!shown_.starts_with(replacement) || kept >= std::min(before.size(), many_tokens)) break;
    }
    given_ = ids_.size();
}

std::string DecodeStream::decoded(std::size_t from) const {
    return tokenizer_.decode(std::span(ids_).subspan(from), skip_special_tokens_);
}

std::string DecodeStream::add(std::int32_t id) {
    ids_.push_back(id);
    std::string text = decoded(0);
    if (text.ends_with(replacement) && ids_.size() - given_ < most_held_back) return {};
    return give(std::move(text));
}

std::string DecodeStream::finish() {
    return ids_.size() == given_ ? std::string() : give(decoded(0));
}

// `text` is what all of ids_ read as.
std::string DecodeStream::give(std::string text) {
    // If bytes of `before` were half a character, the text does not continue the shown text.
    std::string fresh = text.starts_with(shown_) ? text.substr(shown_.size()) : decoded(given_);
    given_ = ids_.size();
    shown_ = std::move(text);
    if (given_ >= many_tokens) forget();
    return fresh;
}

// Starts over where the rest decodes alike without the earlier tokens: not within a character or a word's pieces.
void DecodeStream::forget() {
    for (std::size_t kept = tokens_before; kept <= 2 * tokens_before; ++kept) {
        std::string rest = decoded(ids_.size() - kept);
        const bool same = shown_.ends_with(rest);
        if (!same && (kept < 2 * tokens_before || ids_.size() < most_tokens)) continue;
        ids_.erase(ids_.begin(), ids_.end() - static_cast<std::ptrdiff_t>(kept));
        given_ = ids_.size();
        shown_ = std::move(rest);
        return;
    }
}

}  // namespace headscope::tokenizer
