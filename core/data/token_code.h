// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// How tokens lie in token files: a table's as ids; words of hash embeddings as what their model reads of them, so that
// none is hashed twice: the row (emb), the bits, 16 to a number, or the code point (characters). Threads: any.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/data/batch/batch_source.h"
#include "core/data/batch/corruption.h"

namespace headscope {
class Cancellation;
}
namespace headscope::tokenizer {
class Tokenizer;
}

namespace headscope::data {

class TokenCode {
public:
    /// tokenizer->word_hash() indicates a hash embedding.
    explicit TokenCode(std::shared_ptr<const tokenizer::Tokenizer> tokenizer);

    std::int64_t width() const noexcept { return width_; }            ///< numbers a token
    std::int64_t vocabulary() const noexcept { return vocabulary_; }  ///< numbers are below it
    std::int64_t ids() const noexcept { return ids_; }                ///< ids of unpacked tokens are below it
    bool hashed() const noexcept { return hashed_; }

    /// A text's tokens, without those that are put around it.
    std::vector<std::int32_t> encode(std::string_view text, const Cancellation* cancellation) const;
    /// Appends tokens to ids, bits and points of a sequence.
    void unpack(std::span<const std::int64_t> numbers, SpoiltSequence& to) const;
    void append_special(std::int64_t id, SpoiltSequence& to) const;
    /// Sequences side by side, the shorter ones padded; targets, where they have as many as tokens, likewise.
    DataBatch batch(const std::vector<SpoiltSequence>& sequences, std::int64_t padding) const;

private:
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
    bool hashed_ = false, points_ = false;
    std::int64_t bits_ = 0, width_ = 1, vocabulary_ = 0, ids_ = 0;
};

}  // namespace headscope::data
