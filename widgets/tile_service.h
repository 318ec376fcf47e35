// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "core/tiles/tile_server.h"

namespace headscope::widgets {

/// The window's one TileServer, shared by all views that show maps: merges their wishes and tells on the window's
/// thread when tiles are there, at most once a turn of the event loop. Use it on the window's thread only.
class TileService : public QObject {
    Q_OBJECT
public:
    explicit TileService(tiles::TileServer::Options options = {}, QObject* parent = nullptr);
    ~TileService() override;

    std::uint64_t add(std::shared_ptr<const tiles::TileSource> source) { return server_->add(std::move(source)); }
    void remove(std::uint64_t map);
    /// What `viewer` wants from now on, most urgent first; its wishes end with it.
    void want(const QObject* viewer, std::vector<tiles::TileKey> keys);
    std::shared_ptr<const tiles::Tile> find(const tiles::TileKey& key) { return server_->find(key); }
    tiles::TileServer& server() { return *server_; }

Q_SIGNALS:
    void tiles_ready();
    void failed(const QString& message);

private:
    void pass_on();
    void tell();

    std::map<const QObject*, std::vector<tiles::TileKey>> wishes_;
    std::atomic<bool> told_{false};
    std::unique_ptr<tiles::TileServer> server_;
};

}  // namespace headscope::widgets
