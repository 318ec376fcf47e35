// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/maps/value_map.h"
#include "core/store/analysis/analysis_file.h"

namespace headscope::maps {

/// Attention rollout (Abnar and Zuidema 2020, arXiv 2005.00928): R = Â_l ... Â_1, where Â is half of a layer's weights
/// in the mean over its heads and half of the identity (the residual connection), each row divided by its sum. R_ij is
/// how much of token i behind layer l comes from token j's embedding, if weights and residual were all there is. A
/// layer that mixes no tokens is the identity; a row whose query sees no key, too.
///
/// Exact without a matrix per layer: a row of R is that row of the identity times one layer after the other, from the
/// top; a column the same from the bottom. Weights are recomputed a few rows at a time. Up to kWhole tokens all of R is
/// kept. Beyond, rows are made in blocks of 256. A pixel that pools several queries is made from the mean of their
/// rows, at the cost of one row: means are exact, and the extreme is the greatest of that mean row.
class Rollout final : public ValueMap {
public:
    /// From the bottom; nothing: the identity. All [tokens] x [tokens]. Throws Error (internal) where they are not.
    Rollout(std::vector<std::optional<store::AnalysisFile::Map>> layers, std::int64_t tokens);

    static constexpr std::int64_t kWhole = 4096;

    std::int64_t queries() const override { return tokens_; }
    std::int64_t keys() const override { return tokens_; }
    bool whole() const { return tokens_ <= kWhole; }
    void pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
              const std::atomic<bool>& cancel) const override;
    std::int64_t bytes() const override;

    /// [bounds.size() - 1, tokens]: row r is the mean of R's rows [bounds[r], bounds[r + 1]).
    std::vector<float> mean_rows(std::span<const std::int64_t> bounds, const std::atomic<bool>& cancel) const;
    /// [tokens, k_end - k_begin]: columns of R.
    std::vector<float> columns(std::int64_t k_begin, std::int64_t k_end, const std::atomic<bool>& cancel) const;

    void weights_into(const Cells& cells, float* out) const override;
    std::pair<std::int64_t, std::int64_t> seen(std::int64_t q_begin, std::int64_t q_end) const override;
    std::vector<std::pair<std::int64_t, std::int64_t>> allowed(std::int64_t query) const override;

private:
    using Rows = std::shared_ptr<const std::vector<float>>;
    using Layer = std::optional<store::AnalysisFile::Map>;
    struct Band;

    Band band(const store::AnalysisFile::Map& layer, std::int64_t first, std::int64_t end) const;
    /// Mean rows of pixels [index * 256, ...) at a level, made by the first caller; at level 0 of short texts all.
    Rows block(int level, std::int64_t index, const std::atomic<bool>& cancel) const;
    std::int64_t block_rows() const;

    std::vector<Layer> layers_;
    std::int64_t tokens_;
    bool causal_;
    mutable std::mutex mutex_;
    mutable std::list<std::pair<std::pair<int, std::int64_t>, Rows>> blocks_;  ///< front: made last
};

}  // namespace headscope::maps
