// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/models/merge_queue.h"

namespace headscope::tokenizer {

LargeMergeQueue::List& LargeMergeQueue::list_of(std::uint32_t rank) {
    if (numbers_.size() <= rank) numbers_.resize(rank + std::size_t{1} + rank / 2, 0);
    if (numbers_[rank] == 0) {
        if (free_lists_.empty()) {
            free_lists_.push_back(static_cast<std::uint32_t>(lists_.size()));
            lists_.emplace_back();
        }
        numbers_[rank] = free_lists_.back() + 1;
        free_lists_.pop_back();
        ranks_.push_back(rank);
        std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>());
    }
    return lists_[numbers_[rank] - 1];
}

void LargeMergeQueue::append(List& list, std::uint32_t place) {
    if (list.last == no_block || blocks_[list.last].count == blocks_[list.last].places.size()) {
        std::uint32_t number = free_block_;
        if (number == no_block) {
            number = static_cast<std::uint32_t>(blocks_.size());
            blocks_.emplace_back();
        } else {
            free_block_ = blocks_[number].next;
            blocks_[number].count = 0;
            blocks_[number].next = no_block;
        }
        (list.last == no_block ? list.first : blocks_[list.last].next) = number;
        list.last = number;
    }
    Block& block = blocks_[list.last];
    block.places[block.count++] = place;
}

void LargeMergeQueue::free_first(List& list) {
    const std::uint32_t number = list.first;
    list.first = blocks_[number].next;
    if (list.first == no_block) list.last = no_block;
    blocks_[number].next = free_block_;
    free_block_ = number;
}

void LargeMergeQueue::push(WaitingMerge merge) {
    List& list = list_of(merge.rank);
    if (list.started) {
        late_.push_back((static_cast<std::uint64_t>(merge.rank) << 32) | merge.place);
        std::push_heap(late_.begin(), late_.end(), std::greater<>());
        return;
    }
    list.ascending = list.ascending && (list.first == no_block || list.newest <= merge.place);
    list.newest = merge.place;
    append(list, merge.place);
    ++waiting_;
}

void LargeMergeQueue::start(List& list) {
    list.started = true;
    if (list.ascending) return;
    while (list.first != no_block) {
        const Block& block = blocks_[list.first];
        list.sorted.insert(list.sorted.end(), block.places.begin(), block.places.begin() + block.count);
        free_first(list);
    }
    std::sort(list.sorted.begin(), list.sorted.end());
}

WaitingMerge LargeMergeQueue::pop() {
    while (waiting_ > 0) {
        const std::uint32_t rank = ranks_.front();
        const std::uint32_t number = numbers_[rank] - 1;
        List& list = lists_[number];
        if (!list.started) start(list);
        if (used_up(list)) {
            list = List{};
            free_lists_.push_back(number);
            numbers_[rank] = 0;
            std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>());
            ranks_.pop_back();
            continue;
        }
        const std::uint32_t place = front(list);
        const std::uint64_t first = (static_cast<std::uint64_t>(rank) << 32) | place;
        if (!late_.empty() && late_.front() < first) break;
        --waiting_;
        ++list.read;
        if (list.first != no_block && list.read == blocks_[list.first].count) {
            free_first(list);
            list.read = 0;
        }
        return {rank, place};
    }
    const std::uint64_t first = late_.front();
    std::pop_heap(late_.begin(), late_.end(), std::greater<>());
    late_.pop_back();
    return {static_cast<std::uint32_t>(first >> 32), static_cast<std::uint32_t>(first)};
}

void LargeMergeQueue::clear() {
    *this = LargeMergeQueue();
}

}  // namespace headscope::tokenizer
