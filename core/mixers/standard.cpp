// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/standard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tensor.h>

#include "core/base/error.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/key_value_cache.h"
#include "core/mixers/shared/slopes.h"
#include "core/model/device.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/training_ops.h"
#include "kernels/normaliser.h"

namespace headscope::mixers {
namespace {

/// A configuration may say any number; what is stored of a shared bias ends here.
constexpr std::int64_t kFarthestStored = 1 << 16;

/// Falcon's: [heads] bfloat16.
at::Tensor rounded_slopes(std::int64_t heads) {
    return at::tensor(alibi_slopes(heads, 1), at::kFloat).to(at::kBFloat16);
}

/// slope * j of keys 0, 1 .. as Falcon has it, in bfloat16 all the way: [heads, keys, 1].
at::Tensor rounded_steps(std::int64_t heads, std::int64_t keys, at::ScalarType type) {
    const at::Tensor positions = at::arange(keys, at::kFloat).to(at::kBFloat16);
    return (rounded_slopes(heads).unsqueeze(1) * positions).to(type).unsqueeze(2);
}

}  // namespace

StandardMixer::StandardMixer(const MixerType& type, const model::ModelConfig& config, std::int64_t layer)
    : type_(&type),
      maps_(config),
      has_slopes_(&type == &kAlibi || (config.positions == model::PositionKind::alibi && !config.alibi_rounded)),
      steps_rounded_(config.positions == model::PositionKind::alibi && config.alibi_rounded),
      slope_scale_(config.alibi_scale),
      learns_slopes_(&type == &kAlibi && config.mixer_options.get<bool>(kAlibi, "trained")) {
    rule_.scale =
        config.attention_scale > 0 ? config.attention_scale : 1.0 / std::sqrt(static_cast<double>(config.head_size));
    if (config.scale_by_inverse_layer) rule_.scale /= static_cast<double>(layer + 1);
    rule_.soft_cap = config.soft_cap;
    if (&type == &kStandard)
        rule_.normaliser = *kernels::find_normaliser(config.mixer_options.get<std::string>(kStandard, "normaliser"));
    if (&type == &kSigmoid) {
        rule_.normaliser = kernels::Normaliser::sigmoid;
        bias_ = static_cast<float>(config.mixer_options.get<double>(kSigmoid, "bias"));
    }
    rule_.causal = config.causal;
    const std::int64_t window = config.windows.empty() ? 0 : config.windows.at(static_cast<std::size_t>(layer));
    if (window > 0) rule_.window_left = window - 1;
    if (window > 0 && !config.causal) rule_.window_right = window - 1;
    if (config.distance_buckets > 0) farthest_ = std::min(config.farthest_bucket, kFarthestStored);
    if (!config.chunks.empty()) chunk_ = config.chunks.at(static_cast<std::size_t>(layer));
}

std::vector<Site> StandardMixer::sites() const {
    Site site = maps_.site(rule_.causal);
    if (steps_rounded_) site.key_size += 2;
    site.has_slopes = has_slopes_ || steps_rounded_;
    if (farthest_ >= 0) {
        site.bias_first = static_cast<std::int32_t>(rule_.causal ? 0 : -farthest_);
        site.bias_length = static_cast<std::int32_t>(farthest_ + 1) - site.bias_first;
    }
    return {site};
}

void StandardMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    maps_.declare(plan, names);
    if (type_ == &kSinkLogits || plan.config().sink_logits) {
        plan.want(&sinks_, {names.layer_stem + names.in_layer.sinks}, {{maps_.query_heads(), plan.keys().heads}});
    }
    if (learns_slopes_) {
        plan.want(&slopes_, {names.layer_stem + "self_attn.slopes"}, {{maps_.query_heads(), plan.keys().heads}},
                  model::Initial::slopes);
        plan.keep_exact();
    }
}

