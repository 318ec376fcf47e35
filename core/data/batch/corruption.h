// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// How encoders' sequences are spoilt for masked language modelling (Devlin et al. 2019) and SHUFFLE + RANDOM (Yamaguchi
// et al. 2021). Pure functions of the sequence and of the random numbers' keys, so that a resumed run draws the same.
// Threads: any.

#include <cstdint>
#include <vector>

#include "core/data/random.h"
#include "core/data/settings.h"

namespace headscope::data {

/// Tokens that a sequence may have beside those of its text; -1: none.
struct SpecialIds {
    std::int64_t first = -1;  ///< <s>, [CLS]
    std::int64_t last = -1;   ///< </s>, [SEP]
    std::int64_t padding = -1;
    std::int64_t mask = -1;
    std::vector<std::int64_t> others{};  ///< other ids that are never drawn, nor put in another's place
};

/// One sequence; of a table `bits` and `points` are empty.
struct SpoiltSequence {
    std::vector<std::int64_t> ids;      ///< [L]
    std::vector<std::uint8_t> bits;     ///< [L, T]
    std::vector<std::int64_t> points;   ///< [L]
    std::vector<std::int64_t> targets;  ///< [L] set by the corruption; no_target: does not count
    std::vector<std::int64_t> types{};  ///< [L] token types, or empty: all 0
};

/// Numbers are drawn in this order. masked: for each ordinary position u < mask; if so v: below 0.8 <mask>, below 0.9 a
/// random token (drawn next), else as it was. shuffle_random: a permutation (draw_different of all ordinary positions),
/// then for each of them u < shuffle, else v < random and, if so, the random token: an ordinary id of a table, a row of
/// `emb`, fair bits of a hash one after the other, or the code point of an ordinary position of this sequence.
class Corruption {
public:
    /// `ids`: below it. Of hash embeddings, words' ids begin at 5 (core/tokenizer/hashed/settings.h).
    /// Error usage for an objective that does not spoil, shares that are none, and for masks without a vocabulary.
    Corruption(const ObjectiveSettings& objective, SpecialIds special, std::int64_t ids, bool hashed);
    void operator()(SpoiltSequence& sequence, Random& random) const;

private:
    void mask(SpoiltSequence& sequence, Random& random) const;
    void shuffle(SpoiltSequence& sequence, Random& random) const;
    bool ordinary(std::int64_t id) const;
    std::vector<std::size_t> ordinary_places(const SpoiltSequence& sequence) const;
    std::int64_t random_id(Random& random) const;

    ObjectiveSettings objective_;
    SpecialIds special_;
    std::vector<std::int64_t> excluded_;  ///< ids that are not drawn, ascending
    std::int64_t ids_;
    bool hashed_;
};

}  // namespace headscope::data
