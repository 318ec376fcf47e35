// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/key_value_cache.h"
#include "core/mixers/types/standard.h"
#include "core/model/blocks.h"
#include "core/model/load/tensor_plan.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// Latent attention (DeepSeek-V2, arXiv 2405.04434): softmax attention whose keys and values come out of a few numbers
/// of each token, the latent part. A head's query and key are a part without positions beside one that turns, and the
/// key's turning part is the same in all heads; values have a size of their own. "query" and "key" are announced as the
/// scores see them, both parts side by side.
///
/// The cache holds the latent part and the turning part of a key, as the paper does: keys and values of earlier tokens
/// are computed again from these in each call.
class LatentMixer final : public Mixer {
public:
    explicit LatentMixer(const model::ModelConfig& config);

    const MixerType& type() const override { return kStandard; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return heads_ * value_size_; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;
    bool returns_heads() const override { return true; }
    /// The parts without positions.
    std::optional<HeadMaps> head_maps() const override;

private:
    /// [B, L, heads, still + turning]
    at::Tensor queries(const at::Tensor& normed, const Cancellation* cancellation) const;
    /// [B, heads, L, still + turning], rotated now.
    at::Tensor turned_key(const at::Tensor& key, const StackContext& context) const;

    std::int64_t heads_, rank_, still_size_, turning_size_, value_size_;
    kernels::ScoreRule rule_;
    model::Linear query_down_;  ///< weight undefined: queries come out of the input at once
    model::Norm query_norm_;
    model::Linear query_up_;
    model::Linear key_value_down_;  ///< rows: the latent part, the turning part of a key
    model::Norm latent_norm_;
    model::Linear key_value_up_;  ///< rows, head by head: the still part of a key, a value
};

namespace {

/// transformers gives the norms of latent parts its default, whatever rms_norm_eps says.
constexpr double kLatentEpsilon = 1e-6;

}  // namespace

LatentMixer::LatentMixer(const model::ModelConfig& config)
    : heads_(config.heads),
      rank_(config.key_value_rank),
      still_size_(config.head_size - config.rope.size),
      turning_size_(config.rope.size),
      value_size_(config.value_size) {
    rule_.scale =
        config.attention_scale > 0 ? config.attention_scale : 1.0 / std::sqrt(static_cast<double>(config.head_size));
    rule_.causal = config.causal;
}

void LatentMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::ModelConfig& config = plan.config();
    const std::string stem = names.layer_stem + "self_attn.";
    const std::string& head_keys = plan.keys().heads;
    const model::Dimension hidden{config.hidden, plan.keys().hidden};
    const model::Dimension query{heads_ * config.head_size, head_keys + " * " + plan.keys().head_size};
    const auto norm = [&](model::Norm& into, const std::string& name, const model::Dimension& size) {
        into.declare(plan, stem + name, size, false);
        into.epsilon = kLatentEpsilon;
    };
    if (config.query_rank > 0) {
        const model::Dimension rank{config.query_rank, "q_lora_rank"};
        query_down_.declare(plan, stem + "q_a_proj", rank, hidden, config.query_key_value_bias);
        norm(query_norm_, "q_a_layernorm", rank);
        query_up_.declare(plan, stem + "q_b_proj", query, rank, false);
    } else {
        query_up_.declare(plan, stem + "q_proj", query, hidden, false);
    }
    const model::Dimension rank{rank_, "kv_lora_rank"};
    key_value_down_.declare(plan, stem + "kv_a_proj_with_mqa",
                            {rank_ + turning_size_, "kv_lora_rank + qk_rope_head_dim"}, hidden,
                            config.query_key_value_bias);
    norm(latent_norm_, "kv_a_layernorm", rank);
    key_value_up_.declare(plan, stem + "kv_b_proj",
                          {heads_ * (still_size_ + value_size_), head_keys + " * (qk_nope_head_dim + v_head_dim)"},
                          rank, false);
}

std::vector<Site> LatentMixer::sites() const {
    Site site;
    site.heads = site.key_value_heads = static_cast<std::int32_t>(heads_);
    site.key_size = static_cast<std::int32_t>(still_size_ + turning_size_);
    site.value_size = static_cast<std::int32_t>(value_size_);
    site.causal = rule_.causal;
    return {site};
}

at::Tensor LatentMixer::queries(const at::Tensor& normed, const Cancellation* cancellation) const {
    const at::Tensor read = query_down_.weight.defined() ? query_norm_(query_down_(normed, cancellation)) : normed;
    return query_up_(read, cancellation).unflatten(2, {heads_, still_size_ + turning_size_});
}

