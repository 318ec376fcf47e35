// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "core/maps/tile_server.h"

namespace headscope::widgets {

/// The window's one TileServer, shared by all views with maps: merges their requests and emits on the window's thread
/// when tiles are ready, at most once a turn of the event loop. Use it on the window's thread only.
class TileService : public QObject {
    Q_OBJECT
public:
    explicit TileService(maps::TileServer::Options options = {}, QObject* parent = nullptr);
    ~TileService() override;

    std::uint64_t add(std::shared_ptr<const maps::TileSource> source) { return server_->add(std::move(source)); }
    void remove(std::uint64_t map);
    /// Replaces the requests of `viewer`, most urgent first; they end with it.
    void want(const QObject* viewer, std::vector<maps::TileKey> keys);
    std::shared_ptr<const maps::Tile> find(const maps::TileKey& key) { return server_->find(key); }
    maps::TileServer& server() { return *server_; }

Q_SIGNALS:
    void tiles_ready();
    void failed(const QString& message);

private:
    void pass_on();
    void tell();

    std::map<const QObject*, std::vector<maps::TileKey>> wishes_;
    std::atomic<bool> told_{false};
    std::unique_ptr<maps::TileServer> server_;
};

}  // namespace headscope::widgets
