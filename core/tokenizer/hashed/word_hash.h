// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Numbers of a word for a hash embedding: a row, or bits. No table of words. Sources: HMAC-MD5 (RFC 2104) of its UTF-8;
// random hyperplanes over counts of its n-grams (Charikar 2002), whose normals are rotations of one vector. Words are
// valid UTF-8, hashed as they stand. Threads: const members are safe from several.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/io/md5.h"
#include "core/tokenizer/hashed/ngrams.h"
#include "core/tokenizer/hashed/settings.h"

namespace headscope::tokenizer {

class WordHash {
public:
    /// For md5, and for characters, which have neither rows nor bits.
    explicit WordHash(HashSettings settings);
    /// For lsh: `normal` has a number for each n-gram, else Error(mismatch).
    WordHash(HashSettings settings, std::shared_ptr<const Ngrams> ngrams, const std::vector<float>& normal);

    const HashSettings& settings() const { return settings_; }
    const Ngrams* ngrams() const { return ngrams_.get(); }  ///< null: md5
    /// For lsh: a number for each n-gram, and then all of them again.
    const std::vector<double>& normal() const { return normal_; }

    /// The word's id: kSpecialTokens, of emb with the word's row added.
    std::int32_t id(std::string_view word) const;
    /// Writes settings().shown_bits() numbers, 0 or 1, into `bits` of that size; none without bits.
    void bits(std::string_view word, std::span<std::uint8_t> bits) const;
    /// The bits as hexadecimal digits, the first bit the most significant, zeros behind the last.
    std::string hex(std::string_view word) const;

private:
    void lsh_bits(std::string_view word, std::span<std::uint8_t> bits) const;
    std::int64_t lsh_row(std::string_view word) const;

    HashSettings settings_;
    std::optional<HmacMd5> md5_;
    std::shared_ptr<const Ngrams> ngrams_;
    /// normal_[f + i] is n-gram f's number of hyperplane i (from 1): the vector, and its begin again behind its end.
    std::vector<double> normal_;
};

std::string bits_hex(std::span<const std::uint8_t> bits);
/// Into `bits`; Error(format) at `where` unless the text holds exactly that number of bits.
void read_bits_hex(std::string_view hex, std::span<std::uint8_t> bits, const std::string& where);

/// Groups of `group_bits` bits from the first on, each a number, the first bit the most significant; the last group is
/// what is left (pool).
std::vector<std::int32_t> codes_of(std::span<const std::uint8_t> bits, std::int64_t group_bits);

/// The multipliers of hash functions 0 to 7 of characters: bucket (c + 1) * multiplier mod buckets of code point c.
inline constexpr std::array<std::int64_t, 8> kCharacterPrimes = {31, 43, 59, 61, 73, 97, 103, 113};

}  // namespace headscope::tokenizer
