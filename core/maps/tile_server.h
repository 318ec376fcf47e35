// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Makes the tiles that a view shows, on its own threads. The latest request wins: tiles that are no longer requested
// are not started, or given up. Coarse tiles, which pool many cells, are shared by all workers. Finished tiles stay in
// a cache of limited size, least recently used first to go.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/maps/tile.h"

namespace headscope::maps {

class TileServer {
public:
    struct Options {
        int workers = 0;                         ///< 0: one a processor
        std::int64_t cache_bytes = 128LL << 20;  ///< of finished tiles
        std::function<void()> ready;             ///< a tile was finished or failed; called on a worker, must be quick
    };
    explicit TileServer(Options options);
    ~TileServer();  ///< gives up what is being made and waits for the workers
    TileServer(const TileServer&) = delete;
    TileServer& operator=(const TileServer&) = delete;

    /// A map to make tiles of; never 0, never reused.
    std::uint64_t add(std::shared_ptr<const TileSource> source);
    /// Forgets a map, its tiles and whatever is wanted of it.
    void remove(std::uint64_t map);

    /// Replaces all earlier requests; most urgent first. Throws Error (internal) for an unknown map or a tile outside
    /// its map.
    void want(const std::vector<TileKey>& keys);
    /// A finished tile, or null.
    std::shared_ptr<const Tile> find(const TileKey& key);

    /// Reason of the last failed tile; empty if none failed since the last call. A failed tile is retried on the next
    /// request.
    std::string take_failure();
    /// Waits until nothing wanted is missing. For tests and for writing a file.
    void wait();

    struct Counts {
        std::int64_t made = 0, given_up = 0, held_bytes = 0;
    };
    Counts counts() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headscope::maps
