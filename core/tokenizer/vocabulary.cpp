// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/vocabulary.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace headscope::tokenizer {

void StringTable::reserve(std::size_t count, std::size_t bytes) {
    characters_.reserve(bytes);
    entries_.reserve(count);
    while (slots_.size() < count * 2 || slots_.empty()) slots_.resize(slots_.empty() ? 16 : slots_.size() * 2);
}

void StringTable::grow() {
    slots_.assign(std::max<std::size_t>(16, slots_.size() * 2), 0);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        std::size_t slot = hash_bytes(key(entries_[i])) & (slots_.size() - 1);
        while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
        slots_[slot] = static_cast<std::uint32_t>(i + 1);
    }
}

void StringTable::add(std::string_view text, std::int32_t value) {
    if ((entries_.size() + 1) * 2 > slots_.size()) grow();
    std::size_t slot = hash_bytes(text) & (slots_.size() - 1);
    while (slots_[slot] != 0) {
        if (key(entries_[slots_[slot] - 1]) == text) return;
        slot = (slot + 1) & (slots_.size() - 1);
    }
    entries_.push_back({characters_.size(), static_cast<std::uint32_t>(text.size()), value});
    characters_.append(text);
    slots_[slot] = static_cast<std::uint32_t>(entries_.size());
}

std::int32_t StringTable::find(std::string_view text) const {
    if (slots_.empty()) return -1;
    std::size_t slot = hash_bytes(text) & (slots_.size() - 1);
    while (slots_[slot] != 0) {
        const Entry& entry = entries_[slots_[slot] - 1];
        if (key(entry) == text) return entry.value;
        slot = (slot + 1) & (slots_.size() - 1);
    }
    return -1;
}

Vocabulary::Vocabulary(const JsonView& pieces) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() - 1;
    pieces.object();
    pieces_.reserve(pieces.size());
    std::size_t bytes = 0;
    for (const auto& [piece, id] : pieces.value().items()) {
        // Only what is wrong pays for a view of its place.
        const bool whole = id.is_number_unsigned() && id.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
        const std::int64_t value = whole ? id.get<std::int64_t>() : pieces.at(piece).integer({0, most});
        pieces_.push_back({static_cast<std::int32_t>(value), piece});
        bytes += piece.size();
    }
    std::sort(pieces_.begin(), pieces_.end(), [](const Entry& a, const Entry& b) { return a.id < b.id; });
    table_.reserve(pieces_.size(), bytes);
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        if (i > 0 && pieces_[i].id == pieces_[i - 1].id) {
            throw Error(ErrorCode::mismatch, pieces.where(), "expected one piece for each id",
                        "found id " + std::to_string(pieces_[i].id) + " for \"" + escaped(pieces_[i - 1].piece, 40) +
                            "\" and \"" + escaped(pieces_[i].piece, 40) + "\"");
        }
        table_.add(pieces_[i].piece, pieces_[i].id);
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
    if (static_cast<std::size_t>(id) < pieces_.size() && pieces_[static_cast<std::size_t>(id)].id == id) {
        return &pieces_[static_cast<std::size_t>(id)];
    }
    const auto found = std::lower_bound(pieces_.begin(), pieces_.end(), id,
                                        [](const Entry& entry, std::int32_t wanted) { return entry.id < wanted; });
    return found != pieces_.end() && found->id == id ? &*found : nullptr;
}

std::string_view Vocabulary::piece(std::int32_t id) const {
    const Entry* entry = find(id);
    return entry == nullptr ? std::string_view{} : std::string_view(entry->piece);
}

}  // namespace headscope::tokenizer
