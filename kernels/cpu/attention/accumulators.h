// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Totals that many query blocks add to: sums by key and by thumbnail cell. Kept as 64-bit fixed point numbers, whose
// sum does not depend on the order, so any thread may add at any time and the bits stay the same; a float64 per thread
// or block would cost [blocks, heads, keys] of memory. The step of the fixed point is below 2^-40 for 2^20 queries.

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

namespace headscope::kernels::cpu {

class ColumnTotals {
public:
    /// Rows [0, query_end) and keys [key_begin, key_end) of a sequence. thumbnail sizes 0: no thumbnails. `bounded`:
    /// weights are 0 to 1; else sums of a few rows up to 2^20 either way are kept, and larger ones make a head NaN.
    ColumnTotals(std::int64_t heads, std::int64_t query_end, std::int64_t key_begin, std::int64_t key_end,
                 std::int64_t thumbnail_rows, std::int64_t thumbnail_columns, bool bounded = true);

    /// Adds weights of head h summed over some rows of thumbnail row `cell_row` (all rows are row 0 without
    /// thumbnails), with their maxima, for `count` keys from `key`.
    void add(std::int64_t h, std::int64_t cell_row, std::int64_t key, std::int64_t count, const float* sums,
             const float* maxima);

    /// The thumbnail row of query i, and the first query of thumbnail row r.
    std::int64_t cell_row(std::int64_t i) const;
    std::int64_t first_query(std::int64_t cell_row) const;

    /// Fixed point numbers a unit, and their largest size, for sums that are made elsewhere and come by set().
    double scale() const { return scale_; }
    double limit() const { return limit_; }
    /// Takes sums [heads, keys from key_begin], cells and maxima [heads, thumbnail rows, columns] and broken [heads].
    void set(std::vector<std::int64_t> sums, std::vector<std::int64_t> cell_sums, std::vector<float> cell_maxima,
             std::vector<std::uint8_t> broken);

    // Afterwards:
    double column_sum(std::int64_t h, std::int64_t j) const;
    double cell_mean(std::int64_t h, std::int64_t row, std::int64_t column) const;
    float cell_maximum(std::int64_t h, std::int64_t row, std::int64_t column) const;

private:
    std::int64_t fixed(double x, std::int64_t h);
    /// True if a thumbnail column's keys lie in one tile: that tile's lock then guards it.
    bool inside_tile(std::int64_t column) const;
    double from_fixed(std::int64_t sum, std::int64_t h) const;
    std::int64_t cell(std::int64_t h, std::int64_t row, std::int64_t column) const {
        return (h * thumbnail_rows_ + row) * thumbnail_columns_ + column;
    }

    std::int64_t query_end_, key_begin_, key_end_, thumbnail_rows_, thumbnail_columns_;
    double scale_, limit_;
    std::vector<std::int64_t> sums_;       // [heads, keys from key_begin]
    std::vector<std::int64_t> cell_sums_;  // [heads, thumbnail rows, thumbnail columns]
    std::vector<float> cell_maxima_;
    std::vector<std::int64_t> first_key_;  // [thumbnail columns + 1]
    std::vector<std::uint8_t> broken_;     // [heads]: a weight was not finite, so the sums are NaN
    std::array<std::mutex, 64> stripes_;   // by head and tile of keys
    std::mutex broken_mutex_;
};

}  // namespace headscope::kernels::cpu
