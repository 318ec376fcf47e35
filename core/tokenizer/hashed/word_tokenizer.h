// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Input of a model with a hash embedding: <s>, words, </s>. Ids 0 to 4 are special tokens, which are never read from
// text; a word's id is WordHash::id. A token's piece is the word as hashed (FoundToken::respelled); with `characters`
// each code point of the text as it stands.

#include <memory>

#include "core/tokenizer/hashed/word_hash.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::tokenizer {

class WordTokenizer final : public Tokenizer {
public:
    /// `pieces`: of "words": "tokenizer", what cuts the text (without special tokens of its own); else null.
    explicit WordTokenizer(std::shared_ptr<const WordHash> hash, std::shared_ptr<const Tokenizer> pieces = nullptr);

    void encode_into(TokenSink& sink, std::string_view text, bool add_special_tokens,
                     const Cancellation* cancellation) const override;
    /// <s> A </s></s> B </s>
    void encode_pair_into(TokenSink& sink, std::string_view first, std::string_view second, bool add_special_tokens,
                          const Cancellation* cancellation) const override;
    std::vector<FramePart> frame(bool pair) const override;
    std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const override;
    std::string piece(std::int32_t id) const override;  ///< of special tokens; a word's id does not determine the word
    std::string surface(std::int32_t id) const override { return piece(id); }
    std::int64_t vocabulary_size() const override { return hash_->settings().ids(); }
    std::optional<std::int32_t> id_of(std::string_view piece) const override;
    bool adds_first_token() const override { return true; }
    const WordHash* word_hash() const override { return hash_.get(); }

private:
    void add_words(TokenSink& sink, std::string_view text, std::uint8_t region, const Cancellation* cancellation) const;

    std::shared_ptr<const WordHash> hash_;
    std::shared_ptr<const Tokenizer> pieces_;
};

/// "embedding" of the native config.json in a checkpoint's folder; empty where there is none, or a table.
std::optional<HashSettings> hash_settings_in(const std::filesystem::path& folder);
/// The tokenizer of such a folder: with lsh its ngrams.json and the model.hash_normal of its weights.
std::shared_ptr<const Tokenizer> read_word_tokenizer(const std::filesystem::path& folder, const HashSettings& settings);

}  // namespace headscope::tokenizer
