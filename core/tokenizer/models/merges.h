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
    void reserve(std::size_t count);  ///< before the first; else it grows
    /// The last of equal pairs counts. Ranks come in ascending order.
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
    void grow();

    std::vector<Slot> slots_;
    std::size_t used_ = 0;
    std::vector<std::int32_t> results_;  ///< by rank
};

/// A word while it is merged: 5 bytes a symbol that it begins with. Reused from word to word: the memory stays.
class SymbolList {
public:
    /// Makes room for a word of at most `symbols` symbols; of what is not used, no memory is touched.
    void clear(std::size_t symbols) {
        slots_.clear();
        lengths_.clear();
        long_.clear();
        slots_.reserve(symbols + 1);
        lengths_.reserve(symbols);
    }
    /// A symbol at the end, which stands for `bytes` > 0 bytes. Its id is not negative.
    void add(std::int32_t id, std::uint32_t bytes) {
        slots_.push_back(id);
        lengths_.push_back(static_cast<std::uint8_t>(bytes < 256 ? bytes : 0));
        if (bytes >= 256) long_.push_back(bytes);
    }
    void merge(const MergeTable& merges, const Cancellation* cancellation);
    /// Calls take(id, bytes) for every symbol from left to right. After merge().
    template <class Take>
    void each(const Take& take) const {
        auto next_long = long_.begin();
        for (std::size_t at = 0; at < lengths_.size();) {
            const std::int32_t id = slots_[at];
            std::uint32_t bytes = 0;
            for (std::uint32_t left = length_of(at); left > 0; --left, ++at) {
                bytes += lengths_[at] != 0 ? lengths_[at] : *next_long++;
            }
            take(id, bytes);
        }
    }
    /// Gives memory back after a word of unusual length.
    void shrink();

private:
    static constexpr std::int32_t no_symbol = -1;

    // Places count the symbols that a word begins with. A symbol's first one has its id. Where several became one, the
    // second and the last have their number, negated, so that it is known from its begin and from its end; what lies
    // between is never asked for.
    void put(std::size_t at, std::int32_t id, std::uint32_t length) {
        slots_[at] = id;
        if (length > 1) slots_[at + 1] = slots_[at + length - 1] = -static_cast<std::int32_t>(length);
    }
    std::uint32_t length_of(std::size_t at) const {
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

    std::vector<std::int32_t> slots_;
    std::vector<std::uint8_t> lengths_;  ///< bytes of each symbol that the word begins with; 0: one of long_
    std::vector<std::uint32_t> long_;    ///< those of 256 and more, in order
    SmallMergeQueue few_;
    LargeMergeQueue many_;
};

}  // namespace headscope::tokenizer
