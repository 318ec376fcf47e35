// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "core/maps/value_map.h"

namespace headscope::maps {

/// A map of pieces with words in their place: a row is the mean of its pieces' rows, a column the sum of its pieces'
/// columns, so that a row still adds up to what its pieces' rows do. A pair of words is allowed where a pair of their
/// pieces is; forbidden ones count as 0. Words have no scores. Computed in tiles from those of the pieces.
class WordMap final : public ValueMap {
public:
    /// The first piece of each word, ascending from 0, and behind them the number of the map's queries, or keys. Throws
    /// Error (internal) for others. `pieces` is a map of one sequence.
    WordMap(std::shared_ptr<const PairMap> pieces, std::vector<std::int64_t> queries, std::vector<std::int64_t> keys);

    std::int64_t queries() const override { return std::ssize(queries_) - 1; }
    std::int64_t keys() const override { return std::ssize(keys_) - 1; }
    std::int64_t bytes() const override;
    float most() const override { return most_; }

    void weights_into(const Cells& cells, float* out) const override;
    std::pair<std::int64_t, std::int64_t> seen(std::int64_t q_begin, std::int64_t q_end) const override;
    std::vector<std::pair<std::int64_t, std::int64_t>> allowed(std::int64_t query) const override;

private:
    std::shared_ptr<const PairMap> pieces_;
    std::vector<std::int64_t> queries_, keys_;               ///< begins
    std::vector<std::int32_t> word_of_query_, word_of_key_;  ///< of each piece
    float most_ = std::numeric_limits<float>::quiet_NaN();
};

}  // namespace headscope::maps
