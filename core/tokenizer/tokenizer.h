// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Text to ids and back, equal to the `tokenizers` library (0.23) on the same tokenizer.json. Immutable after
// construction; const members are safe from several threads. Errors: headscope::Error.
//
// The file's truncation and padding are ignored, and so is a BPE's dropout. As in the library, the ids that the file
// gives to added tokens do not count: a token of the vocabulary keeps its id, others follow the vocabulary in order.

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headscope {
class Cancellation;
}

namespace headscope::tokenizer {

struct Encoding {
    std::vector<std::int32_t> ids;
    std::vector<std::array<std::int64_t, 2>>
        offsets;                        ///< bytes [begin, end) of the UTF-8 text; {0, 0} for inserted tokens
    std::vector<std::uint8_t> special;  ///< 1 for tokens the post-processor inserted

    struct Respelled {
        std::int64_t token = 0;  ///< index in ids
        std::string piece;
    };
    /// Tokens whose piece here is not piece(id): added tokens that took white space around them along, unknown text of
    /// a unigram model. In order.
    std::vector<Respelled> respelled;
};

/// A token as it comes out of a tokenizer.
struct FoundToken {
    std::int32_t id = 0;
    std::uint32_t begin = 0;  ///< bytes of the UTF-8 text; 0 and 0 for inserted tokens
    std::uint32_t end = 0;
    bool special = false;  ///< the post-processor inserted it
    /// How it was found in the text where that is not piece(id) (Encoding::respelled). Valid during the call.
    std::optional<std::string_view> respelled;
    std::int32_t type = 0;    ///< token type: what models with a table of them add; 0 where they are given none
    std::uint8_t region = 1;  ///< 0: inserted; 1: of the text, or of a pair's first; 2: of a pair's second
};

class WordHash;

/// A part of what a text or a pair becomes: an inserted token, or all tokens of a text.
struct FramePart {
    std::optional<std::int32_t> token;  ///< empty: those of a text
    std::int32_t type = 0;              ///< as FoundToken::type
    std::uint8_t text = 0;              ///< of a text's tokens: 1 for a pair's second
};

/// Takes the tokens of a text, in order. What it throws ends the encoding.
class TokenSink {
public:
    virtual ~TokenSink() = default;
    virtual void add(const FoundToken& token) = 0;
};

class Tokenizer {
public:
    /// From a checkpoint folder's tokenizer.json, or a GGUF file. One of that name has the token types that its folder gives to a model
    /// (files/token_types.h), others have none.
    static std::shared_ptr<const Tokenizer> from_file(const std::filesystem::path& path);
    /// From a checkpoint folder: its tokenizer.json; or older files, that is vocab.json with merges.txt (GPT-2, RoBERTa
    /// and the like) or vocab.txt (BERT and the like); or a sentencepiece model (Marian, M2M100, mBART, PEGASUS, T5);
    /// with tokenizer_config.json, special_tokens_map.json and added_tokens.json as transformers 5.23 reads them. Or a
    /// hash of words, if config.json has a hash embedding. Or the only GGUF file. Error if none of these exists.
    static std::shared_ptr<const Tokenizer> from_folder(const std::filesystem::path& folder);
    /// True if from_folder finds one of them that it reads.
    static bool is_in(const std::filesystem::path& folder);
    /// `where` names it in errors. Without `types` all token types are 0.
    static std::shared_ptr<const Tokenizer> from_json(std::string_view json, const std::string& where,
                                                      bool types = true);
    /// From the documents that a folder has as tokenizer.json and tokenizer_config.json.
    static std::shared_ptr<const Tokenizer> from_documents(const nlohmann::json& tokenizer,
                                                           const nlohmann::json& settings, const std::string& where);
    /// Ids 0..255 are bytes; no special tokens.
    static std::shared_ptr<const Tokenizer> bytes();
    virtual ~Tokenizer();

    /// `text` must be UTF-8 below 2 GiB: Error(format) names the first byte that is not. Throws Stopped when cancelled.
    Encoding encode(std::string_view text, bool add_special_tokens = true,
                    const Cancellation* cancellation = nullptr) const;
    /// The same, token by token: what a text of 20 MB takes beside itself and its sink stays below 400 MB, whatever it
    /// is made of. The sink may have got some tokens when an error is thrown.
    virtual void encode_into(TokenSink& sink, std::string_view text, bool add_special_tokens = true,
                             const Cancellation* cancellation = nullptr) const = 0;
    /// Two texts as one sequence, joined by the post-processor: "[CLS] A [SEP] B [SEP]". Without a rule for pairs B
    /// follows A. Offsets count in the token's own text; types and regions say which one. Error if the file's rule for
    /// pairs is invalid (an undefined token).
    virtual void encode_pair_into(TokenSink& sink, std::string_view first, std::string_view second,
                                  bool add_special_tokens = true, const Cancellation* cancellation = nullptr) const = 0;
    /// Layout of the sequence that encode_into() (one text) or encode_pair_into() makes. For readers that cut or store
    /// the texts' own tokens separately. Errors as encode_pair_into().
    virtual std::vector<FramePart> frame(bool pair) const = 0;
    /// UTF-8: parts of characters become U+FFFD. Ids without a piece are left out.
    virtual std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const = 0;
    /// Text of an answer: decode() without special tokens and, if clean_up_tokenization_spaces of tokenizer_config.json
    /// is true, without spaces before punctuation and contractions.
    virtual std::string answer(std::span<const std::int32_t> ids) const { return decode(ids, true); }
    /// The vocabulary's own spelling of an id ("Ġthe", "##ing", "▁a"); empty for an id it lacks.
    virtual std::string piece(std::int32_t id) const = 0;
    /// Readable text of a piece, for labels: bytes decoded, "Ġ" and "▁" as spaces; may be part of a UTF-8 sequence.
    virtual std::string surface(std::int32_t id) const = 0;
    virtual std::int64_t vocabulary_size() const = 0;  ///< highest id + 1, added tokens included
    virtual std::optional<std::int32_t> id_of(std::string_view piece) const = 0;
    /// For an encoder-decoder's folder: the tokenizer of the decoder's text; mostly this one.
    virtual const Tokenizer& of_target() const { return *this; }
    /// The hash of a model that hashes words instead of a table (hashed/word_tokenizer.h); null for others.
    virtual const WordHash* word_hash() const { return nullptr; }
    /// True when add_special_tokens puts a token before the text.
    virtual bool adds_first_token() const = 0;
    /// answer() removes spaces that decode() leaves.
    virtual bool cleans_answers() const { return false; }
    /// The piece of every token of an encoding, as it was found in the text.
    std::vector<std::string> pieces(const Encoding& encoding) const;
    /// The same for `count` tokens from `first` on, where all at once would take too much memory.
    std::vector<std::string> pieces(const Encoding& encoding, std::size_t first, std::size_t count) const;
};

}  // namespace headscope::tokenizer
