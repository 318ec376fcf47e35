// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/models/merges.h"

#include <algorithm>

#include "core/base/progress.h"

namespace headscope::tokenizer {

void MergeTable::reserve(std::size_t count) {
    std::size_t size = 16;
    while (size < count * 2 + 2) size *= 2;
    slots_.assign(size, Slot{});
}

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
    std::uint64_t hash = pair * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 32;
    std::size_t slot = hash & (slots_.size() - 1);
    while (slots_[slot].pair != free_slot && slots_[slot].pair != pair) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
}

void MergeTable::add(std::int32_t left, std::int32_t right, Merge merge) {
    const std::uint64_t pair = pair_of(left, right);
    slots_[slot_of(pair)] = {pair, merge};
}

const Merge* MergeTable::find(std::int32_t left, std::int32_t right) const {
    const Slot& slot = slots_[slot_of(pair_of(left, right))];
    return slot.pair == free_slot ? nullptr : &slot.merge;
}

void SymbolList::add(std::int32_t id, std::uint32_t length) {
    const auto index = static_cast<std::int32_t>(symbols_.size());
    if (index > 0) symbols_.back().next = index;
    symbols_.push_back({id, length, index - 1, -1});
}

void SymbolList::propose(const MergeTable& merges, std::int32_t left) {
    const Symbol& symbol = symbols_[static_cast<std::size_t>(left)];
    const Merge* merge = merges.find(symbol.id, symbols_[static_cast<std::size_t>(symbol.next)].id);
    if (merge != nullptr) heap_.push_back({merge->rank, static_cast<std::uint32_t>(left), merge->result});
}

void SymbolList::merge(const MergeTable& merges, const Cancellation* cancellation) {
    constexpr std::size_t steps_per_check = 1 << 14;
    heap_.clear();
    for (std::size_t i = 0; i + 1 < symbols_.size(); ++i) propose(merges, static_cast<std::int32_t>(i));
    std::make_heap(heap_.begin(), heap_.end(), later);
    for (std::size_t step = 1; !heap_.empty(); ++step) {
        if (cancellation != nullptr && step % steps_per_check == 0) cancellation->check();
        const Candidate best = heap_.front();
        std::pop_heap(heap_.begin(), heap_.end(), later);
        heap_.pop_back();
        Symbol& left = symbols_[best.position];
        if (left.length == 0 || left.next < 0) continue;
        Symbol& right = symbols_[static_cast<std::size_t>(left.next)];
        // The pair may have changed since; what counts, as in the reference, is that it still makes the same piece.
        const Merge* merge = merges.find(left.id, right.id);
        if (merge == nullptr || merge->result != best.result) continue;
        left.id = best.result;
        left.length += right.length;
        left.next = right.next;
        right.length = 0;
        if (left.next >= 0)
            symbols_[static_cast<std::size_t>(left.next)].previous = static_cast<std::int32_t>(best.position);
        const std::size_t before = heap_.size();
        if (left.previous >= 0) propose(merges, left.previous);
        if (heap_.size() != before) std::push_heap(heap_.begin(), heap_.end(), later);
        const std::size_t between = heap_.size();
        if (left.next >= 0) propose(merges, static_cast<std::int32_t>(best.position));
        if (heap_.size() != between) std::push_heap(heap_.begin(), heap_.end(), later);
    }
}

void SymbolList::shrink() {
    constexpr std::size_t usual = 1 << 14;
    if (symbols_.capacity() > usual) std::vector<Symbol>().swap(symbols_);
    if (heap_.capacity() > usual) std::vector<Candidate>().swap(heap_);
}

}  // namespace headscope::tokenizer
