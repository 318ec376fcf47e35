// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <utility>
#include <vector>

#include "core/maps/pair_map.h"

namespace headscope::maps {

/// Pools what map.values() gives: the mean over all pairs under a pixel, forbidden ones as 0, and the greatest.
void pool_pairs(const PairMap& map, const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
                const std::atomic<bool>& cancel);

/// A map of numbers >= 0 of one sequence that have no scores: what a kind of it adds is weights_into, seen, allowed and
/// its size. All scores are NaN.
class ValueMap : public PairMap {
public:
    void pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
              const std::atomic<bool>& cancel) const override;
    std::vector<float> values(const Cells& cells) const override;
    std::vector<float> scores(const Cells& cells) const override;
    std::vector<PairReading> read(const Cells& cells) const override;
    RegionMass mass(const Cells& cells, const std::atomic<bool>& cancel) const override;
    std::int64_t sequences() const override { return 1; }
    void scores_into(const Cells& cells, float* out) const override;
};

}  // namespace headscope::maps
