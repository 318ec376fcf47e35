// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Where merges wait for their turn: by rank, then by place in the word. Two kinds with the same order: a binary heap
// for words, and lists by rank for texts that are one word of millions of bytes, where a heap misses the caches.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace headscope::tokenizer {

struct WaitingMerge {
    std::uint32_t rank = 0;
    std::uint32_t place = 0;
};

class SmallMergeQueue {
public:
    bool empty() const { return heap_.empty(); }
    void push(WaitingMerge merge) {
        heap_.push_back((static_cast<std::uint64_t>(merge.rank) << 32) | merge.place);
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
    WaitingMerge pop() {
        const std::uint64_t first = heap_.front();
        std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
        heap_.pop_back();
        return {static_cast<std::uint32_t>(first >> 32), static_cast<std::uint32_t>(first)};
    }
    void clear() { heap_.clear(); }

private:
    std::vector<std::uint64_t> heap_;
};

/// A list of places for each rank, sorted when its turn comes. Merges mostly make pairs of higher ranks, so that a list
/// is complete by then; what comes later waits in a heap beside.
class LargeMergeQueue {
public:
    bool empty() const { return waiting_ == 0 && late_.empty(); }
    void push(WaitingMerge merge);
    WaitingMerge pop();
    /// Empties it and gives the memory back.
    void clear();

private:
    struct List {
        std::vector<std::uint32_t> places;
        std::size_t next = 0;
        bool ascending = true;
        bool started = false;
    };
    List& list_of(std::uint32_t rank);
    void start(List& list);

    std::vector<std::uint32_t> numbers_;  ///< of the list of each rank, + 1
    std::vector<List> lists_;
    std::vector<std::uint32_t> free_;   ///< lists that are used up
    std::vector<std::uint32_t> ranks_;  ///< that have a list: a heap, the lowest first
    std::vector<std::uint64_t> late_;   ///< a heap as in SmallMergeQueue
    std::size_t waiting_ = 0;           ///< in lists
};

}  // namespace headscope::tokenizer
