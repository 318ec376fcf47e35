// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/models/merge_queue.h"

namespace headscope::tokenizer {

LargeMergeQueue::List& LargeMergeQueue::list_of(std::uint32_t rank) {
    if (numbers_.size() <= rank) numbers_.resize(rank + std::size_t{1} + rank / 2, 0);
    if (numbers_[rank] == 0) {
        if (free_.empty()) {
            free_.push_back(static_cast<std::uint32_t>(lists_.size()));
            lists_.emplace_back();
        }
        numbers_[rank] = free_.back() + 1;
        free_.pop_back();
        ranks_.push_back(rank);
        std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>());
    }
    return lists_[numbers_[rank] - 1];
}

void LargeMergeQueue::push(WaitingMerge merge) {
    List& list = list_of(merge.rank);
    if (list.started) {
        late_.push_back((static_cast<std::uint64_t>(merge.rank) << 32) | merge.place);
        std::push_heap(late_.begin(), late_.end(), std::greater<>());
        return;
    }
    list.ascending = list.ascending && (list.places.empty() || list.places.back() <= merge.place);
    list.places.push_back(merge.place);
    ++waiting_;
}

void LargeMergeQueue::start(List& list) {
    if (!list.ascending) std::sort(list.places.begin(), list.places.end());
    list.started = true;
}

WaitingMerge LargeMergeQueue::pop() {
    while (waiting_ > 0) {
        const std::uint32_t rank = ranks_.front();
        const std::uint32_t number = numbers_[rank] - 1;
        List& list = lists_[number];
        if (!list.started) start(list);
        if (list.next == list.places.size()) {
            list = List{};
            free_.push_back(number);
            numbers_[rank] = 0;
            std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>());
            ranks_.pop_back();
            continue;
        }
        const std::uint64_t first = (static_cast<std::uint64_t>(rank) << 32) | list.places[list.next];
        if (!late_.empty() && late_.front() < first) break;
        --waiting_;
        return {rank, list.places[list.next++]};
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
