// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "core/base/error.h"
#include "core/maps/tile_server.h"

using namespace headscope;
using namespace headscope::maps;

namespace {

/// A pixel's value is the position of its first cell, so that every pixel of every level is known.
class Positions : public TileSource {
public:
    explicit Positions(std::int64_t side) : side_(side) {}
    std::int64_t queries() const override { return side_; }
    std::int64_t keys() const override { return side_; }
    void pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
              const std::atomic<bool>& cancel) const override {
        calls.fetch_add(1);
        while (blocked && !cancel) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (cancel) throw Stopped();
        if (broken) throw Error(ErrorCode::mismatch, "map", "expected a map", "found none");
        for (std::int64_t r = 0; r < pixels(cells.queries(), level); ++r) {
            for (std::int64_t c = 0; c < pixels(cells.keys(), level); ++c) {
                mean[r * stride + c] = static_cast<float>(cells.q_begin + (r << level));
                extreme[r * stride + c] = static_cast<float>(cells.k_begin + (c << level));
            }
        }
    }
    std::vector<float> values(const Cells&) const override { return {}; }

    mutable std::atomic<int> calls{0};
    std::atomic<bool> blocked{false}, broken{false};

private:
    std::int64_t side_;
};

TileServer::Options with(int workers, std::int64_t cache_bytes = 64 << 20) {
    TileServer::Options options;
    options.workers = workers;
    options.cache_bytes = cache_bytes;
    return options;
}

}  // namespace

TEST_CASE("Every pixel of every tile is made, by one worker and by several", "[tiles]") {
    const auto source = std::make_shared<Positions>(5000);
    for (const int workers : {1, 4}) {
        TileServer server(with(workers));
        const std::uint64_t map = server.add(source);
        std::vector<TileKey> keys;
        for (int level = 2; level <= top_level(5000, 5000); ++level) {
            const std::int64_t tiles = (pixels(5000, level) + kTileSize - 1) / kTileSize;
            for (std::int64_t row = 0; row < tiles; ++row)
                for (std::int64_t column = 0; column < tiles; ++column) keys.push_back({map, level, row, column});
        }
        server.want(keys);
        server.wait();
        for (const TileKey& key : keys) {
            const auto tile = server.find(key);
            REQUIRE(tile);
            const Cells cells = tile_cells(key, 5000, 5000);
            REQUIRE(tile->rows == pixels(cells.queries(), key.level));
            REQUIRE(tile->columns == pixels(cells.keys(), key.level));
            bool same = true;
            for (std::int64_t r = 0; r < tile->rows; ++r) {
                for (std::int64_t c = 0; c < tile->columns; ++c) {
                    const auto at = static_cast<std::size_t>(r * tile->columns + c);
                    same = same && tile->mean[at] == static_cast<float>(cells.q_begin + (r << key.level)) &&
                           tile->extreme[at] == static_cast<float>(cells.k_begin + (c << key.level));
                }
            }
            REQUIRE(same);
        }
        CHECK(server.counts().made == static_cast<std::int64_t>(keys.size()));
    }
}

TEST_CASE("The latest request wins: tiles no longer requested are given up or not started", "[tiles]") {
    const auto source = std::make_shared<Positions>(100000);
    source->blocked = true;
    TileServer server(with(2));
    const std::uint64_t map = server.add(source);
    server.want({{map, 0, 0, 0}, {map, 0, 0, 1}, {map, 0, 0, 2}, {map, 0, 0, 3}});
    while (source->calls < 2) std::this_thread::yield();
    server.want({{map, 0, 9, 9}});
    source->blocked = false;
    server.wait();
    CHECK(server.find({map, 0, 9, 9}));
    CHECK_FALSE(server.find({map, 0, 0, 0}));
    CHECK_FALSE(server.find({map, 0, 0, 3}));
    CHECK(server.counts().given_up == 2);
    CHECK(source->calls == 3);
}

TEST_CASE("A tile that is wanted again while it is given up is made after all", "[tiles]") {
    const auto source = std::make_shared<Positions>(1 << 20);
    TileServer server(with(3));
    const std::uint64_t map = server.add(source);
    for (int round = 0; round < 200; ++round) {
        server.want({{map, 12, 0, 0}});
        server.want({{map, 0, round, 0}});
    }
    server.want({{map, 12, 0, 0}});
    server.wait();
    CHECK(server.find({map, 12, 0, 0}));
}

TEST_CASE("The cache forgets what was used longest ago, never what is wanted now", "[tiles]") {
    const auto source = std::make_shared<Positions>(kTileSize * 10);
    const std::int64_t one = kTileSize * kTileSize * 8;
    TileServer server(with(1, 3 * one));
    const std::uint64_t map = server.add(source);
    const auto make = [&](std::int64_t column) {
        server.want({{map, 0, 0, column}});
        server.wait();
    };
    for (const std::int64_t column : {0, 1, 2}) make(column);
    CHECK(server.find({map, 0, 0, 0}));  // used again: 1 is the oldest now
    make(3);
    CHECK_FALSE(server.find({map, 0, 0, 1}));
    CHECK(server.find({map, 0, 0, 0}));
    CHECK(server.counts().held_bytes == 3 * one);

    std::vector<TileKey> more;
    for (std::int64_t column = 0; column < 6; ++column) more.push_back({map, 0, 1, column});
    server.want(more);
    server.wait();
    for (const TileKey& key : more) CHECK(server.find(key));
}

TEST_CASE("A failing source is reported once and leaves the server working", "[tiles]") {
    const auto broken = std::make_shared<Positions>(5000), sound = std::make_shared<Positions>(5000);
    broken->broken = true;
    std::atomic<int> told{0};
    TileServer::Options options = with(2);
    options.ready = [&] { told.fetch_add(1); };
    TileServer server(options);
    const std::uint64_t first = server.add(broken), second = server.add(sound);
    server.want({{first, 5, 0, 0}, {second, 5, 0, 0}});
    server.wait();
    CHECK(server.take_failure().find("expected a map") != std::string::npos);
    CHECK(server.take_failure().empty());
    CHECK_FALSE(server.find({first, 5, 0, 0}));
    CHECK(server.find({second, 5, 0, 0}));
    CHECK(told >= 2);
}

TEST_CASE("A map that is removed takes its tiles along; unknown maps and tiles are refused", "[tiles]") {
    TileServer server(with(1));
    const auto source = std::make_shared<Positions>(1000);
    const std::uint64_t map = server.add(source);
    server.want({{map, 0, 0, 0}});
    server.wait();
    CHECK_THROWS_AS(server.want({{map, 0, 4, 0}}), Error);
    CHECK_THROWS_AS(server.want({{map + 1, 0, 0, 0}}), Error);
    server.remove(map);
    CHECK_FALSE(server.find({map, 0, 0, 0}));
    CHECK(server.counts().held_bytes == 0);
    CHECK_THROWS_AS(server.want({{map, 0, 0, 0}}), Error);
}

TEST_CASE("A server destroyed at work does not wait for unrequested tiles", "[tiles]") {
    const auto source = std::make_shared<Positions>(1 << 20);
    source->blocked = true;  // until it is cancelled
    {
        TileServer server(with(2));
        const std::uint64_t map = server.add(source);
        server.want({{map, 12, 0, 0}});
        while (source->calls < 2) std::this_thread::yield();
    }
    CHECK(source->calls == 2);
}
