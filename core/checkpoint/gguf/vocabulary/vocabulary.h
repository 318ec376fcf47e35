// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The vocabulary of a GGUF file and the tokenizer.json that it stands for.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/checkpoint/gguf/metadata.h"

namespace headscope::checkpoint::gguf {

/// Numbers as files store them.
enum class TokenType : std::int64_t { undefined, normal, unknown, control, user_defined, unused, byte };

/// Keys below tokenizer.ggml, checked against each other.
class Vocabulary {
public:
    /// Throws Error format for lists of different lengths, repeated tokens and ids beyond the list.
    explicit Vocabulary(KeyReader& keys);

    std::size_t size() const { return tokens_.size(); }
    const std::string& token(std::size_t id) const { return tokens_[id]; }
    TokenType type(std::size_t id) const { return types_.empty() ? TokenType::normal : types_[id]; }
    bool has_scores() const { return !scores_.empty(); }
    double score(std::size_t id) const { return scores_.empty() ? 0 : scores_[id]; }
    std::optional<std::size_t> id_of(const std::string& token) const;
    /// Replaces a token's text, which must stay its own.
    void respell(std::size_t id, std::string token);

    /// Id under a key, "bos_token_id"; empty where the file names none.
    std::optional<std::size_t> named(const std::string& key) const;

    KeyReader& keys() const { return keys_; }

    /// {"token": id} of all.
    nlohmann::json ids() const;
    /// Control and user-defined tokens, which are found in the text as they are.
    nlohmann::json added_tokens() const;

private:
    KeyReader& keys_;
    std::vector<std::string> tokens_;
    std::vector<TokenType> types_;
    std::vector<double> scores_;
    std::unordered_map<std::string, std::size_t> ids_;
};

/// Ids at the ends of a text.
struct Ends {
    std::optional<std::size_t> first, last;
    /// Between two texts and behind the second, instead of `first` before it (BERT).
    std::optional<std::size_t> separator;
};
/// A TemplateProcessing, null where nothing is added.
nlohmann::json template_of(const Vocabulary& vocabulary, const Ends& ends);
/// tokenizer.ggml.add_bos_token and add_eos_token.
Ends read_ends(const Vocabulary& vocabulary, bool first_by_default, bool last_by_default);

/// Split and byte alphabet of tokenizer.ggml.pre.
struct Split {
    nlohmann::json pre_tokenizer;
    bool ignore_merges = false;  ///< a word that is a token is not merged
    bool adds_first = false;     ///< add_bos_token's default
};
/// Empty for an unknown name.
std::optional<Split> split_named(std::string_view name);

// One for each tokenizer.ggml.model: a whole tokenizer.json.
nlohmann::json byte_level_document(Vocabulary& vocabulary);
nlohmann::json sentence_piece_document(Vocabulary& vocabulary);
nlohmann::json word_piece_document(Vocabulary& vocabulary);
nlohmann::json unigram_document(Vocabulary& vocabulary);

}  // namespace headscope::checkpoint::gguf
