// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Byte-pair encoding's merges (Sennrich et al. 2016) and how they are applied to a word: the pair of lowest rank first,
// of equal ones the leftmost, by a heap, so that a word of n symbols costs n log n.

#include <cstdint>
#include <vector>

namespace headscope {
class Cancellation;
}

namespace headscope::tokenizer {

struct Merge {
    std::uint32_t rank = 0;
    std::int32_t result = 0;  ///< the piece that the pair becomes
};

/// Pairs of pieces to merges; an open table, since every step of an encoding asks it.
class MergeTable {
public:
    void reserve(std::size_t count);
    /// Of equal pairs the last counts.
    void add(std::int32_t left, std::int32_t right, Merge merge);
    const Merge* find(std::int32_t left, std::int32_t right) const;

private:
    struct Slot {
        std::uint64_t pair = free_slot;
        Merge merge;
    };
    static constexpr std::uint64_t free_slot = ~std::uint64_t{0};
    static std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
        return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
    }
    std::size_t slot_of(std::uint64_t pair) const;

    std::vector<Slot> slots_;
};

/// A word while it is merged. Reused from word to word: the memory stays.
class SymbolList {
public:
    struct Symbol {
        std::int32_t id = 0;
        std::uint32_t length = 0;  ///< bytes of the word; 0: merged into the one before
        std::int32_t previous = -1;
        std::int32_t next = -1;
    };

    /// Makes room for a word of at most `most` symbols.
    void clear(std::size_t most) {
        symbols_.clear();
        symbols_.reserve(most);
    }
    void add(std::int32_t id, std::uint32_t length);
    void merge(const MergeTable& merges, const Cancellation* cancellation);
    const std::vector<Symbol>& symbols() const noexcept { return symbols_; }
    /// Gives memory back after a word of unusual length.
    void shrink();

private:
    struct Candidate {
        std::uint32_t rank = 0;
        std::uint32_t position = 0;
        std::int32_t result = 0;
    };
    static bool later(const Candidate& a, const Candidate& b) {
        return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
    }
    void propose(const MergeTable& merges, std::int32_t left);

    std::vector<Symbol> symbols_;
    std::vector<Candidate> heap_;
};

}  // namespace headscope::tokenizer
