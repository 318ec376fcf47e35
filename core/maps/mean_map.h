// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <vector>

#include "core/maps/head_map.h"

namespace headscope::maps {

/// One head's map in the mean over sequences, position by position: query 7 is the eighth token of each. A pair's mean
/// is over the sequences that have it (long enough, and the mask allows it); as large as the longest sequence's map.
/// Pooled as one head's: the mean over all pairs under a pixel, forbidden ones as 0, and the greatest mean weight.
class MeanMap final : public PairMap {
public:
    /// At least one map. Throws Error (internal) where there is none.
    explicit MeanMap(std::vector<std::shared_ptr<const PairMap>> maps);

    std::int64_t queries() const override { return queries_; }
    std::int64_t keys() const override { return keys_; }
    std::vector<float> values(const Cells& cells) const override;
    std::vector<float> scores(const Cells& cells) const override;
    std::vector<PairReading> read(const Cells& cells) const override;
    RegionMass mass(const Cells& cells, const std::atomic<bool>& cancel) const override;
    std::int64_t bytes() const override;
    std::int64_t sequences() const override { return static_cast<std::int64_t>(maps_.size()); }
    float most() const override;

    void weights_into(const Cells& cells, float* out) const override;
    void scores_into(const Cells& cells, float* out) const override;
    std::pair<std::int64_t, std::int64_t> seen(std::int64_t q_begin, std::int64_t q_end) const override;
    std::vector<std::pair<std::int64_t, std::int64_t>> allowed(std::int64_t query) const override;

private:
    /// Means of what `read` (values or scores) gives; `none` where no sequence has the pair.
    template <class Read>
    void mean_into(const Cells& cells, float none, float* out, const Read& read) const;

    std::vector<std::shared_ptr<const PairMap>> maps_;
    std::int64_t queries_ = 0, keys_ = 0;
};

}  // namespace headscope::maps
