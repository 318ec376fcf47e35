// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "core/maps/tile.h"

namespace headscope::maps {

/// How much of the weight a rectangle holds; of several sequences the mean, with the deviation over them.
struct RegionMass {
    double mass = 0;           ///< sum of its weights
    double share = 0;          ///< of its weight that a query gives to the rectangle's keys, in the mean
    std::int64_t cells = 0;    ///< all of them
    std::int64_t allowed = 0;  ///< pairs that the mask allows, in any sequence
    std::int64_t queries = 0;  ///< rows that have such a pair, in the rectangle or beside it
    std::int64_t sequences = 1;
    double mass_deviation = std::numeric_limits<double>::quiet_NaN();  ///< sample; NaN: fewer than two sequences
    double share_deviation = std::numeric_limits<double>::quiet_NaN();
};

/// A pair's numbers; of several sequences their mean and sample deviation (NaN: fewer than two have the pair).
struct PairReading {
    float weight = std::numeric_limits<float>::quiet_NaN(), logit = weight;  ///< NaN: not allowed
    float weight_deviation = weight, logit_deviation = weight;
    std::int64_t sequences = 0;  ///< that have the pair
};

/// Ranges [begin, end) in order, with those that touch made one.
std::vector<std::pair<std::int64_t, std::int64_t>> joined_ranges(
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges);

/// Weights and scores of queries and keys: one head's in one sequence, of pieces or words, or the mean over sequences.
/// Immutable, any thread.
class PairMap : public TileSource {
public:
    /// From values(): the mean over all pairs under a pixel, forbidden ones as 0, and the weight farthest
    /// from 0.
    void pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
              const std::atomic<bool>& cancel) const override;
    /// The scores before the normaliser; NaN where a pair is not allowed.
    virtual std::vector<float> scores(const Cells& cells) const = 0;
    /// Row-major, one a cell.
    virtual std::vector<PairReading> read(const Cells& cells) const = 0;
    /// Throws kernels::Cancelled soon after `cancel` is set.
    virtual RegionMass mass(const Cells& cells, const std::atomic<bool>& cancel) const = 0;
    virtual std::int64_t bytes() const = 0;
    virtual std::int64_t sequences() const = 0;
    /// Upper bound of magnitudes, for norms and for implicit matrices. NaN for weights.
    virtual float most() const { return std::numeric_limits<float>::quiet_NaN(); }

    // For other sources of tiles over the same pairs. Row-major, not checked for what is not allowed.
    virtual void weights_into(const Cells& cells, float* out) const = 0;  ///< 0: not allowed
    virtual void scores_into(const Cells& cells, float* out) const = 0;   ///< -inf: not allowed
    /// The keys [begin, end) between which lie all that some query of [q_begin, q_end) sees; empty: none.
    virtual std::pair<std::int64_t, std::int64_t> seen(std::int64_t q_begin, std::int64_t q_end) const = 0;
    /// Ranges [begin, end) of the keys that a query sees, in order.
    virtual std::vector<std::pair<std::int64_t, std::int64_t>> allowed(std::int64_t query) const = 0;
};

}  // namespace headscope::maps
