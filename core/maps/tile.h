// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// An attention map as a pyramid of tiles. At level n a pixel pools 2^n x 2^n cells (fewer at the map's end), and tile
// (row, column) holds up to 256 x 256 pixels. Values only; any thread.

#include <atomic>
#include <compare>
#include <cstdint>
#include <vector>

namespace headscope::maps {

inline constexpr std::int64_t kTileSize = 256;  ///< pixels along a side

struct TileKey {
    std::uint64_t map = 0;  ///< as TileServer::add gave it
    int level = 0;
    std::int64_t row = 0, column = 0;
    auto operator<=>(const TileKey&) const = default;
};

/// Row-major pixels [rows, columns]. `extreme` is what a pooled pixel must not lose: the maximum of weights, the value
/// of greatest magnitude where values have signs. NaN in both: no pair under the pixel is allowed.
struct Tile {
    std::int64_t rows = 0, columns = 0;
    std::vector<float> mean, extreme;
    std::int64_t bytes() const { return static_cast<std::int64_t>((mean.size() + extreme.size()) * sizeof(float)); }
};

/// Cells [q_begin, q_end) x [k_begin, k_end).
struct Cells {
    std::int64_t q_begin = 0, q_end = 0, k_begin = 0, k_end = 0;
    std::int64_t queries() const { return q_end - q_begin; }
    std::int64_t keys() const { return k_end - k_begin; }
    /// The first query of pixel r where `rows` pixels lie along the queries; likewise `columns` along the keys.
    std::int64_t query_of(std::int64_t r, std::int64_t rows) const {
        return q_begin + (r * queries() + rows - 1) / rows;
    }
    std::int64_t key_of(std::int64_t c, std::int64_t columns) const {
        return k_begin + (c * keys() + columns - 1) / columns;
    }
};

/// The cells of a tile, cut at the map's end.
Cells tile_cells(const TileKey& key, std::int64_t queries, std::int64_t keys);
/// The lowest level at which a map fits one tile.
int top_level(std::int64_t queries, std::int64_t keys);
/// Pixels for `cells` cells at a level: the last one may pool fewer.
std::int64_t pixels(std::int64_t cells, int level);

/// Source of tiles. Immutable; many threads may call all functions at once.
class TileSource {
public:
    virtual ~TileSource() = default;
    virtual std::int64_t queries() const = 0;
    virtual std::int64_t keys() const = 0;
    /// Pools `cells` into mean and extreme [rows, columns], row r of which starts at r * stride; cells.q_begin and
    /// k_begin are multiples of 2^level. Throws kernels::Cancelled or Stopped soon after `cancel` is set.
    virtual void pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
                      const std::atomic<bool>& cancel) const = 0;
    /// Values of single cells, row-major; NaN where a pair is not allowed.
    virtual std::vector<float> values(const Cells& cells) const = 0;
};

}  // namespace headscope::maps
