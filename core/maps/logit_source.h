// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/maps/pair_map.h"

namespace headscope::maps {

/// Scores before the normaliser, pooled: mean over the allowed pairs, and the score of greatest magnitude, whatever
/// its sign.
class LogitSource final : public TileSource {
public:
    explicit LogitSource(std::shared_ptr<const PairMap> map) : map_(std::move(map)) {}

    std::int64_t queries() const override { return map_->queries(); }
    std::int64_t keys() const override { return map_->keys(); }
    void pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
              const std::atomic<bool>& cancel) const override;
    std::vector<float> values(const Cells& cells) const override { return map_->scores(cells); }

private:
    std::shared_ptr<const PairMap> map_;
};

}  // namespace headscope::maps
