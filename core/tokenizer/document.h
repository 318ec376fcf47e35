// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// tokenizer.json as a JSON document whose two long lists are packed: a tree of 800 000 nodes costs more time and memory
// than all else in opening a tokenizer. Both lists read alike, packed or not.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/base/json/json.h"

namespace headscope::tokenizer {

/// The same as parse_json, but model.vocab, if it is an object of whole numbers, and model.merges, if it is an array of
/// strings or of pairs of strings, become binary values for the functions below. A key that is twice in model.vocab is
/// left to them.
nlohmann::json read_document(std::string_view text, const std::string& where);

/// Number of entries of a list.
std::size_t packed_size(const JsonView& list);

/// Calls take(piece, id) for each piece of a vocabulary, in the file's order or, of a plain object, in that of keys.
/// Ids are whole numbers from 0 to 2^31 - 2. Stopped within a CancellationScope.
void each_piece(const JsonView& vocabulary, const std::function<void(std::string_view piece, std::int32_t id)>& take);

/// A merge, "a b" in one string or as a pair.
struct MergeText {
    std::string_view left;  ///< the whole string if it is one
    std::string_view right;
    bool is_pair = false;
};

/// Calls take(index, merge) for each of the merges. Stopped within a CancellationScope.
void each_merge(const JsonView& merges, const std::function<void(std::size_t index, const MergeText& merge)>& take);

}  // namespace headscope::tokenizer
