// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <utility>
#include <vector>

#include "core/maps/pair_map.h"

namespace headscope::maps {

/// A map of numbers of one sequence that have no scores, >= 0 but for implicit matrices: what a kind of it adds is
/// weights_into, seen, allowed and its size. All scores are NaN.
class ValueMap : public PairMap {
public:
    std::vector<float> values(const Cells& cells) const override;
    std::vector<float> scores(const Cells& cells) const override;
    std::vector<PairReading> read(const Cells& cells) const override;
    RegionMass mass(const Cells& cells, const std::atomic<bool>& cancel) const override;
    std::int64_t sequences() const override { return 1; }
    void scores_into(const Cells& cells, float* out) const override;
};

}  // namespace headscope::maps
