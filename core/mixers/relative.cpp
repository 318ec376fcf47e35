// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/zeros.h>

#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/key_value_cache.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/types/standard.h"
#include "core/model/embedding/segments.h"
#include "core/model/load/tensor_plan.h"
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

RelativeMixer::RelativeMixer(const model::ModelConfig& config)
    : maps_(config),
      hidden_(config.hidden),
      clamped_(config.clamped_distance),
      memory_(config.memory_length),
      memory_is_a_window_(config.memory_is_a_window) {
    rule_.scale = 1.0 / std::sqrt(static_cast<double>(config.head_size));
    if (clamped_ > 0) {
        rule_.far_distance = clamped_;
        rule_.near_begin = config.head_size;
    }
}

void RelativeMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    maps_.declare(plan, names);
    const model::SizeKeys& keys = plan.keys();
    const model::Dimension heads{maps_.query_heads(), keys.heads}, size{maps_.head_size(), keys.head_size};
    plan.want_linear(&position_key_, names.layer_stem + names.in_layer.position_key,
                     {maps_.output_size(), keys.heads + " * " + keys.head_size}, {hidden_, keys.hidden});
    const auto bias = [&](at::Tensor& into, const std::string& of_all, const std::string& own) {
        plan.want(&into, {of_all.empty() ? names.layer_stem + own : names.prefix + of_all}, {heads, size},
                  model::Initial::bias);
    };
    bias(key_bias_, names.key_bias, names.in_layer.key_bias);
    bias(position_bias_, names.position_bias, names.in_layer.position_bias);
}

std::vector<Site> RelativeMixer::sites() const {
    Site site = maps_.site(true);
    site.key_size += static_cast<std::int32_t>(hidden_ + (clamped_ > 0 ? 1 : 0));
    return {site};
}

at::Tensor RelativeMixer::phases(std::int64_t first, std::int64_t count) const {
    const at::Tensor steps = at::arange(0, hidden_, 2, at::kDouble) / static_cast<double>(hidden_);
    const at::Tensor angles = at::outer(at::arange(first, first + count, at::kDouble), at::pow(10000.0, -steps));
    return at::cat({angles.cos(), angles.sin()}, 1);
}

at::Tensor RelativeMixer::positioned_query(const at::Tensor& query, std::int64_t first) const {
    const std::int64_t half = hidden_ / 2;
    const at::Tensor by_head =
        position_key_.to(query.scalar_type()).view({maps_.query_heads(), maps_.head_size(), hidden_});
    const at::Tensor read = at::matmul(query + position_bias_.unsqueeze(1), by_head);
    const at::Tensor of_sine = read.narrow(3, 0, half), of_cosine = read.narrow(3, half, half);
    const at::Tensor own = phases(first, query.size(2)).to(query.options());
    const at::Tensor cosine = own.narrow(1, 0, half), sine = own.narrow(1, half, half);
    std::vector<at::Tensor> parts{query + key_bias_.unsqueeze(1), of_sine * sine + of_cosine * cosine,
                                  of_cosine * sine - of_sine * cosine};
    if (clamped_ > 0) {
        const at::Tensor farthest = phases(clamped_, 1).to(query.options());
        const at::Tensor far = of_sine * farthest.narrow(1, half, half) + of_cosine * farthest.narrow(1, 0, half);
        parts.push_back(far.sum(3, true));
    }
    return at::cat(parts, 3);
}

at::Tensor RelativeMixer::positioned_key(const at::Tensor& key) const {
    const std::int64_t batch = key.size(0), heads = key.size(1), count = key.size(2);
    std::vector<at::Tensor> parts{key, phases(0, count).to(key.options()).expand({batch, heads, count, hidden_})};
    if (clamped_ > 0) parts.push_back(at::zeros({batch, heads, count, 1}, key.options()));
    return at::cat(parts, 3);
}

kernels::ScoreRule RelativeMixer::rule(const StackContext& context) const {
    kernels::ScoreRule rule = rule_;
    rule.query_offset = context.first_position;
    const model::Segments whole, &segments = context.segments ? *context.segments : whole;
    const std::int64_t memory = segments.memory >= 0 ? segments.memory : memory_;
    if (memory_is_a_window_) {
        rule.window_left = memory - 1;
    } else if (segments.tokens > 0) {
        rule.window_left = memory;
        rule.window_segment = segments.tokens;
    }
    if (context.lengths) rule.query_length = rule.key_length = *context.lengths;
    return rule;
}

at::Tensor RelativeMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    const at::Tensor all = maps_.heads(normed, context.cancellation);
    const at::Tensor query = context.pass(model::Point::query, maps_.query_of(all));
    at::Tensor key = context.pass(model::Point::key, maps_.key_of(all));
    at::Tensor value = context.pass(model::Point::value, maps_.value_of(all));
    if (cache) {
        auto& held = dynamic_cast<KeyValueCache&>(*cache);
        held.append(key, value);
        key = held.key();
        value = held.value();
    }
    // Positions need more digits than half precision has.
    const at::ScalarType type = normed.scalar_type(), wide = type == at::kDouble ? type : at::kFloat;
    return attend(positioned_query(query.to(wide), context.first_position), positioned_key(key.to(wide)),
                  value.to(wide), rule(context), context.site, context)
        .to(type);
}

std::unique_ptr<MixerCache> RelativeMixer::new_cache() const {
    return std::make_unique<KeyValueCache>();
}

std::unique_ptr<Mixer> make_relative(const MixerType&, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<RelativeMixer>(config);
}

}  // namespace headscope::mixers
