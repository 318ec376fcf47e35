// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/tile_server.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/machine/processors.h"
#include "core/base/process/threads.h"
#include "kernels/backend.h"

namespace headscope::maps {
namespace {

// From this level on a tile is made in parts: 2048 x 2048 cells and more are tens of milliseconds.
constexpr int kSharedLevel = 3;
constexpr std::int64_t kPart = 64;  ///< pixels along a part's side

/// A tile that is being made: its parts are handed out one by one.
struct Making {
    TileKey key;
    std::shared_ptr<const TileSource> source;
    Cells cells;
    std::shared_ptr<Tile> tile;
    std::vector<Cells> parts;
    std::size_t next = 0;  ///< part to hand out
    std::size_t busy = 0;  ///< parts that workers hold
    std::atomic<bool> cancel{false};
    bool failed = false;
    std::once_flag allocated;

    /// By the first worker that comes, so that want of memory is that tile's failure.
    void allocate() {
        auto made = std::make_shared<Tile>();
        made->rows = pixels(cells.queries(), key.level);
        made->columns = pixels(cells.keys(), key.level);
        made->mean.resize(static_cast<std::size_t>(made->rows * made->columns));
        made->extreme.resize(made->mean.size());
        tile = std::move(made);
    }
};

std::vector<Cells> split(const Cells& cells, int level) {
    if (level < kSharedLevel) return {cells};
    const std::int64_t side = kPart << level;
    std::vector<Cells> parts;
    // From below: the last rows of a causal map are the most expensive.
    for (std::int64_t q = cells.q_begin + (cells.queries() - 1) / side * side; q >= cells.q_begin; q -= side) {
        for (std::int64_t k = cells.k_begin; k < cells.k_end; k += side)
            parts.push_back({q, std::min(q + side, cells.q_end), k, std::min(k + side, cells.k_end)});
    }
    return parts;
}

}  // namespace

struct TileServer::Impl {
    explicit Impl(Options given) : options(std::move(given)) {
        const int processors = options.workers > 0 ? options.workers : usable_processors();
        start_threads(workers, processors, [this] { work(); });
    }

    ~Impl() {
        {
            const std::lock_guard lock(mutex);
            stopping = true;
            wanted.clear();
            give_up([](const TileKey&) { return true; });
        }
        wake.notify_all();
        for (std::thread& worker : workers) worker.join();
    }

    void work() {
        std::unique_lock lock(mutex);
        for (;;) {
            std::shared_ptr<Making> making;
            wake.wait(lock, [&] { return stopping || (making = next_job()) != nullptr; });
            if (stopping) return;
            const Cells part = making->parts[making->next++];
            ++making->busy;
            lock.unlock();
            std::string failure;
            const bool whole = make(*making, part, failure);
            lock.lock();
            --making->busy;
            finish_part(making, whole, failure);
        }
    }

    /// A tile with parts to hand out: a started one, or the first requested one that no worker makes. Locked.
    std::shared_ptr<Making> next_job() {
        for (const auto& making : in_work) {
            if (!making->cancel && !making->failed && making->next < making->parts.size()) return making;
        }
        while (!wanted.empty()) {
            const TileKey key = wanted.front();
            wanted.pop_front();
            const auto source = sources.find(key.map);
            if (source == sources.end() || cached.count(key) != 0 || is_in_work(key)) continue;
            auto making = std::make_shared<Making>();
            making->key = key;
            making->source = source->second;
            making->cells = tile_cells(key, making->source->queries(), making->source->keys());
            making->parts = split(making->cells, key.level);
            in_work.push_back(making);
            return making;
        }
        if (in_work.empty()) idle.notify_all();
        return nullptr;
    }

    /// Stops making the tiles that `unwanted` names. Locked.
    template <class F>
    void give_up(F unwanted) {
        std::erase_if(in_work, [&](const std::shared_ptr<Making>& making) {
            if (!unwanted(making->key)) return false;
            making->cancel = true;
            if (making->busy > 0) return false;  // its last worker takes it out
            ++count.given_up;
            return true;
        });
    }

    bool is_in_work(const TileKey& key) const {
        return std::any_of(in_work.begin(), in_work.end(),
                           [&](const auto& making) { return making->key == key && !making->cancel; });
    }

    /// Not locked. False: given up or failed.
    static bool make(Making& making, const Cells& part, std::string& failure) {
        try {
            std::call_once(making.allocated, &Making::allocate, &making);
            const std::int64_t row = (part.q_begin - making.cells.q_begin) >> making.key.level;
            const std::int64_t column = (part.k_begin - making.cells.k_begin) >> making.key.level;
            const std::int64_t at = row * making.tile->columns + column;
            making.source->pool(part, making.key.level, making.tile->columns, making.tile->mean.data() + at,
                                making.tile->extreme.data() + at, making.cancel);
            return true;
        } catch (const kernels::Cancelled&) {
        } catch (const Stopped&) {
        } catch (const Error& error) {
            failure = error.what();
        } catch (const std::exception& error) {
            failure = error.what();
        }
        return false;
    }

