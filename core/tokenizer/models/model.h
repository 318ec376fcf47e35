// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Turns a word into pieces of a vocabulary. One class a kind of tokenizer.json's "model"; immutable, safe from several
// threads.

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "core/base/json/json.h"
#include "core/tokenizer/models/token_queue.h"
#include "core/tokenizer/vocabulary.h"

namespace headscope {
class Cancellation;
}

namespace headscope::tokenizer {

/// A word as the model gets it.
struct Word {
    std::string_view text;
    std::uint32_t begin = 0;  ///< where it lies in the normalised text
    bool bytes = false;       ///< each byte stands for its character of the byte-level alphabet
    const Cancellation* cancellation = nullptr;
};

class Model {
public:
    explicit Model(const JsonView& vocabulary) : vocabulary_(vocabulary) {}
    explicit Model(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
    virtual ~Model() = default;

    /// Adds the tokens of a word that is not empty.
    virtual void tokenize(const Word& word, TokenQueue& tokens) const = 0;
    /// True if words may come as bytes (Word::bytes).
    virtual bool works_on_bytes() const { return false; }
    /// The id whose tokens read as the text they stand for, not as the vocabulary spells it; -1 for none.
    virtual std::int32_t unknown_shown_as_text() const { return -1; }
    /// True if "<0x41>" is the byte 41 when it is shown.
    virtual bool spells_bytes() const { return false; }

    const Vocabulary& vocabulary() const noexcept { return vocabulary_; }

private:
    Vocabulary vocabulary_;
};

/// Makes the model of `description`; files without "type" are recognized by their fields. Error(unsupported) names an
/// unknown kind.
std::unique_ptr<Model> make_model(const JsonView& description);

std::unique_ptr<Model> make_bpe(const JsonView& description);
std::unique_ptr<Model> make_unigram(const JsonView& description);
// For documents made from a sentencepiece model; no kinds of tokenizer.json.
std::unique_ptr<Model> make_sentence_piece(const JsonView& description);
std::unique_ptr<Model> make_sentence_piece_bpe(const JsonView& description);
std::unique_ptr<Model> make_word_piece(const JsonView& description);
std::unique_ptr<Model> make_word_level(const JsonView& description);

}  // namespace headscope::tokenizer
