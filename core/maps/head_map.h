// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <utility>
#include <vector>

#include "core/maps/pair_map.h"
#include "kernels/attention.h"
#include "kernels/head_rule.h"

namespace headscope::maps {

using kernels::rule_of_head;

/// One head's map, recomputed from its queries, keys and row constants: weights are never stored.
class HeadMap final : public PairMap {
public:
    /// query [Lq, dk], key [Lk, dk], row_constant [Lq]; `rule` as rule_of_head() makes it.
    HeadMap(std::vector<float> query, std::vector<float> key, std::vector<float> row_constant, std::int64_t key_size,
            kernels::ScoreRule rule);

    std::int64_t queries() const override { return queries_; }
    std::int64_t keys() const override { return keys_; }
    void pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
              const std::atomic<bool>& cancel) const override;
    std::vector<float> values(const Cells& cells) const override;
    std::vector<float> scores(const Cells& cells) const override;
    std::vector<PairReading> read(const Cells& cells) const override;
    RegionMass mass(const Cells& cells, const std::atomic<bool>& cancel) const override;
    std::int64_t bytes() const override;
    std::int64_t sequences() const override { return 1; }

    void weights_into(const Cells& cells, float* out) const override;
    void scores_into(const Cells& cells, float* out) const override;
    std::pair<std::int64_t, std::int64_t> seen(std::int64_t q_begin, std::int64_t q_end) const override;
    std::vector<std::pair<std::int64_t, std::int64_t>> allowed(std::int64_t query) const override;

private:
    kernels::AttentionInput input(const std::atomic<bool>* cancel = nullptr) const;
    void pool_whole(const Cells& cells, std::int64_t rows, std::int64_t columns, std::int64_t stride, float* mean,
                    float* extreme, const std::atomic<bool>& cancel) const;
    void hide(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme) const;

    std::vector<float> query_, key_, row_constant_;
    std::int64_t queries_, keys_, key_size_;
    kernels::ScoreRule rule_;
};

}  // namespace headscope::maps
