// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/tiles/tile.h"
#include "kernels/attention.h"
#include "kernels/head_rule.h"

namespace headscope::tiles {

using kernels::rule_of_head;

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
    std::int64_t bytes() const;

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
