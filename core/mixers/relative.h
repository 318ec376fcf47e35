// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/mixer.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/types/standard.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// Transformer-XL's attention (Dai et al., arXiv 1901.02860, Section 3.3; ModelConfig's PositionKind::relative):
///
///   s_ij = ((q_i + u) . k_j + (q_i + v) . W R_{i - j}) / sqrt(head size)
///
/// u and v of each head, W its rows of the map of positions, R_x the sines and then the cosines of x 10000^(-2c / d).
/// With p = W^T (q_i + v), the sum formulas of sin((i - j) w) and cos((i - j) w) turn the second term into a product of
/// numbers of i and numbers of j: p rotated by i, and sines and cosines of j. So a head's keys are k_j and d more
/// numbers (one more still if distances are clamped, ScoreRule::far_distance). Every kernel and file works with them,
/// and memory is linear in the text's length: L (head size + d) numbers a head.
///
/// Segments (StackContext::segments) limit the visible keys: those of its segment and a number before it.
class RelativeMixer final : public Mixer {
public:
    explicit RelativeMixer(const model::ModelConfig& config);

    const MixerType& type() const override { return kStandard; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    /// Cosines, then sines, of positions [first, first + count): [count, d], float64.
    at::Tensor phases(std::int64_t first, std::int64_t count) const;
    /// query [B, H, L, size] of positions from `first` on -> [B, H, L, key size].
    at::Tensor positioned_query(const at::Tensor& query, std::int64_t first) const;
    at::Tensor positioned_key(const at::Tensor& key) const;
    kernels::ScoreRule rule(const StackContext& context) const;

    kernels::ScoreRule rule_;
    Projections maps_;
    std::int64_t hidden_, clamped_, memory_;
    bool memory_is_a_window_;
    at::Tensor position_key_;              ///< [heads * size, d]
    at::Tensor key_bias_, position_bias_;  ///< [heads, size]: u and v
};

}  // namespace headscope::mixers
