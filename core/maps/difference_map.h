// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <vector>

#include "core/maps/tile.h"

namespace headscope::maps {

/// The second map minus the first, cell by cell, laid out as the first. Partners of queries and of keys pair the cells;
/// a cell without one, or not allowed in either map, is NaN. Pooled: the mean over existing pairs, and the difference
/// of greatest magnitude, with its sign, so that a single different cell shows at every level.
class DifferenceMap final : public TileSource {
public:
    /// query_partners[i]: the second map's query for query i of the first, -1: none; key_partners likewise. Throws
    /// Error (internal) when they do not fit the maps.
    DifferenceMap(std::shared_ptr<const TileSource> first, std::shared_ptr<const TileSource> second,
                  std::vector<std::int64_t> query_partners, std::vector<std::int64_t> key_partners);

    std::int64_t queries() const override { return first_->queries(); }
    std::int64_t keys() const override { return first_->keys(); }
    void pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
              const std::atomic<bool>& cancel) const override;
    std::vector<float> values(const Cells& cells) const override;

private:
    /// Differences of `cells`, which is one block, into out [cells.queries(), cells.keys()], filled with NaN before.
    void block_into(const Cells& cells, float* out) const;

    std::shared_ptr<const TileSource> first_, second_;
    std::vector<std::int64_t> query_partners_, key_partners_;
};

}  // namespace headscope::maps
