// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/models/merges.h"

#include "core/base/progress.h"
#include "core/tokenizer/hashing.h"

namespace headscope::tokenizer {

void MergeTable::reserve(std::size_t count) {
    std::size_t size = 16;
    while (size < count * 2 + 2) size *= 2;
    slots_.assign(size, Slot{});
    results_.reserve(count);
}

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
    std::size_t slot = hash_number(pair) & (slots_.size() - 1);
    while (slots_[slot].pair != free_slot && slots_[slot].pair != pair) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
}

void MergeTable::grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
        if (slot.pair != free_slot) slots_[slot_of(slot.pair)] = slot;
    }
}

void MergeTable::add(std::int32_t left, std::int32_t right, Merge merge) {
    if ((used_ + 1) * 2 > slots_.size()) grow();
    const std::uint64_t pair = pair_of(left, right);
    Slot& slot = slots_[slot_of(pair)];
    if (slot.pair == free_slot) ++used_;
    slot = {pair, merge};
    results_.resize(merge.rank + std::size_t{1}, -1);
    results_[merge.rank] = merge.result;
}

const Merge* MergeTable::find(std::int32_t left, std::int32_t right) const {
    const Slot& slot = slots_[slot_of(pair_of(left, right))];
    return slot.pair == free_slot ? nullptr : &slot.merge;
}

void SymbolList::merge(const MergeTable& merges, const Cancellation* cancellation) {
    slots_.push_back(0);                     // no length: what is before ends there
    constexpr std::size_t long_word = 4096;  // measured: the heap is as fast up to here
    if (lengths_.size() <= long_word) {
        few_.clear();
        merge_with(few_, merges, cancellation);
    } else {
        many_.clear();
        merge_with(many_, merges, cancellation);
    }
}

template <class Queue>
void SymbolList::merge_with(Queue& queue, const MergeTable& merges, const Cancellation* cancellation) {
    constexpr std::size_t steps_per_check = 1 << 14;
    const auto size = static_cast<std::uint32_t>(lengths_.size());
    std::size_t step = 0;
    const auto look = [&] {
        if (++step % steps_per_check == 0 && cancellation != nullptr) cancellation->check();
    };
    const auto propose = [&](std::uint32_t left, std::uint32_t right) {
        if (const Merge* merge = merges.find(slots_[left], slots_[right])) queue.push({merge->rank, left});
    };
    for (std::uint32_t at = 0, next = 0; at < size; at = next) {
        look();
        next = at + length_of(at);
        if (next < size) propose(at, next);
    }
    while (!queue.empty()) {
        look();
        const WaitingMerge best = queue.pop();
        if (slots_[best.place] < 0) continue;  // merged into the one before
        const std::uint32_t right = best.place + length_of(best.place);
        if (right >= size) continue;
        // The pair may have changed since; what counts, as in the reference, is that it still makes the same piece.
        const Merge* merge = merges.find(slots_[best.place], slots_[right]);
        const std::int32_t result = merges.result(best.rank);
        if (merge == nullptr || merge->result != result) continue;
        const std::uint32_t end = right + length_of(right);
        slots_[right] = no_symbol;
        put(best.place, result, end - best.place);
        if (best.place > 0) propose(before(best.place), best.place);
        if (end < size) propose(best.place, end);
    }
    queue.clear();
}

void SymbolList::shrink() {
    constexpr std::size_t usual = 1 << 14;
    if (slots_.capacity() <= usual) return;
    std::vector<std::int32_t>().swap(slots_);
    std::vector<std::uint8_t>().swap(lengths_);
    std::vector<std::uint32_t>().swap(long_);
}

}  // namespace headscope::tokenizer