at::Tensor LatentMixer::turned_key(const at::Tensor& key, const StackContext& context) const {
    if (!context.rotary) return key;
    const at::Tensor turning = key.narrow(3, still_size_, turning_size_).transpose(1, 2);
    return at::cat({key.narrow(3, 0, still_size_), context.rotary->rotate(turning, *context.rotation).transpose(1, 2)},
                   3);
}

at::Tensor LatentMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    const std::int64_t length = normed.size(1);
    const at::Tensor all_queries =
        context.pass(model::Point::query, queries(normed, context.cancellation).transpose(1, 2)).transpose(1, 2);
    if (cache && (context.edits(model::Point::key) || context.edits(model::Point::value)))
        throw Error(ErrorCode::unsupported, "layer " + std::to_string(context.layer.value),
                    "expected no edits of keys and values with a cache, which holds latents", "found some");
    const at::Tensor down = key_value_down_(normed, context.cancellation);
    const at::Tensor turning = down.narrow(2, rank_, turning_size_).unsqueeze(2);
    // The queries' heads and the one that all keys share. Without positions (Kimi Linear) none is rotated.
    at::Tensor turned = at::cat({all_queries.narrow(3, still_size_, turning_size_), turning}, 2);
    if (context.rotary) turned = context.rotary->rotate(turned, *context.rotation);
    at::Tensor shared = turned.narrow(2, heads_, 1).transpose(1, 2);
    at::Tensor latent = latent_norm_(down.narrow(2, 0, rank_)).unsqueeze(1);
    if (cache) {
        auto& held = dynamic_cast<KeyValueCache&>(*cache);
        if (context.history_rotation) {
            held.append(turning.transpose(1, 2), latent);
            shared = context.rotary->rotate(held.key().transpose(1, 2), *context.history_rotation).transpose(1, 2);
        } else {
            held.append(shared, latent);
            shared = held.key();
        }
        latent = held.value();
    }
    const at::Tensor up = key_value_up_(latent.squeeze(1), context.cancellation)
                              .unflatten(2, {heads_, still_size_ + value_size_})
                              .transpose(1, 2);
    const at::Tensor still = up.narrow(3, 0, still_size_);
    at::Tensor value = up.narrow(3, still_size_, value_size_);
    const auto of_all_heads = [this](const at::Tensor& one) { return one.expand({-1, heads_, -1, -1}); };
    at::Tensor key = at::cat({still, of_all_heads(shared)}, 3);
    const at::Tensor query =
        at::cat({all_queries.narrow(3, 0, still_size_), turned.narrow(2, 0, heads_)}, 3).transpose(1, 2);

    const auto own = [length](const at::Tensor& all) { return all.narrow(2, all.size(2) - length, length); };
    if (context.wants("key") || context.edits(model::Point::key)) {
        const at::Tensor edited =
            context.pass(model::Point::key, at::cat({own(still), of_all_heads(turning.transpose(1, 2))}, 3));
        if (context.edits(model::Point::key)) key = turned_key(edited, context);
    }
    if (context.edits(model::Point::value))
        value = context.pass(model::Point::value, value);
    else
        context.announce("value", own(value));
    if (context.rotary) {
        context.announce("query_rotated", query);
        context.announce("key_rotated", own(key));
    }

    kernels::ScoreRule rule = rule_;
    rule.query_offset = context.first_position;
    if (context.lengths) rule.query_length = rule.key_length = *context.lengths;
    return attend(query, key, value, rule, context.site, context);
}

std::optional<HeadMaps> LatentMixer::head_maps() const {
    const auto through = [](const at::Tensor& down, const model::Norm& norm) {
        const at::Tensor gain = norm.gain();
        return gain.defined() ? down.t() * gain : down.t();
    };
    at::Tensor queries = query_up_.weight.t();  // [d or rank, heads * (still + turning)]
    if (query_down_.weight.defined()) queries = through(query_down_.weight, query_norm_).matmul(queries);
    const at::Tensor latent = through(key_value_down_.weight.narrow(0, 0, rank_), latent_norm_);
    const auto of_heads = [this](const at::Tensor& all) { return all.unflatten(1, {heads_, -1}).transpose(0, 1); };
    const at::Tensor up = of_heads(latent.matmul(key_value_up_.weight.t()));
    return HeadMaps{of_heads(queries).narrow(2, 0, still_size_),
                    up.narrow(2, 0, still_size_),
                    up.narrow(2, still_size_, value_size_),
                    {},
                    {}};
}

std::unique_ptr<MixerCache> LatentMixer::new_cache() const {
    return std::make_unique<KeyValueCache>();
}

std::unique_ptr<Mixer> make_latent(const MixerType&, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<LatentMixer>(config);
}

}  // namespace headscope::mixers
