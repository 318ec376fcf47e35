// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// One map of figure `attention`: its numbers and notes. For recipe_attention.cpp.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/figures/map_values.h"
#include "core/figures/recipe.h"

namespace headscope::figures {

constexpr std::int64_t kShortText = 256;  ///< up to here a square-root scale; the weights of longer texts need decades

constexpr double kSmallestShown = 1e-4;  ///< of the largest value: where a logarithmic scale begins

struct AttentionMap {
    std::string model, site;
    bool cross = false, words = false;
    std::int64_t layer = 0, head = 0, rows = 0, columns = 0, queries = 0;
    maps::Cells region;
    std::vector<std::string> query_tokens, key_tokens;     ///< of the whole text, as read; empty for other streams
    std::vector<std::int32_t> query_regions, key_regions;  ///< of a pair, of all of them; else empty
    std::vector<float> values;                             ///< [rows, columns]; NaN: not allowed
    std::vector<float> ranks;                              ///< instead of them drawn; may be empty
    CellScale scale = CellScale::linear;
    MapValues kind = MapValues::weights;
    Pooling pooling = Pooling::maximum;
    std::vector<double> deviation;  ///< over sequences, of exact means; else empty
    double largest = 0;             ///< magnitude of the head's logits; of norms what none is above, or those shown
    std::int64_t sequences = 1;     ///< more: means over them, of positions that hold other tokens in each
    std::int64_t limit = 0;         ///< trained positions; 0: none, or not passed

    bool exact() const { return rows == region.queries() && columns == region.keys(); }
    bool logits() const { return kind == MapValues::logits; }
    bool implicit() const { return kind == MapValues::implicit; }
    bool computed() const { return kind != MapValues::weights && !logits(); }
    /// Numbers of both signs.
    bool of_signs() const { return logits() || implicit(); }
    /// There is no end that all numbers keep.
    bool open() const { return of_signs() || of_norms(kind); }
};

/// `largest`: magnitude of the logits or norms of all maps.
Panel attention_panel(const AttentionMap& map, const std::string& title, double largest);
/// A row a cell that the mask allows.
Table attention_table(const std::vector<AttentionMap>& maps);

/// Which part of the texts is shown.
std::string part_note(const std::vector<AttentionMap>& maps);
/// Meaning of the colors of all maps of one kind, and of cells of several pairs.
std::string scale_note(const std::vector<AttentionMap>& maps);
/// Meaning of the colors of recurrent layers' maps.
std::string implicit_note(const AttentionMap& map);

/// Tokens of the longer side.
std::int64_t longest_side(std::span<const AttentionMap> maps);
/// by_length resolved: by `longest` tokens.
CellScale scale_of(const AttentionMap& map, CellScale asked, std::int64_t longest);

}  // namespace headscope::figures
