// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <utility>
#include <vector>

#include "core/tiles/tile.h"
#include "kernels/attention.h"
#include "kernels/head_rule.h"

namespace headscope::tiles {

using kernels::rule_of_head;

/// How much of the weight a rectangle holds.
struct RegionMass {
    double mass = 0;           ///< sum of its weights
    std::int64_t cells = 0;    ///< all of them
    std::int64_t allowed = 0;  ///< pairs that the mask allows
    std::int64_t queries = 0;  ///< rows that have such a pair, in the rectangle or beside it
    /// The share of its weight that a query gives to the rectangle's keys, in the mean.
    double share() const { return queries > 0 ? mass / static_cast<double>(queries) : 0; }
};

/// One head's map, recomputed from its queries, keys and row constants: weights are never stored.
class HeadMap final : public TileSource {
public:
    /// query [Lq, dk], key [Lk, dk], row_constant [Lq]; `rule` as rule_of_head() makes it.
    HeadMap(std::vector<float> query, std::vector<float> key, std::vector<float> row_constant, std::int64_t key_size,
            kernels::ScoreRule rule);

    std::int64_t queries() const override { return queries_; }
    std::int64_t keys() const override { return keys_; }
    void pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
              const std::atomic<bool>& cancel) const override;
    std::vector<float> values(const Cells& cells) const override;
    /// The scores before the normaliser; NaN where a pair is not allowed.
    std::vector<float> scores(const Cells& cells) const;
    /// Throws kernels::Cancelled soon after `cancel` is set.
    RegionMass mass(const Cells& cells, const std::atomic<bool>& cancel) const;
    std::int64_t bytes() const;

    // For other sources of tiles over the same head. Row-major, not checked for what is not allowed.
    void weights_into(const Cells& cells, float* out) const;  ///< 0: not allowed
    void scores_into(const Cells& cells, float* out) const;   ///< -inf: not allowed
    /// The keys [begin, end) between which lie all that some query of [q_begin, q_end) sees; empty: none.
    std::pair<std::int64_t, std::int64_t> seen(std::int64_t q_begin, std::int64_t q_end) const;
    /// Ranges [begin, end) of the keys that a query sees, in order.
    std::vector<std::pair<std::int64_t, std::int64_t>> allowed(std::int64_t query) const;

private:
    kernels::AttentionInput input(const std::atomic<bool>* cancel = nullptr) const;
    void pool_whole(const Cells& cells, std::int64_t rows, std::int64_t columns, std::int64_t stride, float* mean,
                    float* extreme, const std::atomic<bool>& cancel) const;
    void hide(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme) const;

    std::vector<float> query_, key_, row_constant_;
    std::int64_t queries_, keys_, key_size_;
    kernels::ScoreRule rule_;
};

}  // namespace headscope::tiles
