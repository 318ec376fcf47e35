// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>
#include <list>
#include <memory>
#include <optional>

#include "core/maps/pair_map.h"
#include "widgets/desk/study.h"
#include "widgets/plots/map/tile_service.h"

namespace headscope::widgets {

enum class MapKind { weights, logits, ranks };

/// The last few maps of a view that the tile service has, so that stepping back finds its tiles. A head's map is
/// identified by its address; while it is kept here nothing else can have that.
class MapSources {
public:
    explicit MapSources(TileService* service) : service_(service) {}
    ~MapSources();
    MapSources(const MapSources&) = delete;
    MapSources& operator=(const MapSources&) = delete;

    /// The service's id; makes room by forgetting the map that was asked for longest ago.
    std::uint64_t id(const std::shared_ptr<const maps::PairMap>& map, MapKind kind);

private:
    struct Known {
        std::shared_ptr<const maps::PairMap> map;
        MapKind kind;
        std::uint64_t id;
    };
    QPointer<TileService> service_;
    std::list<Known> known_;  ///< front: asked for last
};

/// Source of tiles for a map.
std::shared_ptr<const maps::TileSource> source_of(const std::shared_ptr<const maps::PairMap>& map, MapKind kind);

/// True if a head's map sets exact zeros apart from small weights; false while the table of heads is read.
bool has_zeros(Study& study, std::optional<std::int64_t> sequence, std::int64_t site, std::int64_t head);

/// The greatest magnitude of a head's logits, in one sequence or (empty) in any: the end of their colours.
Reply<double> largest_logit(Study& study, std::optional<std::int64_t> sequence, std::int64_t site, std::int64_t head);

}  // namespace headscope::widgets
