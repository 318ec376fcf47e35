// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/map/map_sources.h"

#include <algorithm>
#include <string>

#include "core/figures/map_values.h"
#include "core/figures/recipe.h"
#include "core/maps/logit_source.h"
#include "core/maps/rank_source.h"

namespace headscope::widgets {
namespace {

constexpr std::size_t kMost = 6;  ///< 17 MB each at 16 384 tokens and a key size of 64; ranks twice as much

}  // namespace

std::shared_ptr<const maps::TileSource> source_of(const std::shared_ptr<const maps::PairMap>& map, MapKind kind) {
    if (kind == MapKind::logits) return std::make_shared<const maps::LogitSource>(map);
    if (kind == MapKind::ranks) return std::make_shared<const maps::RankSource>(map);
    return map;
}

bool has_zeros(Study& study, std::optional<std::int64_t> sequence, std::int64_t site, std::int64_t head) {
    const auto heads = study.heads(sequence);
    const auto column = heads ? heads->column("zero_fraction") : std::nullopt;
    // Thumbnails alone do not know what a window hides.
    const double least = study.has_maps(site) ? 0 : figures::kSparseHead;
    for (std::size_t row = 0; column && row < heads->rows.size(); ++row)
        if (heads->rows[row].site == site && heads->rows[row].head == head) return heads->value(row, *column) > least;
    return false;
}

Reply<double> largest_logit(Study& study, std::optional<std::int64_t> sequence, std::int64_t site, std::int64_t head) {
    const std::int64_t first = sequence.value_or(0), last = sequence.value_or(study.sequences() - 1);
    const std::string key = "largest logit:" + std::to_string(sequence.value_or(-1)) + ":" + std::to_string(site) +
                            ":" + std::to_string(head);
    return study.ask<double>(key, sequence.value_or(-1), site, [=](const store::AnalysisFile& file) {
        double largest = 0;
        for (std::int64_t s = first; s <= last; ++s)
            largest = std::max(largest, figures::largest_logit(file, s, site, head));
        return std::make_shared<const double>(largest);
    });
}

MapSources::~MapSources() {
    if (!service_) return;
    for (const Known& known : known_) service_->remove(known.id);
}

std::uint64_t MapSources::id(const std::shared_ptr<const maps::PairMap>& map, MapKind kind) {
    if (!service_) return 0;
    const auto found = std::find_if(known_.begin(), known_.end(),
                                    [&](const Known& known) { return known.map == map && known.kind == kind; });
    if (found != known_.end()) {
        known_.splice(known_.begin(), known_, found);
        return found->id;
    }
    known_.push_front({map, kind, service_->add(source_of(map, kind))});
    if (known_.size() > kMost) {
        service_->remove(known_.back().id);
        known_.pop_back();
    }
    return known_.front().id;
}

}  // namespace headscope::widgets
