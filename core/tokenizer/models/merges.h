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

/// A word while it is merged: 4 bytes a byte of the word. Reused from word to word: the memory stays.
class SymbolList {
public:
    /// Makes room for a word of at most `bytes` bytes.
    void clear(std::size_t bytes) {
        size_ = 0;
        if (slots_.size() <= bytes) slots_.resize(bytes + 1);
    }
    /// A symbol at the end, which stands for `length` > 0 bytes. Its id is not negative.
    void add(std::int32_t id, std::uint32_t length) {
        put(size_, id, length);
        size_ += length;
    }
    void merge(const MergeTable& merges, const Cancellation* cancellation);
    /// Calls take(id, bytes) for every symbol from left to right. After merge().
    template <class Take>
    void each(const Take& take) const {
        for (std::uint32_t at = 0; at < size_;) {
            const std::uint32_t length = length_of(at);
            take(slots_[at], length);
            at += length;
        }
    }
    /// Gives memory back after a word of unusual length.
    void shrink();

private:
    static constexpr std::int32_t no_symbol = -1;

    // A symbol's first byte has its id. Of a longer one the second and the last byte have its length, negated, so that
    // it is known from its begin and from its end; what lies between is never asked for.
    void put(std::uint32_t at, std::int32_t id, std::uint32_t length) {
        slots_[at] = id;
        if (length > 1) slots_[at + 1] = slots_[at + length - 1] = -static_cast<std::int32_t>(length);
    }
    std::uint32_t length_of(std::uint32_t at) const {
        const std::int32_t next = slots_[at + 1];
        return next < 0 ? static_cast<std::uint32_t>(-next) : 1;
    }
    /// The symbol that ends where the one at `at` > 0 begins.
    std::uint32_t before(std::uint32_t at) const {
        const std::int32_t last = slots_[at - 1];
        return last < 0 ? at - static_cast<std::uint32_t>(-last) : at - 1;
    }

    template <class Queue>
    void merge_with(Queue& queue, const MergeTable& merges, const Cancellation* cancellation);

    std::vector<std::int32_t> slots_;  ///< one more than bytes
    std::uint32_t size_ = 0;           ///< bytes that the symbols stand for
    SmallMergeQueue few_;
    LargeMergeQueue many_;
};

}  // namespace headscope::tokenizer
