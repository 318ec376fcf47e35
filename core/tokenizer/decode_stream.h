// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace headscope::tokenizer {

class Tokenizer;

/// Text as its tokens come: each one costs a few tokens' decoding, however long the text is. What is given out together
/// is what decoding everything gives, but for bytes that are no character: those are held back until it is clear that
/// the next tokens do not make one of them. Not for several threads; `tokenizer` must outlive it.
class DecodeStream {
public:
    /// `before`: the tokens that the text follows; theirs is not given out.
    explicit DecodeStream(const Tokenizer& tokenizer, std::span<const std::int32_t> before = {},
                          bool skip_special_tokens = false);

    /// The text that is certain now; may be empty.
    std::string add(std::int32_t id);
    /// The held-back text. After the last token.
    std::string finish();

private:
    std::string decoded(std::size_t from) const;
    std::string give(std::string text);
    void forget();

    const Tokenizer& tokenizer_;
    bool skip_special_tokens_;
    std::vector<std::int32_t> ids_;  ///< some that were given out, for spaces between tokens; then those that were not
    std::size_t given_ = 0;          ///< of ids_
    std::string shown_;              ///< what the given ones of ids_ read as
};

}  // namespace headscope::tokenizer
