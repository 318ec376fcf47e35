// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/compare/difference_source.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/maps/difference_map.h"
#include "widgets/views/map/map_sources.h"

namespace headscope::widgets {
namespace {

constexpr std::size_t kMost = 4;

maps::TileKey whole(std::uint64_t id, const maps::TileSource& map) {
    return {id, maps::top_level(map.queries(), map.keys()), 0, 0};
}

}  // namespace

DifferenceSource::DifferenceSource(TileService* service, QObject* parent) : QObject(parent), service_(service) {
    connect(service, &TileService::tiles_ready, this, &DifferenceSource::look);
}

DifferenceSource::~DifferenceSource() {
    if (!service_) return;
    for (const Known& known : known_) service_->remove(known.id);
}

std::uint64_t DifferenceSource::show(const DifferenceOf& of) {
    shown_ = static_cast<bool>(of) && service_;
    if (!shown_) {
        if (service_) service_->want(this, {});
        return 0;
    }
    const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& known) { return known.of == of; });
    if (found != known_.end()) {
        known_.splice(known_.begin(), known_, found);
    } else {
        const MapKind kind = of.logits ? MapKind::logits : MapKind::weights;
        auto source = std::make_shared<const maps::DifferenceMap>(source_of(of.left, kind), source_of(of.right, kind),
                                                                  of.queries->pairs.to_b, of.keys->pairs.to_b);
        known_.push_front({of, service_->add(std::move(source)), std::nullopt});
        if (known_.size() > kMost) {
            service_->remove(known_.back().id);
            known_.pop_back();
        }
    }
    const Known& shown = known_.front();
    if (!shown.largest) {
        service_->want(this, {whole(shown.id, *of.left)});
        look();
    }
    return shown.id;
}

std::optional<float> DifferenceSource::largest() const {
    return shown_ ? known_.front().largest : std::nullopt;
}

void DifferenceSource::look() {
    if (!shown_ || known_.front().largest || !service_) return;
    Known& shown = known_.front();
    const auto tile = service_->find(whole(shown.id, *shown.of.left));
    if (!tile) return;
    float most = std::numeric_limits<float>::quiet_NaN();
    for (const float value : tile->extreme)
        if (std::isfinite(value) && !(std::abs(value) <= most)) most = std::abs(value);
    shown.largest = most;
    service_->want(this, {});
    Q_EMIT measured();
}

}  // namespace headscope::widgets
