// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/tile.h"

#include <algorithm>

namespace headscope::maps {

std::int64_t pixels(std::int64_t cells, int level) {
    const std::int64_t size = std::int64_t{1} << level;
    return (cells + size - 1) / size;
}

Cells tile_cells(const TileKey& key, std::int64_t queries, std::int64_t keys) {
    const std::int64_t side = kTileSize << key.level;
    return {std::min(key.row * side, queries), std::min((key.row + 1) * side, queries),
            std::min(key.column * side, keys), std::min((key.column + 1) * side, keys)};
}

int top_level(std::int64_t queries, std::int64_t keys) {
    int level = 0;
    while (pixels(std::max(queries, keys), level) > kTileSize) ++level;
    return level;
}

}  // namespace headscope::maps