at::Tensor StandardMixer::forward(const at::Tensor& normed, const StackContext& around, MixerCache* cache) const {
    StackContext context = around;
    if (type_ == &kAlibi) {
        context.rotary = nullptr;
        context.history_rotation = nullptr;
    }
    at::Tensor gate, query, key, value;
    if (context.only_position >= 0 && maps_.separates_queries()) {
        Attending alone = attend_one(maps_, normed, context);
        query = std::move(alone.query);
        key = std::move(alone.key);
        value = std::move(alone.value);
        context.first_position = context.only_position;
    } else {
        const at::Tensor all = maps_.heads(normed, context.cancellation, &gate);
        const auto [both, values] = model::split_heads(all, maps_.query_heads() + maps_.key_value_heads());
        at::Tensor query_key = maps_.with_norms(both);
        value = maps_.clipped(values).transpose(1, 2);
        const auto [queries, keys] =
            model::split_heads(announce_and_rotate(maps_, query_key, value, context), maps_.query_heads());
        key = keys.transpose(1, 2);
        if (cache) join_cache(maps_, query_key, key, value, context, *cache);
        query = queries.transpose(1, 2);
    }
    if (steps_rounded_) {
        if (context.wants("slopes"))
            context.announce("slopes", rounded_slopes(query.size(1)).to(at::kFloat) * slope_scale_);
        // q.k + step_j - step_i, before the scale of the scores.
        const at::Tensor steps =
            model::on_device(rounded_steps(query.size(1), key.size(2), query.scalar_type()), query.device())
                .mul(slope_scale_ / rule_.scale)
                .expand({query.size(0), -1, -1, -1});
        const at::Tensor own = steps.narrow(2, context.first_position, query.size(2));
        query = at::cat({query, at::ones_like(own), -own}, 3);
        key = at::cat({key, steps, at::ones_like(steps)}, 3);
    }

    kernels::ScoreRule rule = rule_;
    RuleTensors tensors{sinks_};
    // Not before: a mixer is made from a configuration that no tensor has borne out yet.
    if (learns_slopes_)
        set_trained_slopes(slopes_, {}, key.size(2), rule, tensors);
    else if (has_slopes_)
        rule.slopes = alibi_slopes(maps_.query_heads(), slope_scale_);
    rule.query_offset = context.first_position;
    if (sinks_.defined()) {
        const at::Tensor sinks = model::on_processor(sinks_).to(at::kFloat).contiguous();
        rule.sink_logits.assign(sinks.const_data_ptr<float>(), sinks.const_data_ptr<float>() + sinks.numel());
    }
    if (context.shared_bias) {
        rule.distance_bias = context.shared_bias->distance_bias;
        rule.bias_length = context.shared_bias->bias_length;
        rule.bias_origin = context.shared_bias->bias_origin;
        rule.beyond_table = context.shared_bias->beyond_table;
        tensors.distance_bias = context.shared_bias_table;
    } else if (bias_ != 0) {
        // A table of one number, which all distances clamp to.
        rule.distance_bias.assign(static_cast<std::size_t>(maps_.query_heads()), bias_);
        rule.bias_length = 1;
    }
    if (chunk_ > 0 && key.size(2) > chunk_) {
        // No block is seen but the query's own.
        const std::int64_t blocks = (key.size(2) - 1) / chunk_ + 1;
        rule.blocks = {
            chunk_, blocks,
            std::vector<std::uint8_t>(static_cast<std::size_t>(query.size(0) * maps_.query_heads() * blocks))};
    }
    if (context.lengths) rule.query_length = rule.key_length = *context.lengths;
    if (gate.defined()) context.output_projection = nullptr;  // the gate lies between
    const at::Tensor output = attend(query, key, value, rule, context.site, context, tensors);
    return gate.defined() ? output * at::sigmoid(gate) : output;
}

std::unique_ptr<MixerCache> StandardMixer::new_cache() const {
    return std::make_unique<KeyValueCache>();
}

}  // namespace headscope::mixers
