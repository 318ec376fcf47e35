// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Queues of pending merges: by rank, then by place in the word. Two kinds with the same order: a binary heap for words,
// and lists by rank for texts that are one word of millions of bytes, where a heap misses the caches.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
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
/// is complete by then; what comes later waits in a heap beside. Lists lie in small blocks, which are free again as
/// soon as they are read: at most a place for each pair of a word, whatever their ranks, takes 4 bytes and little more.
class LargeMergeQueue {
public:
    bool empty() const { return waiting_ == 0 && late_.empty(); }
    void push(WaitingMerge merge);
    WaitingMerge pop();
    /// Empties it and gives the memory back.
    void clear();

private:
    static constexpr std::uint32_t no_block = ~std::uint32_t{0};
    struct Block {
        std::array<std::uint32_t, 62> places;
        std::uint32_t count = 0;
        std::uint32_t next = no_block;
    };
    struct List {
        std::uint32_t first = no_block;
        std::uint32_t last = no_block;
        std::uint32_t newest = 0;           ///< the place that came last
        std::uint32_t read = 0;             ///< places of the first block, or of `sorted`, that are used up
        std::vector<std::uint32_t> sorted;  ///< instead of blocks, once it is started, where they did not ascend
        bool ascending = true;
        bool started = false;
    };
    List& list_of(std::uint32_t rank);
    void append(List& list, std::uint32_t place);
    void start(List& list);
    void free_first(List& list);
    bool used_up(const List& list) const { return list.first == no_block && list.read == list.sorted.size(); }
    std::uint32_t front(const List& list) const {
        return list.first != no_block ? blocks_[list.first].places[list.read] : list.sorted[list.read];
    }

    std::vector<std::uint32_t> numbers_;  ///< of the list of each rank, + 1
    std::vector<List> lists_;
    std::vector<std::uint32_t> free_lists_;
    std::deque<Block> blocks_;
    std::uint32_t free_block_ = no_block;  ///< the first of a chain
    std::vector<std::uint32_t> ranks_;     ///< that have a list: a heap, the lowest first
    std::vector<std::uint64_t> late_;      ///< a heap as in SmallMergeQueue
    std::size_t waiting_ = 0;              ///< in lists
};

}  // namespace headscope::tokenizer
