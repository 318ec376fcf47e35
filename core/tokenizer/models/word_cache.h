// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Remembers how short words were tokenised: in running text nearly every word was seen before. A table of fixed size, 2
// MB a thread, where a new word takes the place of the one in its slot; one table serves one model at a time.

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/tokenizer/vocabulary.h"

namespace headscope::tokenizer {

class WordCache {
public:
    static constexpr std::size_t longest_word = 22;
    static constexpr std::size_t most_tokens = 6;

    struct Entry {
        std::uint64_t hash = 0;
        std::uint8_t length = 0;  ///< of the word; 0: free
        std::uint8_t count = 0;   ///< tokens
        std::array<char, longest_word> word{};
        std::array<std::int32_t, most_tokens> ids{};
        std::array<std::uint8_t, most_tokens> lengths{};  ///< bytes of the word that each token stands for
    };

    /// The slot of a word of at most longest_word bytes. It holds the word's tokens if matches().
    Entry& slot(std::uint64_t owner, std::uint64_t hash) {
        if (owner_ != owner) {
            entries_.assign(slots, Entry{});
            owner_ = owner;
        }
        return entries_[hash & (slots - 1)];
    }
    static bool matches(const Entry& entry, std::uint64_t hash, std::string_view word) {
        return entry.hash == hash && entry.length == word.size() &&
               std::memcmp(entry.word.data(), word.data(), word.size()) == 0;
    }

private:
    static constexpr std::size_t slots = 1 << 15;
    std::vector<Entry> entries_;
    std::uint64_t owner_ = 0;  ///< models count from 1
};

}  // namespace headscope::tokenizer
