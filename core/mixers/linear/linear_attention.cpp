// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <optional>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/tensor.h>

#include "core/base/error.h"
#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/types/linear_attention.h"
#include "core/model/embedding/rotary.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::mixers {

/// RetNet (kRetNet) and gated linear attention (kGla), in the conventions of flash-linear-attention: a state that
/// decays, without the delta rule; an RMS norm of each head's output times SiLU of the gate. Linear time, a cache of
/// constant size. RetNet turns queries and keys by rotary positions where the model or its own option has them; throws
/// Error(unsupported) where these depend on the text's length, which a state cannot.
class LinearAttentionMixer final : public Mixer {
public:
    LinearAttentionMixer(const MixerType& type, const model::ModelConfig& config);

    const MixerType& type() const override { return *type_; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override { return {parts_.site()}; }
    std::int64_t output_size() const override { return parts_.sizes().value_rows(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override { return std::make_unique<DeltaCache>(); }

private:
    at::Tensor log_decay(const at::Tensor& normed) const;
    /// By ModelConfig::feature_map.
    at::Tensor mapped(const at::Tensor& heads) const;
    /// Heads [B, H, L, dk] of this call's tokens.
    at::Tensor turned(const at::Tensor& heads, const StackContext& context) const;

    const MixerType* type_;
    DeltaParts parts_;
    model::Linear rank_, decay_;  ///< GLA's decay: from the input to a few numbers, to each number of the keys
    double least_log_decay_ = 0;  ///< 0: none
    std::optional<model::Activation> feature_map_;
    std::optional<model::Rotary> rotary_;
    model::Norm norm_;  ///< of each head's output
};

namespace {

// flash-linear-attention's, which no configuration of it says otherwise.
constexpr std::int64_t kDecayRank = 16;
constexpr double kDecayShare = 16;

DeltaActivation activation_of(const DeltaSizes& sizes) {
    return sizes.taps > 0 ? DeltaActivation::all : DeltaActivation::none;
}

}  // namespace

LinearAttentionMixer::LinearAttentionMixer(const MixerType& type, const model::ModelConfig& config)
    : type_(&type),
      parts_(DeltaSizes(type, config), false, config.mixer_options.get<bool>(type, "use_gate"), false,
             activation_of(DeltaSizes(type, config)), false),
      feature_map_(config.feature_map) {
    if (&type == &kGla) {
        least_log_decay_ = config.mixer_options.get<double>(type, "clamp_min");
        return;
    }
    const auto own_base = config.mixer_options.get<double>(type, "rope_theta");
    if (own_base == 0 && config.positions != model::PositionKind::rotary) return;
    model::RopeConfig rope = own_base > 0 ? model::RopeConfig() : config.rope;
    if (own_base > 0) rope.theta = own_base;
    if (parts_.sizes().key_size % 2 != 0) {
        throw Error(ErrorCode::mismatch, std::string("mixers.") + type.name + ".head_dim",
                    "expected an even number for rotary positions", "found " + std::to_string(parts_.sizes().key_size));
    }
    rotary_.emplace(rope, parts_.sizes().key_size, config.max_positions);
    if (rotary_->depends_on_length()) {
        throw Error(ErrorCode::unsupported, std::string("mixers.") + type.name,
                    "expected rotary positions that do not depend on the text's length", "found " + rope.type);
    }
}

void LinearAttentionMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    parts_.declare(plan, names);
    const model::RecurrentNames& own = names.in_layer.recurrent;
    const std::string stem = names.layer_stem + own.stem;
    const DeltaSizes& sizes = parts_.sizes();
    if (type_ == &kGla) {
        const model::Dimension rank{kDecayRank, "rank " + std::to_string(kDecayRank)};
        rank_.declare(plan, stem + own.decay_rank, rank, {plan.config().hidden, plan.keys().hidden}, false);
        decay_.declare(plan, stem + own.decay_of_rank, {sizes.key_rows() / sizes.sharing, "num_heads * head_dim"}, rank,
                       true);
    }
    const bool other = !own.other_norm.empty() && !plan.has(stem + own.norm + ".weight");
    norm_.declare(plan, stem + (other ? own.other_norm : own.norm), {sizes.value_size, "head_dim * expand_v"}, false);
}

at::Tensor LinearAttentionMixer::log_decay(const at::Tensor& normed) const {
    const DeltaSizes& sizes = parts_.sizes();
    const std::int64_t heads = sizes.heads / sizes.sharing;
    if (type_ == &kRetNet) {
        std::vector<double> rates;
        for (std::int64_t head = 0; head < sizes.heads; ++head)
            rates.push_back(std::log1p(-std::exp2(-5.0 - static_cast<double>(head))));
        const at::Tensor all =
            at::tensor(rates, normed.options().dtype(at::kDouble)).to(at_least_float(normed).scalar_type());
        return all.view({1, sizes.heads, 1}).expand({normed.size(0), -1, normed.size(1)});
    }
    at::Tensor decay = at::log_sigmoid(at_least_float(decay_(rank_(normed)))) / kDecayShare;
    if (least_log_decay_ < 0) decay = decay.clamp_min(least_log_decay_);
    decay = decay.unflatten(2, {heads, sizes.key_size}).transpose(1, 2);
    return sizes.sharing == 1 ? decay : decay.repeat_interleave(sizes.sharing, 1);
}

at::Tensor LinearAttentionMixer::mapped(const at::Tensor& heads) const {
    return feature_map_ ? model::activate(*feature_map_, heads.clone()) : heads;
}

at::Tensor LinearAttentionMixer::turned(const at::Tensor& heads, const StackContext& context) const {
    if (!rotary_) return heads;
    const auto table = rotary_->table(context.first_position, heads.size(2), heads.scalar_type());
    return rotary_->rotate(heads.transpose(1, 2), table).transpose(1, 2);
}

at::Tensor LinearAttentionMixer::forward(const at::Tensor& normed, const StackContext& context,
                                         MixerCache* cache) const {
    auto* held = cache ? &dynamic_cast<DeltaCache&>(*cache) : nullptr;
    auto heads = parts_.heads(normed, held ? &held->before : nullptr, context.cancellation);
    heads.query = context.pass(model::Point::query, heads.query);
    heads.key = context.pass(model::Point::key, heads.key);
    heads.value = context.pass(model::Point::value, heads.value);
    Recurrence what;
    what.query = turned(mapped(heads.query), context);
    what.key = turned(mapped(heads.key), context);
    what.value = heads.value;
    what.log_decay = log_decay(normed);
    what.rule.scale = 1.0 / std::sqrt(static_cast<double>(parts_.sizes().key_size));
    what.rule.delta = false;
    if (rotary_) {
        context.announce("query_rotated", what.query);
        context.announce("key_rotated", what.key);
    }
    StackContext own = context;
    own.output_projection = nullptr;  // the norm lies between
    const at::Tensor output = recur(what, held ? &held->state : nullptr, context.site, own);
    const at::Tensor normal = norm_(output.unflatten(2, {parts_.sizes().heads, parts_.sizes().value_size})).flatten(2);
    const at::Tensor gate = parts_.gate(normed, context.cancellation);
    return gate.defined() ? normal * gate : normal;
}

std::unique_ptr<Mixer> make_linear_attention(const MixerType& type, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<LinearAttentionMixer>(type, config);
}

}  // namespace headscope::mixers
