// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/vocabulary.h"

#include <algorithm>
#include <utility>

#include "core/tokenizer/document.h"

namespace headscope::tokenizer {

void StringTable::reserve(std::size_t count, std::size_t bytes) {
    characters_.reserve(bytes);
    entries_.reserve(count);
    while (slots_.size() < count * 2 || slots_.empty()) slots_.resize(slots_.empty() ? 16 : slots_.size() * 2);
}

void StringTable::grow() {
    slots_.assign(std::max<std::size_t>(16, slots_.size() * 2), Slot{});
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        const std::uint64_t hash = hash_bytes(key(entries_[i]));
        std::size_t slot = hash & (slots_.size() - 1);
        while (slots_[slot].entry != 0) slot = (slot + 1) & (slots_.size() - 1);
        slots_[slot] = {static_cast<std::uint32_t>(i + 1), mark_of(hash)};
    }
}

// The slot that holds `text`, or the free one where it would go.
std::size_t StringTable::slot_of(std::string_view text, std::uint64_t hash) const {
    const std::uint32_t mark = mark_of(hash);
    std::size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot].entry != 0; slot = (slot + 1) & (slots_.size() - 1)) {
        if (slots_[slot].mark == mark && key(entries_[slots_[slot].entry - 1]) == text) break;
    }
    return slot;
}

bool StringTable::add(std::string_view text, std::int32_t value) {
    if ((entries_.size() + 1) * 2 > slots_.size()) grow();
    const std::uint64_t hash = hash_bytes(text);
    const std::size_t slot = slot_of(text, hash);
    if (slots_[slot].entry != 0) return false;
    entries_.push_back({characters_.size(), static_cast<std::uint32_t>(text.size()), value});
    characters_.append(text);
    slots_[slot] = {static_cast<std::uint32_t>(entries_.size()), mark_of(hash)};
    return true;
}

std::int32_t StringTable::find(std::string_view text) const {
    if (slots_.empty()) return -1;
    const Slot& slot = slots_[slot_of(text, hash_bytes(text))];
    return slot.entry == 0 ? -1 : entries_[slot.entry - 1].value;
}

Vocabulary::Vocabulary(const JsonView& pieces) {
    pieces_.reserve(packed_size(pieces));
    std::size_t bytes = 0;
    each_piece(pieces, [&](std::string_view piece, std::int32_t id) {
        pieces_.push_back({id, std::string(piece)});
        bytes += piece.size();
    });
    const auto by_id = [](const Entry& a, const Entry& b) { return a.id < b.id; };
    // Stable: of pieces with one id the file's first is what the id reads as.
    if (!std::is_sorted(pieces_.begin(), pieces_.end(), by_id)) std::stable_sort(pieces_.begin(), pieces_.end(), by_id);
    table_.reserve(pieces_.size(), bytes);
    for (const Entry& entry : pieces_) {
        if (!table_.add(entry.piece, entry.id)) {
            throw Error(ErrorCode::format, pieces.where(), "expected each key once in an object",
                        "found \"" + escaped(entry.piece, 60) + "\" again");
        }
    }
}

Vocabulary::Vocabulary(std::vector<VocabularyEntry> pieces) : pieces_(std::move(pieces)) {
    std::size_t bytes = 0;
    for (const Entry& entry : pieces_) bytes += entry.piece.size();
    table_.reserve(pieces_.size(), bytes);
    for (auto entry = pieces_.rbegin(); entry != pieces_.rend(); ++entry) table_.add(entry->piece, entry->id);
}

const Vocabulary::Entry* Vocabulary::find(std::int32_t id) const {
    if (id < 0 || pieces_.empty() || id > pieces_.back().id) return nullptr;
    const auto place = static_cast<std::size_t>(id);
    if (place < pieces_.size() && pieces_[place].id == id && (place == 0 || pieces_[place - 1].id != id))
        return &pieces_[place];
    const auto found = std::lower_bound(pieces_.begin(), pieces_.end(), id,
                                        [](const Entry& entry, std::int32_t wanted) { return entry.id < wanted; });
    return found != pieces_.end() && found->id == id ? &*found : nullptr;
}

std::string_view Vocabulary::piece(std::int32_t id) const {
    const Entry* entry = find(id);
    return entry == nullptr ? std::string_view{} : std::string_view(entry->piece);
}

}  // namespace headscope::tokenizer
