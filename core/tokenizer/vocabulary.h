// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Pieces and their ids, both ways. The spellings lie in one block of memory; look-ups hash into an open table.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json/json.h"
#include "core/tokenizer/hashing.h"

namespace headscope::tokenizer {

/// Strings to numbers. Add all, then look up; a key that comes twice keeps its first number.
class StringTable {
public:
    void reserve(std::size_t count, std::size_t bytes);
    /// False, and nothing done, for a key that is there.
    bool add(std::string_view key, std::int32_t value);
    /// The value, or -1.
    std::int32_t find(std::string_view key) const;
    std::size_t size() const noexcept { return entries_.size(); }

private:
    struct Entry {
        std::uint64_t begin = 0;
        std::uint32_t length = 0;
        std::int32_t value = 0;
    };
    std::string_view key(const Entry& entry) const { return {characters_.data() + entry.begin, entry.length}; }
    void grow();
    std::size_t slot_of(std::string_view key, std::uint64_t hash) const;
    static std::uint32_t mark_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

    struct Slot {
        std::uint32_t entry = 0;  ///< + 1, 0 for free
        std::uint32_t mark = 0;   ///< of the hash: other keys seldom share it
    };

    std::string characters_;
    std::vector<Entry> entries_;
    std::vector<Slot> slots_;
};

struct VocabularyEntry {
    std::int32_t id = 0;
    std::string piece;
};

class Vocabulary {
public:
    /// The object {"piece": id, ...}. Ids are whole numbers from 0 to 2^31 - 2; of pieces that share one, which are
    /// found by their spellings, the first is its spelling (the reference takes any, another one each time).
    explicit Vocabulary(const JsonView& pieces);
    /// Pieces by id: 0, 1, 2... Of equal spellings the last one is found.
    explicit Vocabulary(std::vector<VocabularyEntry> pieces);

    std::int32_t id(std::string_view piece) const { return table_.find(piece); }  ///< or -1
    bool has(std::int32_t id) const { return find(id) != nullptr; }
    /// The spelling; empty for an id without piece.
    std::string_view piece(std::int32_t id) const;
    std::size_t count() const noexcept { return pieces_.size(); }
    std::int64_t highest_id() const noexcept { return pieces_.empty() ? -1 : pieces_.back().id; }

    using Entry = VocabularyEntry;
    const std::vector<Entry>& entries() const noexcept { return pieces_; }  ///< by id

private:
    const Entry* find(std::int32_t id) const;

    std::vector<Entry> pieces_;
    StringTable table_;
};

}  // namespace headscope::tokenizer