    /// Locked.
    void finish_part(const std::shared_ptr<Making>& making, bool whole, const std::string& failure) {
        if (!whole) making->failed = true;
        if (!failure.empty()) last_failure = failure;
        const bool ended = making->failed || making->cancel;
        if (making->busy > 0 || (!ended && making->next < making->parts.size())) return;
        std::erase(in_work, making);
        if (ended) {
            ++count.given_up;
        } else {
            keep(making->key, making->tile);
            ++count.made;
        }
        if (options.ready && (!ended || !failure.empty())) options.ready();
        idle.notify_all();
        wake.notify_all();
    }

    void keep(const TileKey& key, std::shared_ptr<const Tile> tile) {
        if (sources.count(key.map) == 0) return;
        count.held_bytes += tile->bytes();
        recent.push_front({key, std::move(tile)});
        cached[key] = recent.begin();
        // Tiles of the last request stay, however small the cache is.
        for (auto last = std::prev(recent.end()); count.held_bytes > options.cache_bytes && last != recent.begin();) {
            const auto before = std::prev(last);
            if (needed.count(last->key) == 0) drop(last);
            last = before;
        }
    }

    struct Held {
        TileKey key;
        std::shared_ptr<const Tile> tile;
    };
    void drop(std::list<Held>::iterator held) {
        count.held_bytes -= held->tile->bytes();
        cached.erase(held->key);
        recent.erase(held);
    }

    Options options;
    mutable std::mutex mutex;
    std::condition_variable wake, idle;
    std::vector<std::thread> workers;
    bool stopping = false;
    std::uint64_t last_map = 0;
    std::map<std::uint64_t, std::shared_ptr<const TileSource>> sources;
    std::deque<TileKey> wanted;
    std::set<TileKey> needed;  ///< all tiles of the last request, made or not
    std::list<std::shared_ptr<Making>> in_work;
    std::list<Held> recent;  ///< front: used last
    std::map<TileKey, std::list<Held>::iterator> cached;
    std::string last_failure;
    Counts count;
};

TileServer::TileServer(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
TileServer::~TileServer() = default;

std::uint64_t TileServer::add(std::shared_ptr<const TileSource> source) {
    const std::lock_guard lock(impl_->mutex);
    impl_->sources[++impl_->last_map] = std::move(source);
    return impl_->last_map;
}

void TileServer::remove(std::uint64_t map) {
    const std::lock_guard lock(impl_->mutex);
    impl_->sources.erase(map);
    std::erase_if(impl_->wanted, [map](const TileKey& key) { return key.map == map; });
    impl_->give_up([map](const TileKey& key) { return key.map == map; });
    for (auto held = impl_->recent.begin(); held != impl_->recent.end();) {
        const auto next = std::next(held);
        if (held->key.map == map) impl_->drop(held);
        held = next;
    }
}

void TileServer::want(const std::vector<TileKey>& keys) {
    {
        const std::lock_guard lock(impl_->mutex);
        for (const TileKey& key : keys) {
            const auto source = impl_->sources.find(key.map);
            const bool known = source != impl_->sources.end() && key.level >= 0 && key.level < 48 && key.row >= 0 &&
                               key.column >= 0 && key.row * (kTileSize << key.level) < source->second->queries() &&
                               key.column * (kTileSize << key.level) < source->second->keys();
            if (known) continue;
            throw Error(ErrorCode::internal, "tiles", "expected a tile of a known map",
                        "found map " + std::to_string(key.map) + ", level " + std::to_string(key.level) + ", tile " +
                            std::to_string(key.row) + ", " + std::to_string(key.column));
        }
        impl_->needed = {keys.begin(), keys.end()};
        impl_->wanted.clear();
        for (const TileKey& key : keys) {
            if (const auto held = impl_->cached.find(key); held != impl_->cached.end()) {
                impl_->recent.splice(impl_->recent.begin(), impl_->recent, held->second);
            } else {
                impl_->wanted.push_back(key);
            }
        }
        impl_->give_up([this](const TileKey& key) { return impl_->needed.count(key) == 0; });
    }
    impl_->wake.notify_all();
}

std::shared_ptr<const Tile> TileServer::find(const TileKey& key) {
    const std::lock_guard lock(impl_->mutex);
    const auto held = impl_->cached.find(key);
    if (held == impl_->cached.end()) return nullptr;
    impl_->recent.splice(impl_->recent.begin(), impl_->recent, held->second);
    return held->second->tile;
}

std::string TileServer::take_failure() {
    const std::lock_guard lock(impl_->mutex);
    return std::exchange(impl_->last_failure, {});
}

void TileServer::wait() {
    std::unique_lock lock(impl_->mutex);
    impl_->idle.wait(lock, [this] { return impl_->in_work.empty() && impl_->wanted.empty(); });
}

TileServer::Counts TileServer::counts() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->count;
}

}  // namespace headscope::maps
