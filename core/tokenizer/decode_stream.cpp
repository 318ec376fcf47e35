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
constexpr std::string_view replacement = "\xEF\xBF\xBD";

}  // namespace

DecodeStream::DecodeStream(const Tokenizer& tokenizer, std::span<const std::int32_t> before, bool skip_special_tokens)
    : tokenizer_(tokenizer), skip_special_tokens_(skip_special_tokens) {
    const std::size_t kept = std::min(before.size(), tokens_before);
    ids_.assign(before.end() - static_cast<std::ptrdiff_t>(kept), before.end());
    given_ = ids_.size();
    shown_ = decoded(0);
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
    // Where bytes of `before` were half a character, the text does not go on from what was shown.
    std::string fresh = text.starts_with(shown_) ? text.substr(shown_.size()) : decoded(given_);
    given_ = ids_.size();
    shown_ = std::move(text);
    if (given_ >= 4 * tokens_before) {
        ids_.erase(ids_.begin(), ids_.end() - static_cast<std::ptrdiff_t>(tokens_before));
        given_ = ids_.size();
        shown_ = decoded(0);
    }
    return fresh;
}

}  // namespace headscope::tokenizer
