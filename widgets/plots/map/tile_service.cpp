// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/map/tile_service.h"

#include <algorithm>

namespace headscope::widgets {

TileService::TileService(maps::TileServer::Options options, QObject* parent) : QObject(parent) {
    options.ready = [this] {
        if (!told_.exchange(true)) QMetaObject::invokeMethod(this, &TileService::tell, Qt::QueuedConnection);
    };
    server_ = std::make_unique<maps::TileServer>(std::move(options));
}

TileService::~TileService() = default;

void TileService::tell() {
    told_ = false;
    if (const std::string failure = server_->take_failure(); !failure.empty())
        Q_EMIT failed(QString::fromStdString(failure));
    Q_EMIT tiles_ready();
}

void TileService::remove(std::uint64_t map) {
    for (auto& [viewer, keys] : wishes_) std::erase_if(keys, [map](const auto& key) { return key.map == map; });
    server_->remove(map);
}

void TileService::want(const QObject* viewer, std::vector<maps::TileKey> keys) {
    if (!wishes_.contains(viewer)) {
        connect(viewer, &QObject::destroyed, this, [this, viewer] {
            wishes_.erase(viewer);
            pass_on();
        });
    }
    wishes_[viewer] = std::move(keys);
    pass_on();
}

void TileService::pass_on() {
    // Everybody's most urgent tile first.
    std::vector<maps::TileKey> merged;
    std::size_t longest = 0;
    for (const auto& [viewer, keys] : wishes_) longest = std::max(longest, keys.size());
    for (std::size_t i = 0; i < longest; ++i) {
        for (const auto& [viewer, keys] : wishes_)
            if (i < keys.size()) merged.push_back(keys[i]);
    }
    server_->want(merged);
}

}  // namespace headscope::widgets
