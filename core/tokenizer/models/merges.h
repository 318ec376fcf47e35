// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Byte-pair encoding's merges (Sennrich et al. 2016) and how they are applied to a word: the pair of lowest rank first,
// of equal ones the leftmost, so that a word of n symbols costs n log n at most, and about n where few ranks occur.

#include <cstdint>
#include <vector>

#include "core/tokenizer/models/merge_queue.h"

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
    /// Of equal pairs the last counts. Ranks come in ascending order.
    void add(std::int32_t left, std::int32_t right, Merge merge);
    const Merge* find(std::int32_t left, std::int32_t right) const;
    /// The piece that merges of this rank make.
    std::int32_t result(std::uint32_t rank) const { return results_[rank]; }

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
    std::vector<std::int32_t> results_;  ///< by rank
};

/// A word while it is merged: 8 bytes a byte of the word. Reused from word to word: the memory stays.
class SymbolList {
public:
    /// Makes room for a word of at most `bytes` bytes.
    void clear(std::size_t bytes) {
        size_ = 0;
        if (slots_.size() < bytes) slots_.resize(bytes);
    }
    /// A symbol at the end, which stands for `length` > 0 bytes.
    void add(std::int32_t id, std::uint32_t length) {
        slots_[size_ + length - 1].length = length;
        slots_[size_] = {id, length};
        size_ += length;
    }
    void merge(const MergeTable& merges, const Cancellation* cancellation);
    /// Calls take(id, bytes) for every symbol from left to right.
    template <class Take>
    void each(const Take& take) const {
        for (std::uint32_t at = 0; at < size_; at += slots_[at].length) take(slots_[at].id, slots_[at].length);
    }
    /// Gives memory back after a word of unusual length.
    void shrink();

private:
    // A symbol lies at its first byte; its last byte has the length too, so that what follows finds its begin.
    struct Slot {
        std::int32_t id = 0;  ///< no_symbol: merged into the one before
        std::uint32_t length = 0;
    };
    static constexpr std::int32_t no_symbol = -1;

    template <class Queue>
    void merge_with(Queue& queue, const MergeTable& merges, const Cancellation* cancellation);

    std::vector<Slot> slots_;
    std::uint32_t size_ = 0;  ///< bytes that the symbols stand for
    SmallMergeQueue few_;
    LargeMergeQueue many_;
};

}  // namespace headscope::tokenizer
