// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "core/maps/pair_map.h"

namespace headscope::maps {

/// The rank of each weight among those of its row: the share of the other weights that are smaller, ties counting half,
/// from 0 to 1; a weight that is alone is 1. Each row's weights are sorted once, when a tile first touches the row, and
/// kept as a table of up to 257 quantiles: exact up to 257 keys, beyond them within 1/256. Memory: 1 KB a row. A rank
/// rises with the weight, so that a pixel's maximum is the rank of its largest weight in every row. Its mean is over
/// all its pairs up to eight keys across, over every second, fourth, ... key of each row beyond.
class RankSource final : public TileSource {
public:
    explicit RankSource(std::shared_ptr<const PairMap> map);

    std::int64_t queries() const override { return map_->queries(); }
    std::int64_t keys() const override { return map_->keys(); }
    void pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
              const std::atomic<bool>& cancel) const override;
    std::vector<float> values(const Cells& cells) const override;

    static constexpr std::int64_t kKnots = 257;

private:
    static constexpr std::int64_t kRows = 64;  ///< whose tables are made together
    struct Row {
        std::vector<float> knots;  ///< ascending; at equal distances of rank
        float rank(float weight) const;
    };
    struct Block {
        std::mutex mutex;
        bool made = false;
        std::array<Row, kRows> rows;
    };
    /// The table of rows [index * kRows, ...), made by the first caller.
    const Block& block(std::int64_t index, const std::atomic<bool>& cancel) const;
    void make(Block& block, std::int64_t q_begin, const std::atomic<bool>& cancel) const;

    std::shared_ptr<const PairMap> map_;
    std::unique_ptr<Block[]> blocks_;
};

/// The same of values in memory, exactly. NaN stays NaN.
std::vector<float> row_ranks(const std::vector<float>& values, std::int64_t rows, std::int64_t columns);

}  // namespace headscope::maps
