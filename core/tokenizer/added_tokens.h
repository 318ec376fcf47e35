// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tokens that are looked for in the text itself, before the model sees it. Those with normalized = false are found in
// the raw text; normalisation stops at them; the others are found in what the normaliser makes of the text, by what it
// makes of them.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/base/json/json.h"
#include "core/tokenizer/models/model.h"
#include "core/tokenizer/normalizers/normalizer.h"
#include "core/tokenizer/token_set.h"

namespace headscope::tokenizer {

struct AddedToken {
    std::int32_t id = 0;
    std::string content;     ///< as the file has it
    std::string normalized;  ///< what the normaliser makes of it; the content where it does nothing or is not asked
    bool is_normalized = false;
    bool single_word = false;
    bool strip_left = false;
    bool strip_right = false;
    bool special = false;
};

class AddedTokens {
public:
    AddedTokens() = default;
    /// `list` is tokenizer.json's "added_tokens"; `normalizer` may be null.
    AddedTokens(const JsonView& list, const Vocabulary& vocabulary, const Normalizer* normalizer);

    /// A stretch of text: an added token, or (id < 0) what lies between two. Stretches may overlap where a token that
    /// takes white space along is followed by one that is white space; the library does so too.
    struct Stretch {
        std::uint32_t begin = 0;
        std::uint32_t end = 0;
        std::int32_t id = -1;
    };
    using TakeStretch = std::function<void(const Stretch&)>;
    /// Calls take for each stretch of a text, from left to right.
    void each_raw(std::string_view text, const TakeStretch& take) const { each(text, raw_, take); }
    void each_normalized(std::string_view text, const TakeStretch& take) const { each(text, normalized_, take); }

    const AddedToken* find(std::int32_t id) const;
    std::optional<std::int32_t> id_of(std::string_view content) const;
    /// True if decoding without special tokens leaves out a token that reads like this.
    bool is_special(const std::string& piece) const { return special_.contains(piece); }
    std::int64_t highest_id() const noexcept { return highest_id_; }

private:
    void each(std::string_view text, const TokenSet& set, const TakeStretch& take) const;

    std::string where_;
    std::unordered_map<std::int32_t, AddedToken> tokens_;
    std::unordered_map<std::string, std::int32_t> ids_;
    std::unordered_set<std::string> special_;
    TokenSet raw_;
    TokenSet normalized_;
    std::int64_t highest_id_ = -1;
};

}  // namespace headscope::tokenizer
