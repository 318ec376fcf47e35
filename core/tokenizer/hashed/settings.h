// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// "embedding" of a native config.json: what a model reads in place of a table of its vocabulary (Xue and Aletras,
// "HashFormers", EMNLP 2022; Sankar et al., "ProFormer", 2021; Clark et al., "CANINE", 2022).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {
class JsonView;
}

namespace headscope::tokenizer {

enum class EmbeddingKind {
    table,       ///< one row for each entry of the vocabulary
    emb,         ///< one row for each hash
    pool,        ///< a weighted sum of code words, each found by some of the hash's bits
    add,         ///< a sum of one vector for each bit
    proj,        ///< correlations of the bits with learned axes
    linear,      ///< a map of the bits (ProFormer)
    characters,  ///< of each code point, rows of several hash functions side by side (CANINE)
};
enum class WordHashKind { none, md5, lsh };

/// Ids that every hash embedding has, in this order: <s> <pad> </s> <unk> <mask>; what comes behind them are words.
inline constexpr std::int32_t kSpecialTokens = 5;
std::string_view special_token(std::int32_t id);  ///< by its id, below kSpecialTokens

inline constexpr std::int64_t kMd5Bits = 128;

struct HashSettings {
    EmbeddingKind kind = EmbeddingKind::table;
    WordHashKind hash = WordHashKind::none;
    std::string key = "en";                   ///< of HMAC-MD5
    std::int64_t rows = 0;                    ///< of emb, without those of special tokens
    std::int64_t bits = 0;                    ///< of each word (pool, add, proj, linear); 0: no bits
    std::int64_t group_bits = 0;              ///< that find one code word (pool)
    std::int64_t functions = 0, buckets = 0;  ///< of characters
    /// Entries of the list that a fresh model's hash_normal covers; a file's tensor gives its own number.
    std::int64_t ngrams = 50'000;
    bool tokenizer_pieces = false;  ///< what is hashed are the pieces of a tokenizer.json

    bool is_table() const { return kind == EmbeddingKind::table; }
    /// Code words that make one vector: ceil(bits / group_bits).
    std::int64_t groups() const { return group_bits > 0 ? (bits + group_bits - 1) / group_bits : 0; }
    /// Ids are below it; of a table 0.
    std::int64_t ids() const;
    /// True if words are hashed to bits: MD5's digest counts as bits even if `bits` is 0.
    bool has_bits() const { return hash == WordHashKind::md5 || bits > 0; }
    std::int64_t shown_bits() const { return bits > 0 ? bits : hash == WordHashKind::md5 ? kMd5Bits : 0; }
};

/// Error format or limit names the key. Keys that the kind does not know are refused.
HashSettings read_hash_settings(const JsonView& embedding);
/// The same as JSON text, every key written out except `ngrams`, which the model's tensor gives.
std::string hash_settings_json(const HashSettings& settings);

}  // namespace headscope::tokenizer
